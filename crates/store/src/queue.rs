//! Queues as a store answers them.

use crate::State;
use redrive_policy::Moment;
use std::sync::Arc;

/// A queue and what is in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: Arc<str>,
    /// Whether it is paused.
    pub paused: bool,
    /// When it was first seen.
    pub created: Moment,
    /// How many jobs are in each state, in the order of [`State::ALL`].
    pub counts: [usize; 8],
}

/// Why a queue is not removed.
#[derive(Clone, Debug, PartialEq)]
pub enum QueueRefusal {
    /// There is none of this name.
    NotFound,
    /// It has jobs.
    HasJobs(Queue),
}

impl Queue {
    /// How many jobs are in it.
    #[must_use]
    pub fn jobs(&self) -> usize {
        self.counts.iter().sum()
    }

    /// How many jobs are in a state.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        State::ALL.iter().position(|other| *other == state).map_or(0, |index| self.counts[index])
    }
}

/// What to do about a queue that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Create it.
    Create,
    /// Change nothing, and answer that there is none.
    Refuse,
}
