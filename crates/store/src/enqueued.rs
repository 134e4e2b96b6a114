//! The answer to a new job.

use crate::{Job, Transition};

/// What became of a new job.
#[derive(Clone, Debug, PartialEq)]
pub enum Enqueued {
    /// It is stored.
    Created(Job),
    /// A job with the same idempotency key was there before; it is unchanged.
    Existing(Job),
    /// It is a duplicate of this job, which is unchanged, and its policy is to ignore it then.
    Ignored(Job),
    /// It is stored, in the place of others that were cancelled.
    Replaced {
        /// The job.
        job: Job,
        /// What happened to the others.
        replaced: Vec<Transition>,
    },
}

impl Enqueued {
    /// The job that is stored: the new one, or the one that was there before.
    #[must_use]
    pub const fn job(&self) -> &Job {
        match self {
            Self::Created(job) | Self::Existing(job) | Self::Ignored(job) | Self::Replaced { job, .. } => job,
        }
    }

    /// The job that is stored: the new one, or the one that was there before.
    #[must_use]
    pub fn into_job(self) -> Job {
        match self {
            Self::Created(job) | Self::Existing(job) | Self::Ignored(job) | Self::Replaced { job, .. } => job,
        }
    }

    /// Whether the job was not there before.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        matches!(self, Self::Created(_) | Self::Replaced { .. })
    }
}
