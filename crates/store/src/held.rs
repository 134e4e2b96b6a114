//! Groups of jobs that are held back.

use crate::Spec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The groups of jobs that are held: none of their jobs is claimed, and none becomes available when it is due.
/// Whatever else happens to a job goes on: it expires, and a run of it ends.
///
/// A group is a queue. A store finds the jobs of a group by an index and passes over the group as a whole, so that
/// the cost of a held group does not depend on how many jobs are in it. For the reason of the hold it has no use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    queues: BTreeSet<Arc<str>>,
}

impl Held {
    /// Nothing is held.
    #[must_use]
    pub const fn new() -> Self {
        Self { queues: BTreeSet::new() }
    }

    /// These queues are held.
    pub fn of_queues(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { queues: names.into_iter().collect() }
    }

    /// Holds a queue.
    pub fn hold_queue(&mut self, name: Arc<str>) {
        self.queues.insert(name);
    }

    /// Ends the hold on a queue; answers whether there was one.
    pub fn free_queue(&mut self, name: &str) -> bool {
        self.queues.remove(name)
    }

    /// Whether a job that is specified like this is held.
    #[must_use]
    pub fn contains(&self, spec: &Spec) -> bool {
        self.contains_queue(&spec.queue)
    }

    /// Whether all jobs of a queue are held.
    #[must_use]
    pub fn contains_queue(&self, name: &str) -> bool {
        self.queues.contains(name)
    }

    /// The names of the queues that are held, in order.
    pub fn queues(&self) -> impl Iterator<Item = &Arc<str>> {
        self.queues.iter()
    }
}
