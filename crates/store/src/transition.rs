//! What happened to a job: the input of the event log, metrics, web hooks and durable runs.

use crate::{Blob, EventKind, FailedAttempt, Job, Lease, Overdue, State};
use redrive_policy::{Moment, Policy, Span, Verdict};
use std::sync::Arc;

/// One event, and the job after it.
///
/// What the job holds is not copied; the methods read it from there. They are exact only for a transition as
/// the store answered it, before anything else happens to the job.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Transition {
    /// The job after the event; where the event removed it, the job as it was.
    pub job: Job,
    /// What happened.
    pub event: EventKind,
    /// When it happened.
    pub at: Moment,
    /// The state before the event; absent for a new job.
    pub from: Option<State>,
    /// The attempt that the event concerns, within the job's generation. Where the event started or ended a run,
    /// that run, counted from 1, even if a release gave the attempt back; else the attempts made so far.
    pub attempt: u32,
    /// The lease that the event ended; present if and only if the job was active before.
    pub lease: Option<Lease>,
    /// What was decided about a failed attempt. A run that asked to be requeued has a verdict and no failure record.
    pub verdict: Option<Verdict>,
    /// The policy that decided, where that is not the job's own, because the worker brought one.
    pub policy: Option<Arc<Policy>>,
    /// Why the server ended the run; absent where the worker reported its end.
    pub overdue: Option<Overdue>,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JobEnd<'t> {
    /// A run succeeded.
    Completed {
        /// What the handler returned.
        result: Option<&'t Blob>,
    },
    /// A run failed, and the policy stopped the job. The verdict of the failure says why.
    Failed {
        /// The last failure.
        failure: &'t FailedAttempt,
        /// Whether the job is a dead letter.
        dead: bool,
    },
    /// The job expired before a run succeeded.
    Expired {
        /// The last failure of this generation, if a run of it failed.
        last_failure: Option<&'t FailedAttempt>,
        /// Whether the job is a dead letter.
        dead: bool,
    },
    /// The job was cancelled.
    Cancelled {
        /// The last failure of this generation, if a run of it failed.
        last_failure: Option<&'t FailedAttempt>,
    },
}

impl Transition {
    /// An event that ended no lease and followed no decision.
    #[must_use]
    pub const fn new(job: Job, event: EventKind, from: Option<State>, at: Moment) -> Self {
        let attempt = job.attempt;
        Self { job, event, at, from, attempt, lease: None, verdict: None, policy: None, overdue: None }
    }

    /// The generation that the event concerns, from 0; a redrive belongs to the generation that it begins.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.job.generation
    }

    /// The worker of the run that the event started or ended; empty where the worker gave no name.
    #[must_use]
    pub fn worker(&self) -> Option<&Arc<str>> {
        self.lease.as_ref().or(self.job.lease.as_ref()).map(|lease| &lease.worker)
    }

    /// The record of the failure, where a run failed.
    #[must_use]
    pub fn failure(&self) -> Option<&FailedAttempt> {
        match self.event {
            EventKind::RetryScheduled | EventKind::Discarded => self.job.failures.last(),
            _ => None,
        }
    }

    /// The policy that decided, where there was something to decide.
    #[must_use]
    pub fn decided_by(&self) -> Option<&Policy> {
        self.verdict.as_ref().map(|_| &**self.policy.as_ref().unwrap_or(&self.job.spec.policy))
    }

    /// How long the next run has to wait, where the event made the job wait for a time.
    #[must_use]
    pub fn delay(&self) -> Option<Span> {
        let due = self.job.due.filter(|_| self.lease.is_some())?;
        Some(self.verdict.and_then(|verdict| verdict.delay()).unwrap_or_else(|| due.since(self.at)))
    }

    /// How long the job waited for a worker, where the event started a run.
    #[must_use]
    pub fn wait_time(&self) -> Option<Span> {
        let available = self.job.times.available.filter(|_| self.event == EventKind::Claimed)?;
        Some(self.at.since(available))
    }

    /// How long the run took, where the event ended one.
    #[must_use]
    pub fn run_time(&self) -> Option<Span> {
        let started = self.job.times.started.filter(|_| self.lease.is_some())?;
        Some(self.at.since(started))
    }

    /// How the job ended, where the event ended it.
    #[must_use]
    pub fn end(&self) -> Option<JobEnd<'_>> {
        let last_failure = || self.job.failures.last().filter(|last| last.generation == self.generation());
        match self.event {
            EventKind::Completed => Some(JobEnd::Completed { result: self.job.result.as_ref() }),
            EventKind::Discarded => {
                self.job.failures.last().map(|failure| JobEnd::Failed { failure, dead: self.job.dead })
            }
            EventKind::Expired => Some(JobEnd::Expired { last_failure: last_failure(), dead: self.job.dead }),
            EventKind::Cancelled => Some(JobEnd::Cancelled { last_failure: last_failure() }),
            _ => None,
        }
    }
}

/// The answer to the report of a run's end.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// The run ended.
    Transition(Transition),
    /// The success was reported before, with the same token: nothing happened, and this is the job.
    Repeated(Job),
}

impl Settled {
    /// What happened, where something did.
    #[must_use]
    pub const fn transition(&self) -> Option<&Transition> {
        match self {
            Self::Transition(transition) => Some(transition),
            Self::Repeated(_) => None,
        }
    }

    /// The job as it is now.
    #[must_use]
    pub const fn job(&self) -> &Job {
        match self {
            Self::Transition(transition) => &transition.job,
            Self::Repeated(job) => job,
        }
    }

    /// The job as it is now.
    #[must_use]
    pub fn into_job(self) -> Job {
        match self {
            Self::Transition(transition) => transition.job,
            Self::Repeated(job) => job,
        }
    }
}

impl AsRef<Job> for Job {
    fn as_ref(&self) -> &Job {
        self
    }
}

impl AsRef<Job> for Transition {
    fn as_ref(&self) -> &Job {
        &self.job
    }
}

impl AsRef<Job> for Settled {
    fn as_ref(&self) -> &Job {
        self.job()
    }
}
