//! The stores that a simulation can run on.

use super::ram::RamDisk;
use redrive_store::embedded::{Embedded, Options};
use redrive_store::{Memory, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// A kind of store: how it is opened first, and again after the process died.
pub(crate) trait StoreKind {
    /// A new, empty store.
    fn open(&mut self) -> Arc<dyn Store>;

    /// The process dies now: what is not safe by now is lost. Nobody has let go of the store yet.
    fn cut(&mut self) {}

    /// The store as the process that died left it. Everybody has let go of it by now.
    fn reopen(&mut self) -> Arc<dyn Store>;

    /// The runtime that does the work of the store, where it needs one.
    fn runtime(&self) -> Option<&Handle> {
        None
    }
}

/// The store in memory, which outlives the engine on it.
#[derive(Default)]
pub(crate) struct InMemory(Memory);

impl StoreKind for InMemory {
    fn open(&mut self) -> Arc<dyn Store> {
        self.0 = Memory::new();
        self.reopen()
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        self.0 = self.0.reopened();
        Arc::new(self.0.clone())
    }
}

/// The embedded store, on a disk that loses what was not flushed.
#[derive(Default)]
pub(crate) struct OnDisk(RamDisk);

impl OnDisk {
    /// So small that every simulation meets the ends of files, and snapshots.
    const OPTIONS: Options = Options {
        segment_bytes: 8_192,
        snapshot_after_bytes: 12_000,
        snapshot_chunk_jobs: 3,
        look_every: Duration::from_secs(3_600),
        retry_compaction_after: Duration::from_secs(3_600),
        list_step_jobs: 10,
        list_most_jobs: usize::MAX,
    };
}

impl StoreKind for OnDisk {
    fn open(&mut self) -> Arc<dyn Store> {
        self.0 = RamDisk::default();
        self.reopen()
    }

    fn cut(&mut self) {
        self.0 = self.0.cut();
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        let (store, _) = Embedded::open_on(Arc::new(self.0.clone()), "/store", Self::OPTIONS)
            .unwrap_or_else(|error| panic!("the store does not open: {error}"));
        Arc::new(store)
    }
}
