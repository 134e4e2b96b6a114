//! The interface between this crate and what stores the jobs: a server, or an engine in this process.

mod ask;
#[cfg(any(feature = "embedded", feature = "http"))]
mod document;
#[cfg(feature = "embedded")]
pub(crate) mod embedded;
#[cfg(feature = "http")]
pub(crate) mod http;

pub(crate) use ask::{Ask, Channel, EventFilter, WebhookAsk};
pub(crate) use document::document as job_document;

use crate::info::JobData;
use crate::run::Run;
use crate::{Cancelled, ClientError, Failure, Followed, Job, NewJob};
use redrive_policy::Policy;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// An answer that is awaited.
pub(crate) type TransportFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClientError>> + Send + 'a>>;

/// A server, or an engine in this process. Dropping a future abandons its request.
pub(crate) trait Transport: Send + Sync + 'static {
    /// Claims jobs. Waits for the first one if the transport supports that.
    fn fetch<'a>(&'a self, request: &'a FetchRequest) -> TransportFuture<'a, Vec<Delivery>>;

    /// Reports the ends of attempts. Each report has its own answer, in the order given.
    fn settle<'a>(
        &'a self,
        reports: &'a [RunReport],
        report_defaults: &'a ReportDefaults,
    ) -> TransportFuture<'a, Vec<Settled>>;

    /// A heartbeat for runs.
    fn heartbeat<'a>(
        &'a self,
        runs: &'a [Arc<Run>],
        report_defaults: &'a ReportDefaults,
    ) -> TransportFuture<'a, HeartbeatAnswer>;

    /// Reports the progress of a run.
    fn progress<'a>(&'a self, run: &'a Run, progress: ProgressUpdate) -> TransportFuture<'a, ()>;

    /// Enqueues jobs, all or none; returns their envelopes and whether each is new.
    fn enqueue<'a>(&'a self, jobs: &'a [NewJob]) -> TransportFuture<'a, Vec<(JobData, bool)>>;

    /// The envelope of a job.
    fn job<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData>;

    /// Cancels a job; returns its envelope.
    fn cancel<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData>;

    /// A page of dead letters, newest first.
    fn dead_letters<'a>(
        &'a self,
        filter: &'a DeadFilter,
        start: &'a Start,
        limit: usize,
    ) -> TransportFuture<'a, DeadPage>;

    /// Redrives a dead letter; returns its envelope.
    fn retry_dead<'a>(&'a self, id: &'a str) -> TransportFuture<'a, JobData>;

    /// Deletes a dead letter.
    fn delete_dead<'a>(&'a self, id: &'a str) -> TransportFuture<'a, ()>;

    /// Workflows, schedules, events, workers and webhooks; returns the document that is asked for.
    fn ask<'a>(&'a self, ask: Ask<'a>) -> TransportFuture<'a, serde_json::Value>;

    /// Opens a stream of events. What happens after this returned is in it.
    fn follow(&self, filter: EventFilter) -> TransportFuture<'_, Box<dyn EventSource>>;

    /// Whether a fetch can wait for a job. If it cannot, the worker polls.
    fn supports_long_poll(&self) -> bool;

    /// Whether the jobs of a dropped fetch are released at once. Otherwise they may stay claimed until their leases
    /// end.
    fn releases_on_drop(&self) -> bool;

    /// Closes the transport.
    fn close(&self) -> TransportFuture<'_, ()>;
}

/// An open stream of events.
pub(crate) trait EventSource: Send {
    /// Waits for what comes next; `None` where nothing will. Nothing is lost if the future is dropped.
    fn next(&mut self) -> TransportFuture<'_, Option<Followed>>;
}

/// A request for jobs.
#[derive(Clone, Debug)]
pub(crate) struct FetchRequest {
    pub(crate) queues: Arc<[Arc<str>]>,
    pub(crate) count: usize,
    pub(crate) wait: Duration,
    pub(crate) worker: Arc<str>,
    pub(crate) lease: Duration,
}

/// What all reports of a worker have in common.
#[derive(Clone, Debug)]
pub(crate) struct ReportDefaults {
    pub(crate) worker: Arc<str>,
    /// The policy that the worker brings, if it brings one.
    pub(crate) retry: Option<WorkerRetry>,
}

/// A worker's own policy, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct WorkerRetry {
    /// The policy as it is sent, in JSON.
    pub(crate) text: Arc<str>,
    pub(crate) policy: Arc<Policy>,
}

/// Which dead letters to select. An absent field matches all.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeadFilter {
    pub(crate) queue: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) error_type: Option<String>,
}

/// A page of dead letters.
#[derive(Clone, Debug)]
pub(crate) struct DeadPage {
    pub(crate) jobs: Vec<JobData>,
    /// How many match in all, if the server knows.
    pub(crate) total: Option<usize>,
    /// Where the next page starts; absent behind the last one. A page may have fewer jobs than were asked for, and
    /// still not be the last.
    pub(crate) next: Option<Start>,
}

/// Where a page of dead letters starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// After this many.
    Offset(usize),
    /// Where the page before ended, as the server wrote it.
    Cursor(String),
}

/// A claimed job.
pub(crate) struct Delivery {
    pub(crate) job: Job,
    pub(crate) lease: Lease,
}

/// The lease of a claimed job.
pub(crate) struct Lease {
    pub(crate) token: Token,
    /// How long it lasts after each heartbeat.
    pub(crate) span: Duration,
    /// How long the run may take.
    pub(crate) timeout: Option<Duration>,
}

/// What proves that the worker holds the lease.
pub(crate) enum Token {
    /// The token as the server wrote it; servers without tokens know only the worker's name.
    #[cfg(feature = "http")]
    Wire(Option<Box<str>>),
    #[cfg(feature = "embedded")]
    Lease(redrive_store::JobId, redrive_store::LeaseToken),
}

/// The end of an attempt.
pub(crate) struct RunReport {
    pub(crate) run: Arc<Run>,
    pub(crate) ending: Ending,
}

/// How a run ended, as it is reported.
#[derive(Debug)]
pub(crate) enum Ending {
    Done(Option<Box<RawValue>>),
    Failed(Failure),
    /// Released unfinished, to run again after this time.
    Released(Duration),
    /// Released because this worker cannot run it, to run elsewhere after this time.
    Declined {
        reason: String,
        wait: Duration,
    },
}

/// The answer to the report of a run.
#[derive(Clone, Debug)]
pub(crate) enum Settled {
    /// The job is in this state now, and may run again after this time.
    Accepted { state: Box<str>, retry_after: Option<Duration>, dead: bool },
    /// The report was refused, and changed nothing.
    Refused(crate::Refused),
}

/// The answer to a heartbeat.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeartbeatAnswer {
    /// The indices of runs whose lease is lost, and why.
    pub(crate) lost: Vec<(usize, Cancelled)>,
    pub(crate) directive: Directive,
}

/// What the server wants a worker to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "http"), allow(dead_code, reason = "an engine in this process sends no directives"))]
pub(crate) enum Directive {
    #[default]
    Run,
    /// Claim no further jobs.
    Quiet,
    /// Stop.
    Terminate,
}

/// The progress of a run.
#[derive(Debug)]
pub(crate) struct ProgressUpdate {
    pub(crate) percent: f64,
    pub(crate) message: String,
    pub(crate) data: Option<Box<RawValue>>,
}
