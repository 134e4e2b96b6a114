//! The one place through which a due job becomes ready. Today it honours pauses.

use redrive_store::{Held, Queue};
use std::sync::{Arc, PoisonError, RwLock};

/// The gates of all queues: which are closed.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    closed: RwLock<Arc<Held>>,
    /// Held from asking the store until its answer is noted: answers that overtake each other would
    /// leave a gate closed before an open queue.
    pub(crate) noting: tokio::sync::Mutex<()>,
}

impl Gates {
    /// The queues whose due jobs must not become ready.
    pub(crate) fn held(&self) -> Arc<Held> {
        Arc::clone(&self.closed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes note of a queue as the store has it.
    pub(crate) fn note(&self, queue: &Queue) {
        if queue.paused {
            self.change(|closed| closed.hold_queue(Arc::clone(&queue.name)));
        } else {
            self.open(&queue.name);
        }
    }

    /// Takes note of all queues that are paused.
    pub(crate) fn note_all(&self, paused: Vec<Arc<str>>) {
        self.change(|closed| *closed = Held::of_queues(paused));
    }

    /// Opens the gate of a queue.
    pub(crate) fn open(&self, queue: &str) {
        self.change(|closed| closed.free_queue(queue));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) {
        change(Arc::make_mut(&mut self.closed.write().unwrap_or_else(PoisonError::into_inner)));
    }
}
