//! The stores that a simulation can run on.

use redrive_store::{Memory, Store};
use std::sync::Arc;

/// A kind of store: how it is opened first, and again after the process died.
///
/// A durable store is plugged in here: `open` makes an empty one, in a folder of its own, and `reopen`
/// opens the same folder. The simulation has let go of every handle by then.
pub(crate) trait Ground {
    /// A new, empty store.
    fn open(&mut self) -> Arc<dyn Store>;

    /// The store as the process that died left it.
    fn reopen(&mut self) -> Arc<dyn Store>;
}

/// The store in memory, which outlives the engine on it.
#[derive(Default)]
pub(crate) struct InMemory(Memory);

impl Ground for InMemory {
    fn open(&mut self) -> Arc<dyn Store> {
        self.0 = Memory::new();
        self.reopen()
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}
