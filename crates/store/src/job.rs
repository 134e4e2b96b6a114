//! What is stored of a job.

use crate::{JobId, LeaseToken, Limits, Parent, State, Unique};
use redrive_policy::{History, Moment, Policy, Span, Verdict};
use std::sync::Arc;

/// Bytes that the store never reads: JSON text of the client that enqueued them.
pub type Blob = Arc<[u8]>;

/// The specification of a job. It is written when the job is enqueued; only a redrive may replace it.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// What kind of work it is, such as `email.send`.
    pub kind: Arc<str>,
    /// The queue that it waits in.
    pub queue: Arc<str>,
    /// Higher numbers run first.
    pub priority: i32,
    /// Everything else that the producer sent.
    pub body: Blob,
    /// What happens after a failure.
    pub policy: Arc<Policy>,
    /// How long one run may take; absent, the engine's default applies.
    pub timeout: Option<Span>,
    /// How long a lease lasts without a heartbeat; absent, what the claim asks for applies.
    pub lease: Option<Span>,
    /// When the job expires: no run, first or later, starts at this time or after it. A redrive that brings no other
    /// expiry clears it.
    pub expires: Option<Moment>,
    /// The limits of its runs besides that of its queue; most jobs have none.
    pub limits: Option<Arc<Limits>>,
}

impl Spec {
    /// A specification without limits of its own.
    pub fn new(kind: impl Into<Arc<str>>, queue: impl Into<Arc<str>>, body: Blob, policy: Arc<Policy>) -> Self {
        let (kind, queue) = (kind.into(), queue.into());
        Self { kind, queue, priority: 0, body, policy, timeout: None, lease: None, expires: None, limits: None }
    }
}

/// How a job begins another generation.
#[derive(Clone, Debug, Default)]
pub struct Redrive {
    /// The specification from now on. Absent, the one before, except that the job does not expire.
    pub spec: Option<Arc<Spec>>,
    /// What the job must be unique in from now on, where it has another specification; without one, it stays.
    pub unique: Option<Arc<Unique>>,
    /// Who redrives it, for the record of what was replaced; empty where that is not known.
    pub by: Arc<str>,
}

/// A job to be stored.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Its id.
    pub id: JobId,
    /// Its specification.
    pub spec: Arc<Spec>,
    /// Where it starts.
    pub start: Start,
    /// A second job with the same key is not stored; the answer is the first one.
    pub idempotency_key: Option<Arc<str>>,
    /// The run that starts it, which learns how it ends.
    pub parent: Option<Parent>,
    /// What it must be unique in.
    pub unique: Option<Arc<Unique>>,
    /// How many jobs may wait in its queue once it is stored, where the store is asked to enqueue it; absent, any
    /// number. It is not stored, and jobs of runs are not held to it.
    pub depth: Option<u64>,
}

impl NewJob {
    /// A job that may run at once.
    #[must_use]
    pub const fn new(id: JobId, spec: Arc<Spec>) -> Self {
        Self { id, spec, start: Start::Available, idempotency_key: None, parent: None, unique: None, depth: None }
    }
}

/// Where a job starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Start {
    /// It may run at once.
    Available,
    /// It may run from this time on.
    Scheduled(Moment),
    /// It may run once it is activated.
    Pending,
}

/// A job as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its specification.
    pub spec: Arc<Spec>,
    /// Its state.
    pub state: State,
    /// How many runs have started since it was enqueued or redriven.
    pub attempt: u32,
    /// What the policy remembers.
    pub history: History,
    /// When it may run; present while it is scheduled or retryable.
    pub due: Option<Moment>,
    /// The lease of the worker; present while it is active.
    pub lease: Option<Lease>,
    /// How many leases there have been, over all generations.
    pub leases: u32,
    /// How often it was redriven.
    pub generation: u32,
    /// How often it was released since its last failure.
    pub releases: u32,
    /// Whether it is a dead letter; only while it is discarded.
    pub dead: bool,
    /// When things happened.
    pub times: Times,
    /// The delay that the last retry of this generation waited, or waits; a release does not change it.
    pub last_delay: Option<Span>,
    /// The failed attempts, oldest first; only the latest are stored.
    pub failures: Vec<FailedAttempt>,
    /// What redrives replaced, oldest first; only the latest are stored.
    pub revisions: Vec<Revision>,
    /// What the handler returned.
    pub result: Option<Blob>,
    /// The lease under which it was completed, so that a repeated report of success is known as
    /// such; present while it is completed.
    pub settled: Option<LeaseToken>,
    /// The worker that completed it; present while it is completed, empty where the worker gave no name.
    pub completed_by: Option<Arc<str>>,
    /// The run that started it.
    pub parent: Option<Parent>,
    /// What it must be unique in.
    pub unique: Option<Arc<Unique>>,
}

/// How many bytes a job has besides its texts, at most about.
pub(crate) const FIXED_BYTES: usize = 1 << 10;
/// How many bytes a failed attempt or a revision has besides its text, at most about.
const ITEM_BYTES: usize = 256;

impl Job {
    /// About how many bytes the job has: its specification, what that replaced, its result, and the errors of its
    /// failures.
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

/// The part of the failed attempts in [`Job::bytes`].
pub(crate) fn failure_bytes(failures: &[FailedAttempt]) -> usize {
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
    /// It was enqueued.
    pub created: Moment,
    /// It last became available.
    pub available: Option<Moment>,
    /// It last started.
    pub started: Option<Moment>,
    /// It ended.
    pub finished: Option<Moment>,
}

/// The right of a worker to run a job for some time.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// Its token.
    pub token: LeaseToken,
    /// The worker.
    pub worker: Arc<str>,
    /// The last heartbeat: the claim, or the last extension.
    pub alive: Moment,
    /// When it runs out without a further heartbeat.
    pub until: Moment,
    /// How long the lease lasts after each heartbeat.
    pub span: Span,
    /// When the run times out, whatever the heartbeats; absent without a limit.
    pub deadline: Option<Moment>,
}

/// A run that failed, and what was decided.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt {
    /// Which generation of the job, from 0; a redrive begins the next.
    pub generation: u32,
    /// Which run of that generation, from 1.
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

/// How many failed attempts are stored with a job. Open Job Spec asks for ten.
pub const KEPT_FAILURES: usize = 25;

/// The body of a job before a redrive replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The last generation that it applied to, from 0.
    pub generation: u32,
    /// When it was replaced.
    pub at: Moment,
    /// Who replaced it; empty where that is not known.
    pub by: Arc<str>,
    /// The body that was replaced.
    pub body: Blob,
}

/// How many revisions are stored with a job.
pub const KEPT_REVISIONS: usize = 5;
