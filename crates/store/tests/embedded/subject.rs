//! Folders and stores to test with.

use crate::sim::SimDisk;
use redrive_store::embedded::{Embedded, OpenError, Opened, Options};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Everything so small that every test meets the ends of segments, and snapshots.
pub(crate) const TINY: Options = Options { segment_bytes: 4_096, snapshot_after_bytes: 3_000, snapshot_chunk_jobs: 2 };

/// Small segments, and no snapshot unless one is asked for.
pub(crate) const SMALL: Options =
    Options { segment_bytes: 16 << 10, snapshot_after_bytes: u64::MAX, snapshot_chunk_jobs: 3 };

/// The folder of every store on a disk in memory.
pub(crate) const DIR: &str = "/store";

/// Opens the store on a disk in memory.
pub(crate) fn open(disk: &SimDisk, options: Options) -> Result<(Embedded, Opened), OpenError> {
    Embedded::open_on(Arc::new(disk.clone()), DIR, options)
}

/// A folder of its own on the real disk, which is removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("redrive-store-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
