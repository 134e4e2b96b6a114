//! Handing in jobs.

use crate::events::Happening;
use crate::layers::{Effective, Written};
use crate::{Engine, EngineError};
use redrive_policy::{Moment, Span};
use redrive_store::{Blob, Enqueued, JobId, NewJob, Spec, Start};
use std::sync::Arc;

/// A job as somebody hands it in.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its name; absent, the engine makes one.
    pub id: Option<JobId>,
    /// What kind of work it is.
    pub kind: Arc<str>,
    /// The queue that it waits in.
    pub queue: Arc<str>,
    /// Higher numbers run first.
    pub priority: i32,
    /// Where it starts.
    pub start: Start,
    /// When it loses its point.
    pub expires: Option<Moment>,
    /// How long one run may take.
    pub timeout: Option<Span>,
    /// How long a lease lasts.
    pub lease: Option<Span>,
    /// Its own retry policy.
    pub policy: Option<Written>,
    /// A second job with the same key is not kept.
    pub idempotency_key: Option<Arc<str>>,
}

impl Engine {
    /// Hands in jobs, all or none. `body` makes what the store keeps of a job besides, from the
    /// policy that applies to it.
    ///
    /// # Errors
    /// The first policy that is not valid, or a name that is taken; nothing is kept then.
    pub async fn submit(
        &self,
        submissions: Vec<Submission>,
        body: impl Fn(usize, &Effective) -> Blob,
    ) -> Result<Vec<Enqueued>, EngineError> {
        let now = self.now();
        let mut jobs = Vec::with_capacity(submissions.len());
        for (index, submission) in submissions.into_iter().enumerate() {
            jobs.push(self.new_job(submission, now, |effective| body(index, effective))?);
        }
        self.keep(jobs).await
    }

    /// Keeps jobs whose policy is resolved already, all or none.
    ///
    /// # Errors
    /// A name that is taken; nothing is kept then.
    pub async fn keep(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, EngineError> {
        let now = self.now();
        let enqueued = self.store.enqueue(jobs, now).await?;
        let enqueued = enqueued.map_err(|duplicate| EngineError::Duplicate(duplicate.id))?;
        let created = || {
            enqueued.iter().filter_map(|answer| match answer {
                Enqueued::Created(job) => Some(job),
                Enqueued::Existing(_) => None,
            })
        };
        self.chronicle.note(now, created().map(|job| (Happening::Enqueued, job)));
        self.ring(created());
        Ok(enqueued)
    }

    fn new_job(
        &self,
        submission: Submission,
        now: Moment,
        body: impl FnOnce(&Effective) -> Blob,
    ) -> Result<NewJob, EngineError> {
        let Submission { kind, queue, priority, start, expires, timeout, lease, policy, idempotency_key, id } =
            submission;
        let effective = self.settings.layers.resolve(policy, &kind, &queue).map_err(EngineError::InvalidPolicy)?;
        let body = body(&effective);
        let id = id.unwrap_or_else(|| self.new_id(now));
        let spec = Spec { kind, queue, priority, body, policy: effective.policy, timeout, lease, expires };
        Ok(NewJob { id, spec: Arc::new(spec), start, idempotency_key })
    }

    /// A name for a job that brings none.
    #[must_use]
    pub fn new_id(&self, now: Moment) -> JobId {
        let random = u128::from(self.randomness.bits()) << 64 | u128::from(self.randomness.bits());
        JobId::new(now, random)
    }
}
