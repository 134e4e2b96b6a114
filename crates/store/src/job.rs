//! What is kept of a job.

use crate::{JobId, LeaseToken, State};
use redrive_policy::{History, Moment, Policy, Span, Verdict};
use std::sync::Arc;

/// Bytes that the store keeps and never reads: JSON text of whoever handed them in.
pub type Blob = Arc<[u8]>;

/// What is said about a job when it is handed in. Written once; only a revival may replace it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What kind of work it is, such as `email.send`.
    pub kind: Arc<str>,
    /// The queue that it waits in.
    pub queue: Arc<str>,
    /// Higher numbers run first.
    pub priority: i32,
    /// Everything else that was handed in.
    pub body: Blob,
    /// What happens after a failure.
    pub policy: Arc<Policy>,
    /// How long one run may take; absent, the engine's default holds.
    pub timeout: Option<Span>,
    /// How long a lease lasts without a sign of life; absent, what the claim asks for holds.
    pub lease: Option<Span>,
    /// When the job loses its point: no run, first or later, starts at this time or after it. A revival
    /// that says nothing else clears it.
    pub expires: Option<Moment>,
}

/// How a job begins another life.
#[derive(Clone, Debug, Default)]
pub struct Redrive {
    /// What is said about it from now on. Absent, what was said before, except that it does not expire.
    pub spec: Option<Arc<Spec>>,
    /// Who takes it back, for the record of what was replaced; empty where that is not known.
    pub by: Arc<str>,
}

/// A job to be kept.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its name.
    pub id: JobId,
    /// What is said about it.
    pub spec: Arc<Spec>,
    /// Where it starts.
    pub start: Start,
    /// A second job with the same key is not kept; the first one is handed back.
    pub idempotency_key: Option<Arc<str>>,
}

/// Where a job starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// It may run at once.
    Available,
    /// It may run from this time on.
    Scheduled(Moment),
    /// It may run once somebody activates it.
    Pending,
}

/// A job as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// What was said about it.
    pub spec: Arc<Spec>,
    /// Its state.
    pub state: State,
    /// How many runs have started since it was handed in, or revived.
    pub attempt: u32,
    /// What the policy remembers.
    pub history: History,
    /// When it may run; present while it is scheduled or retryable.
    pub due: Option<Moment>,
    /// Who holds it; present while it is active.
    pub lease: Option<Lease>,
    /// How many leases there have been, over all lives.
    pub leases: u32,
    /// How often it was revived.
    pub generation: u32,
    /// How often it was given back unfinished since its last failure.
    pub releases: u32,
    /// Whether it is kept among the dead letters; only while it is discarded.
    pub dead: bool,
    /// When things happened.
    pub times: Times,
    /// The delay that the last retry of this life waited, or waits; a release does not change it.
    pub last_delay: Option<Span>,
    /// The failed runs, oldest first; only the latest are kept.
    pub failures: Vec<FailedRun>,
    /// What revivals replaced, oldest first; only the latest are kept.
    pub revisions: Vec<Revision>,
    /// What the handler returned.
    pub result: Option<Blob>,
    /// The lease under which it was completed, so that a repeated report of success is known as
    /// such; present while it is completed.
    pub settled: Option<LeaseToken>,
    /// The worker that completed it; present while it is completed, empty where the worker gave no name.
    pub completed_by: Option<Arc<str>>,
}

/// How many bytes a job has besides its texts, at most about.
pub(crate) const FIXED_BYTES: usize = 1 << 10;
/// How many bytes a failed run or a revision has besides its text, at most about.
const ITEM_BYTES: usize = 256;

impl Job {
    /// About how many bytes it takes to tell all about the job: what was handed in, what that replaced, what came
    /// back, and the errors of its failures.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let payload = payload_bytes(&self.spec.body, self.result.as_ref(), &self.revisions);
        FIXED_BYTES + payload + failure_bytes(&self.failures)
    }

    /// Takes away what can be large and is not needed to tell jobs from each other: bodies and the result.
    pub(crate) fn strip(&mut self) {
        self.result = None;
        self.revisions.clear();
        if !self.spec.body.is_empty() {
            self.spec = Arc::new(Spec { body: Blob::default(), ..Spec::clone(&self.spec) });
        }
    }
}

/// The part of the failed runs in [`Job::bytes`].
pub(crate) fn failure_bytes(failures: &[FailedRun]) -> usize {
    failures.iter().map(|run| run.error.len() + ITEM_BYTES).sum()
}

/// The part of [`Job::bytes`] that can be left out of lists.
pub(crate) fn payload_bytes(body: &Blob, result: Option<&Blob>, revisions: &[Revision]) -> usize {
    let replaced: usize = revisions.iter().map(|revision| revision.body.len() + ITEM_BYTES).sum();
    body.len() + result.map_or(0, |result| result.len()) + replaced
}

/// When things happened to a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// It was handed in.
    pub created: Moment,
    /// It last became available.
    pub available: Option<Moment>,
    /// It last started.
    pub started: Option<Moment>,
    /// It ended.
    pub finished: Option<Moment>,
}

/// A worker's hold on a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// The proof of it.
    pub token: LeaseToken,
    /// Who holds it.
    pub worker: Arc<str>,
    /// The last sign of life: the claim, or the last extension.
    pub alive: Moment,
    /// When it runs out without a further sign of life.
    pub until: Moment,
    /// How long each sign of life lasts.
    pub span: Span,
    /// When the run has taken too long, whatever the signs of life; absent without a limit.
    pub deadline: Option<Moment>,
}

/// A run that failed, and what was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedRun {
    /// Which life of the job, from 0; a revival begins the next.
    pub generation: u32,
    /// Which run of that life, from 1.
    pub attempt: u32,
    /// Since when it had waited for a worker.
    pub available: Moment,
    /// When a worker took it.
    pub started: Moment,
    /// When it failed.
    pub at: Moment,
    /// The worker that ran it; empty where the worker gave no name.
    pub worker: Arc<str>,
    /// The error.
    pub error: Blob,
    /// What was decided, and why.
    pub verdict: Verdict,
}

/// How many failed runs are kept with a job. OJS §10.1 asks for ten.
pub const KEPT_FAILURES: usize = 25;

/// What was said about a job before a revival replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The last life for which it held, from 0.
    pub generation: u32,
    /// When it was replaced.
    pub at: Moment,
    /// Who replaced it; empty where that is not known.
    pub by: Arc<str>,
    /// The body that was replaced.
    pub body: Blob,
}

/// How many revisions are kept with a job.
pub const KEPT_REVISIONS: usize = 5;
