//! What can arrive in the inbox of a run.

use crate::run::RunId;
use crate::{Blob, EventBody, EventKind, FailedAttempt, JobEnd, JobId, Transition};
use redrive_policy::Moment;
use std::sync::Arc;

/// A message in the inbox of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its number, unique in the store. Messages are read in the order of their numbers. What is written at the same
    /// time by several nodes may become visible in another order.
    pub number: u64,
    /// When it was written.
    pub at: Moment,
    /// What it says.
    pub body: MessageBody,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub enum MessageBody {
    /// A job of the run ended.
    JobEnded {
        /// The number that the run gave to the job.
        child: u64,
        /// The job.
        id: JobId,
        /// Which generation of it, from 0.
        generation: u32,
        /// How it ended.
        end: ChildEnd,
    },
    /// A job of the run had ended, and was redriven.
    JobRedriven {
        /// The number that the run gave to the job.
        child: u64,
        /// The job.
        id: JobId,
        /// The generation that begins.
        generation: u32,
    },
    /// A run that this one started ended.
    RunEnded {
        /// The number that the run gave to the other.
        child: u64,
        /// The other run.
        id: RunId,
        /// Whether it succeeded.
        succeeded: bool,
        /// Its result, or what went wrong.
        result: Blob,
    },
    /// A signal, from outside or from another run.
    Signal(Signal),
    /// Something happened that the run wants to learn of.
    Event {
        /// When.
        at: Moment,
        /// What.
        event: EventBody,
    },
}

/// A message that a caller sends to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// What it is, such as `cancel`.
    pub name: Arc<str>,
    /// What belongs to it.
    pub body: Blob,
}

/// How a job of a run ended: as [`JobEnd`], to be stored.
#[derive(Clone, Debug, PartialEq)]
pub enum ChildEnd {
    /// An attempt succeeded.
    Completed {
        /// What the handler returned.
        result: Option<Blob>,
    },
    /// An attempt failed, and the policy stopped the job.
    Failed {
        /// The last failure.
        failure: FailedAttempt,
        /// Whether the job is a dead letter.
        dead: bool,
    },
    /// The job expired before an attempt succeeded.
    Expired {
        /// The last failure of this generation.
        last_failure: Option<FailedAttempt>,
        /// Whether the job is a dead letter.
        dead: bool,
    },
    /// The job was cancelled.
    Cancelled {
        /// The last failure of this generation.
        last_failure: Option<FailedAttempt>,
    },
}

impl From<JobEnd<'_>> for ChildEnd {
    fn from(end: JobEnd<'_>) -> Self {
        match end {
            JobEnd::Completed { result } => Self::Completed { result: result.cloned() },
            JobEnd::Failed { failure, dead } => Self::Failed { failure: failure.clone(), dead },
            JobEnd::Expired { last_failure, dead } => Self::Expired { last_failure: last_failure.cloned(), dead },
            JobEnd::Cancelled { last_failure } => Self::Cancelled { last_failure: last_failure.cloned() },
        }
    }
}

impl Transition {
    /// The run that learns of this event; `None` where the job has none, or the event concerns none.
    #[must_use]
    pub fn told_run(&self) -> Option<RunId> {
        let parent = self.job.parent?;
        (self.event == EventKind::Redriven || self.end().is_some()).then_some(parent.run)
    }

    /// What the run of the job has to learn of this event; `None` where the job has no run, or the event concerns
    /// none.
    #[must_use]
    pub fn message(&self) -> Option<(RunId, MessageBody)> {
        let parent = self.job.parent?;
        let (id, child, generation) = (self.job.id, parent.child, self.generation());
        let body = match self.event {
            EventKind::Redriven => MessageBody::JobRedriven { child, id, generation },
            _ => MessageBody::JobEnded { child, id, generation, end: self.end()?.into() },
        };
        Some((parent.run, body))
    }
}
