//! The one place through which a due job becomes ready. Today it honours pauses.

use redrive_store::{Job, Queue};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// The gates of all queues: which are closed.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    closed: RwLock<HashSet<Arc<str>>>,
    /// Held from asking the store until its answer is noted: answers that overtake each other would
    /// leave a gate closed before an open queue.
    pub(crate) noting: tokio::sync::Mutex<()>,
}

impl Gates {
    /// Whether a due job may become ready.
    pub(crate) fn lets_through(&self, job: &Job) -> bool {
        !self.closed.read().unwrap_or_else(PoisonError::into_inner).contains(&job.spec.queue)
    }

    /// Takes note of a queue as the store has it.
    pub(crate) fn note(&self, queue: &Queue) {
        if queue.paused {
            self.closed.write().unwrap_or_else(PoisonError::into_inner).insert(queue.name.clone());
        } else {
            self.open(&queue.name);
        }
    }

    /// Opens the gate of a queue.
    pub(crate) fn open(&self, queue: &str) {
        self.closed.write().unwrap_or_else(PoisonError::into_inner).remove(queue);
    }
}
