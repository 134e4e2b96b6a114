//! Handing in jobs.

use crate::events::Happening;
use crate::layers::{Effective, PolicyDocument};
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
    pub policy: Option<PolicyDocument>,
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
        let mut ids = self.new_ids(self.clock.now());
        let mut jobs = Vec::with_capacity(submissions.len());
        for (index, submission) in submissions.into_iter().enumerate() {
            jobs.push(self.new_job(submission, &mut ids, |effective| body(index, effective))?);
        }
        self.keep(jobs).await
    }

    /// Keeps jobs whose policy is resolved already, all or none.
    ///
    /// # Errors
    /// A name that is taken; nothing is kept then.
    pub async fn keep(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, EngineError> {
        let now = self.clock.now();
        let jobs = jobs.into_iter().map(|job| self.stored_job(job)).collect();
        let enqueued = self.store.enqueue(jobs, now).await?;
        let enqueued = enqueued.map_err(|duplicate| EngineError::Duplicate(duplicate.id))?;
        let created = || {
            enqueued.iter().filter_map(|answer| match answer {
                Enqueued::Created(job) => Some(job),
                Enqueued::Existing(_) => None,
            })
        };
        self.chronicle.note(now, created().map(|job| (Happening::Enqueued, job)));
        self.wake(created());
        Ok(enqueued.into_iter().map(|enqueued| self.shown_enqueued(enqueued)).collect())
    }

    fn new_job(
        &self,
        submission: Submission,
        ids: &mut NewIds,
        body: impl FnOnce(&Effective) -> Blob,
    ) -> Result<NewJob, EngineError> {
        let Submission { kind, queue, priority, start, expires, timeout, lease, policy, idempotency_key, id } =
            submission;
        let effective = self.settings.layers.resolve(policy, &kind, &queue).map_err(EngineError::InvalidPolicy)?;
        let body = body(&effective);
        let spec = Spec { kind, queue, priority, body, policy: effective.policy, timeout, lease, expires };
        let id = id.unwrap_or_else(|| ids.next_id());
        Ok(NewJob { id, spec: Arc::new(spec), start, idempotency_key })
    }

    /// Names for jobs that bring none.
    pub fn new_ids(&self, now: Moment) -> NewIds {
        let random = u128::from(self.randomness.bits()) << 64 | u128::from(self.randomness.bits());
        // Without the highest of the 62 bits that are counted up, so that no carry leaves them.
        NewIds { now, random: random & !(1 << 61) }
    }
}

/// Names in ascending order: jobs of one batch become available at the same moment, and then their
/// names decide which of them runs first.
#[derive(Debug)]
pub struct NewIds {
    now: Moment,
    random: u128,
}

impl NewIds {
    /// The next name.
    #[must_use]
    pub fn next_id(&mut self) -> JobId {
        self.random += 1;
        JobId::new(self.now, self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_batch_ascend() {
        for random in [0, !(1 << 61), 0x1234_5678_9abc_def0 & !(1 << 61)] {
            let mut ids = NewIds { now: Moment::from_micros(1_770_976_800_000_000), random };
            let names: Vec<JobId> = (0..1_000).map(|_| ids.next_id()).collect();
            assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "from {random:x}");
        }
    }
}
