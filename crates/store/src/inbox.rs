//! What applications leave in a store in their own transactions, to be made jobs of.

use crate::{Job, JobId, NewJob, Transition};
use redrive_policy::Moment;

/// A job as an application has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxEntry<'a> {
    /// The id that the job will have, and that the application was given.
    pub id: JobId,
    /// When it was left there.
    pub at: Moment,
    /// The document.
    pub text: &'a str,
}

/// Makes a job of an entry, or says why that is not possible.
pub type Decoder<'a> = dyn Fn(&InboxEntry<'_>) -> Result<NewJob, String> + Send + Sync + 'a;

/// What became of some entries. They are gone, except those that were set aside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drained {
    /// The jobs that they became.
    pub jobs: Vec<Job>,
    /// How many had the idempotency key of a stored job, or were duplicates of one that are ignored.
    pub known: usize,
    /// What happened to jobs that were replaced by some of them.
    pub replaced: Vec<Transition>,
    /// Those that were set aside, each with the reason.
    pub refused: Vec<(JobId, String)>,
}

impl Drained {
    /// How many entries there were.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.jobs.len() + self.known + self.refused.len()
    }
}
