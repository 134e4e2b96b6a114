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

/// A queue, and what waits in it, as operators watch it.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueLoad {
    /// The queue.
    pub queue: Queue,
    /// How many of its discarded jobs are dead letters.
    pub dead: usize,
    /// How many scheduled and retryable jobs are due, up to [`QueueLoad::MOST_DUE`].
    pub due: usize,
    /// The earliest time at which a scheduled or retryable job is due, or was.
    pub first_due: Option<Moment>,
    /// Since when the next job that a claim gets has been available. Jobs with limits of their own are not looked at.
    pub next_available: Option<Moment>,
}

impl QueueLoad {
    /// Up to how many due jobs of a queue are counted: they are looked at one by one.
    pub const MOST_DUE: usize = 10_000;
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
