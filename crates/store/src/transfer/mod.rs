//! Whole stores on their way from one place to another.
//!
//! Everything of a job travels as it stands: its state, lease and token, what its policy remembers, its
//! failures, its result, and its idempotency key. So does every queue, every run with its messages, and what is stored
//! of limits. A copy is read again and compared, one by one, before it becomes a store.

mod compare;
mod copy;
mod error;

pub use copy::{Copied, CopyProgress, Phase, copy, survey};
pub use error::CopyError;

use crate::limit::GroupRow;
use crate::{Group, Job, JobId, Message, Run, RunId, StoreFuture};
use redrive_policy::Moment;
use std::sync::Arc;

/// How many jobs are read at a time.
pub(crate) const PAGE_JOBS: usize = 500;
/// A page ends early when the specifications of its jobs are this long, in bytes.
pub(crate) const PAGE_BYTES: usize = 8 << 20;

/// A job with all that belongs to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Portable {
    /// The job as it stands.
    pub job: Job,
    /// Its idempotency key.
    pub idempotency_key: Option<Arc<str>>,
}

/// A run with its inbox.
#[derive(Clone, Debug, PartialEq)]
pub struct PortableRun {
    /// The run as it stands.
    pub run: Run,
    /// Its messages, in the order of their numbers.
    pub messages: Vec<Message>,
}

/// What is stored of a limited group besides its jobs: what is set for it, and when its runs started.
#[derive(Clone, Debug, PartialEq)]
pub struct PortableGroup {
    /// The group.
    pub group: Group,
    pub(crate) row: GroupRow,
}

/// A queue apart from its jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMark {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is closed for claims.
    pub paused: bool,
    /// When it was first seen.
    pub created: Moment,
}

/// A whole store that does not change while it is read.
pub trait Source: Send {
    /// All queues, by name.
    fn queues(&mut self) -> StoreFuture<'_, Vec<QueueMark>>;

    /// How many jobs there are.
    fn count(&mut self) -> StoreFuture<'_, usize>;

    /// The jobs after this id, or the first ones, in the order of their ids: as many as are good to have
    /// in memory at once, and none only after the last.
    fn after(&mut self, last: Option<JobId>) -> StoreFuture<'_, Vec<Portable>>;

    /// The runs after this id, or the first ones, in the order of their ids, likewise.
    fn runs_after(&mut self, last: Option<RunId>) -> StoreFuture<'_, Vec<PortableRun>>;

    /// The groups after this one, or the first ones, in their order, likewise.
    fn groups_after(&mut self, last: Option<Group>) -> StoreFuture<'_, Vec<PortableGroup>>;

    /// How many jobs applications have left to be taken in since the reading began. They stay where they are.
    fn left_behind(&mut self) -> StoreFuture<'_, usize> {
        Box::pin(async { Ok(0) })
    }
}

/// An empty place that becomes a store at its end, or not at all: where it is dropped before, nothing that
/// could be taken for a store is left.
pub trait Target: Source {
    /// Stores queues as they are.
    fn add_queues(&mut self, queues: Vec<QueueMark>) -> StoreFuture<'_, ()>;

    /// Stores jobs as they are. Their queues are there already.
    fn add(&mut self, jobs: Vec<Portable>) -> StoreFuture<'_, ()>;

    /// Stores runs as they are, with their messages.
    fn add_runs(&mut self, runs: Vec<PortableRun>) -> StoreFuture<'_, ()>;

    /// Stores groups as they are. The queues of those that are queues are there already.
    fn add_groups(&mut self, groups: Vec<PortableGroup>) -> StoreFuture<'_, ()>;

    /// There is nothing to come. From now on the target can be read.
    fn seal(&mut self) -> StoreFuture<'_, ()>;

    /// Makes a store of it, safe from a power cut.
    fn finish(self: Box<Self>) -> StoreFuture<'static, ()>;
}
