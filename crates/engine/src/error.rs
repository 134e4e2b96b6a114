//! What a command can answer besides success.

use redrive_policy::Problems;
use redrive_store::{Duplicate, JobId, Queue, QueueFull, Refusal, RunId, RunRefusal, StoreError};
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
    /// The job at this position, from 0, must be unique, and is a duplicate.
    NotUnique(usize, Duplicate),
    /// The queue has no room for the jobs.
    QueueFull(QueueFull),
    /// The job does not allow it.
    Refused(JobId, Refusal),
    /// There is no such queue.
    NoSuchQueue(Arc<str>),
    /// The queue has jobs.
    QueueHasJobs(Box<Queue>),
    /// The engine has no such program.
    NoSuchProgram(Arc<str>),
    /// Another run has the key.
    RunKeyTaken(RunId),
    /// The run does not allow it.
    RefusedRun(RunId, RunRefusal),
    /// What a run is started with is too large.
    RunTooLarge {
        /// How many bytes it has.
        found: usize,
        /// How many are allowed.
        most: usize,
    },
    /// The store did not answer. Whether the command was carried out is not known.
    Store(StoreError),
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(problems) => problems.fmt(f),
            Self::InvalidPolicy(problems) => write!(f, "the retry policy is not valid: {problems}"),
            Self::Duplicate(id) => write!(f, "a job {id} is kept already"),
            Self::NotUnique(_, duplicate) => write!(f, "the job is a duplicate: {duplicate}"),
            Self::QueueFull(full) => full.fmt(f),
            Self::Refused(id, refusal) => write!(f, "job {id}: {refusal}"),
            Self::NoSuchQueue(name) => write!(f, "there is no queue \"{name}\""),
            Self::QueueHasJobs(queue) => write!(f, "the queue \"{}\" has {} jobs", queue.name, queue.jobs()),
            Self::NoSuchProgram(name) => write!(f, "there is no program \"{name}\" on this node"),
            Self::RunKeyTaken(id) => write!(f, "the run {id} has the key already"),
            Self::RefusedRun(id, refusal) => write!(f, "run {id}: {refusal}"),
            Self::RunTooLarge { found, most } => {
                write!(f, "the run has {found} bytes; at most {most} are allowed (runs.state_bytes)")
            }
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
