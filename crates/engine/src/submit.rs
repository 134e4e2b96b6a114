//! Enqueueing jobs.

use crate::layers::{Effective, PolicyDocument};
use crate::wall::{shown_job, shown_transition};
use crate::{Engine, EngineError};
use redrive_policy::{Moment, Span};
use redrive_store::{
    Blob, EnqueueRefusal, Enqueued, EventKind, JobId, NewJob, OwnLimit, Spec, Start, Transition, Unique,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// A job as a producer enqueues it: `Submission { priority: 5, ..Submission::new(kind, queue, body) }`.
#[derive(Clone, Debug)]
pub struct Submission {
    /// Its id; absent, the engine makes one.
    pub id: Option<JobId>,
    /// What kind of work it is.
    pub kind: Arc<str>,
    /// The queue that it waits in.
    pub queue: Arc<str>,
    /// Higher numbers run first.
    pub priority: i32,
    /// Where it starts.
    pub start: Start,
    /// When it expires.
    pub expires: Option<Moment>,
    /// How long one run may take.
    pub timeout: Option<Span>,
    /// How long a lease lasts.
    pub lease: Option<Span>,
    /// What happens after a failure.
    pub policy: JobPolicy,
    /// A second job with the same key is not enqueued.
    pub idempotency_key: Option<Arc<str>>,
    /// What it must be unique in.
    pub unique: Option<Arc<Unique>>,
    /// The limit that it brings.
    pub limit: Option<OwnLimit>,
    /// Everything else about it, one JSON object; the engine does not read it.
    pub body: Blob,
}

impl Submission {
    /// A job that may run at once, with what is configured for such jobs.
    pub fn new(kind: impl Into<Arc<str>>, queue: impl Into<Arc<str>>, body: Blob) -> Self {
        Self {
            id: None,
            kind: kind.into(),
            queue: queue.into(),
            priority: 0,
            start: Start::Available,
            expires: None,
            timeout: None,
            lease: None,
            policy: JobPolicy::Configured,
            idempotency_key: None,
            unique: None,
            limit: None,
            body,
        }
    }
}

/// The retry policy of a job to be enqueued.
#[derive(Clone, Debug)]
pub enum JobPolicy {
    /// What is configured for such jobs.
    Configured,
    /// Its own, as it was written.
    Own(PolicyDocument),
    /// What [`Engine::effective`] answered for the job.
    Effective(Arc<Effective>),
}

impl Engine {
    /// Enqueues jobs, all or none.
    ///
    /// # Errors
    /// The first policy that is not valid, an id that is taken, or a queue without room; nothing is enqueued then.
    pub async fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<Enqueued>, EngineError> {
        let mut ids = self.new_ids(self.now());
        let mut jobs = Vec::with_capacity(submissions.len());
        for submission in submissions {
            let depth = self.depth_of(&submission.queue);
            jobs.push(NewJob { depth, ..self.new_job(submission, &mut ids)? });
        }
        self.enqueue(jobs).await
    }

    async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, EngineError> {
        let now = self.clock.now();
        let jobs: Vec<NewJob> = jobs.into_iter().map(|job| self.stored_job(job)).collect();
        let bounded = jobs.iter().any(|job| job.depth.is_some());
        let kinds: Vec<Arc<str>> = jobs.iter().filter(|_| bounded).map(|job| Arc::clone(&job.spec.kind)).collect();
        let begun = Instant::now();
        let enqueued = self.store.enqueue(jobs, now).await?;
        let took = begun.elapsed();
        let enqueued = enqueued.map_err(|refusal| match refusal {
            EnqueueRefusal::IdTaken { id, .. } => EngineError::Duplicate(id),
            EnqueueRefusal::Duplicate { index, duplicate } => EngineError::NotUnique(index, duplicate),
            EnqueueRefusal::QueueFull { index, full } => {
                self.rejected(&full, kinds.get(index), now);
                EngineError::QueueFull(full)
            }
        })?;
        let answers: Vec<Answer> = enqueued.into_iter().map(|answer| Answer::of(answer, now)).collect();
        self.publish(answers.iter().flat_map(Answer::happened));
        if let Some(observer) = self.observer.get() {
            let queues: BTreeSet<&Arc<str>> = answers.iter().map(|answer| &answer.enqueued.job.spec.queue).collect();
            queues.into_iter().for_each(|queue| observer.enqueued(queue, took));
        }
        if answers.iter().flat_map(|answer| &answer.replaced).any(|transition| transition.told_run().is_some()) {
            self.advance_woken().await;
        }
        let ahead_us = self.wall().ahead_us;
        Ok(answers.into_iter().map(|answer| answer.shown(ahead_us)).collect())
    }

    /// The job that a submission asks for.
    pub(crate) fn new_job(&self, submission: Submission, ids: &mut NewIds) -> Result<NewJob, EngineError> {
        let Submission { kind, queue, priority, start, expires, timeout, lease, policy, id, body, .. } = submission;
        let (idempotency_key, unique, limit) = (submission.idempotency_key, submission.unique, submission.limit);
        let resolve = |own| self.settings.layers.resolve(own, &kind, &queue).map_err(EngineError::InvalidPolicy);
        let policy = match policy {
            JobPolicy::Configured => resolve(None)?.policy,
            JobPolicy::Own(written) => resolve(Some(written))?.policy,
            JobPolicy::Effective(effective) => Arc::clone(&effective.policy),
        };
        let limits = self.limits_of(&kind, limit);
        let spec = Spec { kind, queue, priority, body, policy, timeout, lease, expires, limits };
        let id = id.unwrap_or_else(|| ids.next_id());
        Ok(NewJob { id, spec: Arc::new(spec), start, idempotency_key, parent: None, unique, depth: None })
    }

    /// Ids for jobs that bring none.
    pub(crate) fn new_ids(&self, now: Moment) -> NewIds {
        let random = u128::from(self.randomness.bits()) << 64 | u128::from(self.randomness.bits());
        // Without the highest of the 62 bits that are counted up, so that no carry leaves them.
        NewIds { now, random: random & !(1 << 61) }
    }
}

/// What became of a new job, as events and callers need it.
struct Answer {
    kind: Kind,
    enqueued: Transition,
    replaced: Vec<Transition>,
}

#[derive(PartialEq)]
enum Kind {
    New,
    Existing,
    Ignored,
}

impl Answer {
    fn of(answer: Enqueued, now: Moment) -> Self {
        let (kind, job, replaced) = match answer {
            Enqueued::Created(job) => (Kind::New, job, Vec::new()),
            Enqueued::Replaced { job, replaced } => (Kind::New, job, replaced),
            Enqueued::Existing(job) => (Kind::Existing, job, Vec::new()),
            Enqueued::Ignored(job) => (Kind::Ignored, job, Vec::new()),
        };
        Self { kind, enqueued: Transition::new(job, EventKind::Enqueued, None, now), replaced }
    }

    /// What happened to jobs: those that are replaced are cancelled before the new one is stored.
    fn happened(&self) -> impl Iterator<Item = &Transition> + Clone {
        let is_new = self.kind == Kind::New;
        self.replaced.iter().chain(is_new.then_some(&self.enqueued))
    }

    fn shown(self, ahead_us: i64) -> Enqueued {
        let job = shown_job(self.enqueued.job, ahead_us);
        match self.kind {
            Kind::Existing => Enqueued::Existing(job),
            Kind::Ignored => Enqueued::Ignored(job),
            Kind::New if self.replaced.is_empty() => Enqueued::Created(job),
            Kind::New => {
                let shown = |transition| shown_transition(transition, ahead_us);
                Enqueued::Replaced { job, replaced: self.replaced.into_iter().map(shown).collect() }
            }
        }
    }
}

/// Ids in ascending order: jobs of one batch become available at the same moment, and then their
/// ids decide which of them runs first.
#[derive(Debug)]
pub(crate) struct NewIds {
    now: Moment,
    random: u128,
}

impl NewIds {
    /// The next id.
    fn next_id(&mut self) -> JobId {
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
