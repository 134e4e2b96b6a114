//! Bounds on the depth of queues: how many jobs wait in them.

use crate::{EnqueueRefusal, JobId, NewJob, States};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A queue that has no room for a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueFull {
    /// Its name.
    pub queue: Arc<str>,
    /// How many jobs wait in it.
    pub depth: u64,
    /// How many may wait once a job of the batch is stored.
    pub bound: u64,
    /// How many more would wait in it.
    pub jobs: u64,
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { queue, depth, bound, jobs } = self;
        write!(
            f,
            "the queue \"{queue}\" is full: {depth} jobs wait in it, at most {bound} may, and {jobs} would be added"
        )
    }
}

impl States {
    /// Those of jobs that wait: the depth of a queue is the number of its jobs in these.
    pub const WAITING: Self = Self::from_bits(0b0001_0111);
}

/// How the jobs of a batch change the depths of queues.
#[derive(Debug, Default)]
pub(crate) struct Depths {
    /// How many more jobs wait in each queue.
    added: HashMap<Arc<str>, i64>,
    /// The queues of the jobs of the batch.
    queues: HashMap<JobId, Arc<str>>,
    /// The jobs that bring a bound: position, queue and bound.
    bounded: Vec<(usize, Arc<str>, u64)>,
}

impl Depths {
    /// Whether any of these jobs brings a bound.
    pub(crate) fn matter(jobs: &[NewJob]) -> bool {
        jobs.iter().any(|new| new.depth.is_some())
    }

    /// The job at a position of the batch is stored.
    pub(crate) fn enter(&mut self, index: usize, new: &NewJob) {
        let queue = &new.spec.queue;
        *self.added.entry(Arc::clone(queue)).or_default() += 1;
        self.queues.insert(new.id, Arc::clone(queue));
        self.bounded.extend(new.depth.map(|bound| (index, Arc::clone(queue), bound)));
    }

    /// A job is replaced. `stored` is its queue, where it was stored before the batch and waits.
    pub(crate) fn leave(&mut self, id: JobId, stored: Option<&Arc<str>>) {
        let own = self.queues.remove(&id);
        if let Some(queue) = own.as_ref().or(stored) {
            *self.added.entry(Arc::clone(queue)).or_default() -= 1;
        }
    }

    /// The queues of which the depth has to be known.
    #[cfg(feature = "postgres")]
    pub(crate) fn queues(&self) -> impl Iterator<Item = &Arc<str>> {
        self.bounded.iter().map(|(_, queue, _)| queue)
    }

    /// The batch is refused where a job of it brings a bound that the depth of its queue would pass, unless the depth
    /// does not grow.
    pub(crate) fn check(&self, depth: impl Fn(&Arc<str>) -> u64) -> Result<(), EnqueueRefusal> {
        for (index, queue, bound) in &self.bounded {
            let jobs = self.added.get(queue).and_then(|added| u64::try_from(*added).ok()).unwrap_or(0);
            let depth = depth(queue);
            if jobs > 0 && depth.saturating_add(jobs) > *bound {
                let full = QueueFull { queue: Arc::clone(queue), depth, bound: *bound, jobs };
                return Err(EnqueueRefusal::QueueFull { index: *index, full });
            }
        }
        Ok(())
    }
}
