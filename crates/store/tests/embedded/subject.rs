//! Stores to test with.

use crate::sim::SimDisk;
use redrive_store::embedded::{Embedded, OpenError, Opened, Options};
use std::sync::Arc;
use std::time::Duration;

/// Longer than any test takes, so that it never happens by chance.
const NEVER: Duration = Duration::from_secs(86_400);

/// Everything so small that every test meets the ends of segments, and snapshots.
pub(crate) const TINY: Options =
    Options { segment_bytes: 4_096, snapshot_after_bytes: 3_000, snapshot_chunk_jobs: 2, ..SMALL };

/// Small segments, and no snapshot unless one is asked for.
pub(crate) const SMALL: Options = Options {
    segment_bytes: 16 << 10,
    snapshot_after_bytes: u64::MAX,
    snapshot_chunk_jobs: 3,
    look_every: NEVER,
    retry_compaction_after: NEVER,
    list_step_jobs: usize::MAX,
    list_most_jobs: usize::MAX,
};

/// The folder of every store on a disk in memory.
pub(crate) const DIR: &str = "/store";

/// Opens the store on a disk in memory.
pub(crate) fn open(disk: &SimDisk, options: Options) -> Result<(Embedded, Opened), OpenError> {
    Embedded::open_on(Arc::new(disk.clone()), DIR, options)
}
