//! A store that is interrupted at one of its writes.

use redrive_store::testing::{Verb, Wrapper};
use redrive_store::{Memory, Store, StoreError, StoreFuture};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a store is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Nowhere.
    None,
    /// Before the write of this number, from 1: nothing of it is stored.
    Before(u64),
    /// After the write of this number: all of it is stored, and its caller does not learn of it.
    After(u64),
}

/// A store in memory that does not answer one of its writes.
pub(super) struct Interrupted {
    memory: Memory,
    at: Interruption,
    writes: AtomicU64,
}

impl Interrupted {
    pub(super) const fn new(memory: Memory, at: Interruption) -> Self {
        Self { memory, at, writes: AtomicU64::new(0) }
    }

    /// How many writes there were.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn write<'a, T: Send + 'a>(&self, call: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a) -> StoreFuture<'a, T> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let at = self.at;
        let lost = || StoreError::Unavailable("the answer is lost".to_owned());
        Box::pin(async move {
            if at == Interruption::Before(number) {
                return Err(lost());
            }
            let answer = call().await?;
            if at == Interruption::After(number) { Err(lost()) } else { Ok(answer) }
        })
    }
}

impl Wrapper for Interrupted {
    fn inner(&self) -> &dyn Store {
        &self.memory
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        verb: Verb,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        match verb {
            Verb::Enqueue
            | Verb::Settle
            | Verb::Cancel
            | Verb::Redrive
            | Verb::StartRuns
            | Verb::Advance
            | Verb::Signal => self.write(move || call(&self.memory)),
            _ => call(&self.memory),
        }
    }
}
