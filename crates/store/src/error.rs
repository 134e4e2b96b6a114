//! What a store can answer besides success.

use crate::{Duplicate, JobId, QueueFull, State};
use std::fmt;

/// The store itself is not able to answer. Nothing is known of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// Not now; the same call may succeed later. The write may or may not have happened.
    Unavailable(String),
    /// Not ever: what is on disk is damaged, too new, or in use by another process.
    Broken(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "the store cannot be reached: {why}"),
            Self::Broken(why) => write!(f, "the store is broken: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// The store refuses, and nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such job.
    NotFound,
    /// The job is in a state in which this cannot happen.
    WrongState(State),
    /// The lease was good once; it ended, and the job has moved on.
    StaleLease,
    /// There never was such a lease.
    WrongLease,
    /// Another worker holds the job.
    OtherWorker,
    /// The job was released too often in a row.
    TooManyReleases(u32),
    /// The job must be unique, and another one is there.
    Duplicate(Duplicate),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => write!(f, "there is no such job"),
            Self::WrongState(state) => write!(f, "the job is {state}"),
            Self::StaleLease => write!(f, "the lease is over; the job has moved on without it"),
            Self::WrongLease => write!(f, "the job was never leased under this token"),
            Self::OtherWorker => write!(f, "another worker holds the job"),
            Self::TooManyReleases(most) => {
                write!(f, "the job was released {most} times in a row already; let it run or fail")
            }
            Self::Duplicate(duplicate) => duplicate.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

/// A batch of new jobs that is refused whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnqueueRefusal {
    /// The id of a job is taken.
    IdTaken {
        /// Its position in the batch, from 0.
        index: usize,
        /// The id.
        id: JobId,
    },
    /// A job that must be unique is not, and its policy is to refuse it then.
    Duplicate {
        /// Its position in the batch, from 0.
        index: usize,
        /// What it is a duplicate of.
        duplicate: Duplicate,
    },
    /// The queue of a job would have more jobs that wait than the job allows.
    QueueFull {
        /// Its position in the batch, from 0.
        index: usize,
        /// How full the queue is.
        full: QueueFull,
    },
}

impl fmt::Display for EnqueueRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdTaken { index, id } => {
                write!(f, "job {index} of the batch has the name {id}, which is taken; names are used once")
            }
            Self::Duplicate { index, duplicate } => {
                write!(f, "job {index} of the batch is a duplicate: {duplicate}")
            }
            Self::QueueFull { full, .. } => full.fmt(f),
        }
    }
}

impl std::error::Error for EnqueueRefusal {}
