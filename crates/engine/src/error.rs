//! What a command can answer besides success.

use redrive_policy::Problems;
use redrive_store::{JobId, Queue, Refusal, StoreError};
use std::fmt;
use std::sync::Arc;

/// A command that was not carried out. Nothing has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineError {
    /// The request is not valid.
    Invalid(Problems),
    /// The retry policy of the request is not valid.
    InvalidPolicy(Problems),
    /// A job with this id exists.
    Duplicate(JobId),
    /// The job does not allow it.
    Refused(JobId, Refusal),
    /// There is no such queue.
    NoSuchQueue(Arc<str>),
    /// The queue has jobs.
    QueueHasJobs(Box<Queue>),
    /// The store did not answer. Whether the command was carried out is not known.
    Store(StoreError),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(problems) => problems.fmt(f),
            Self::InvalidPolicy(problems) => write!(f, "the retry policy is not valid: {problems}"),
            Self::Duplicate(id) => write!(f, "a job {id} is kept already"),
            Self::Refused(id, refusal) => write!(f, "job {id}: {refusal}"),
            Self::NoSuchQueue(name) => write!(f, "there is no queue \"{name}\""),
            Self::QueueHasJobs(queue) => write!(f, "the queue \"{}\" has {} jobs", queue.name, queue.jobs()),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for EngineError {}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
