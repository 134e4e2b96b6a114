//! What can be set when a store is opened.

use super::frame::SECTOR;
use std::time::Duration;

/// How a store uses its disk. The defaults suit servers; tests make everything small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The length of the log's files, in bytes, which they have from their first moment. The first file
    /// of a new store is shorter, so that small stores stay small.
    pub segment_bytes: u64,
    /// The log is replaced by a snapshot once it is longer than this, in bytes, and longer than twice
    /// what a snapshot of all jobs takes.
    pub snapshot_after_bytes: u64,
    /// How many jobs are written to a snapshot at a time. The verbs wait that long.
    pub snapshot_chunk_jobs: usize,
    /// How often the high-water mark is flushed, and how often a store looks whether its files are still in their
    /// place. The file that is written to is looked
    /// for with every write besides.
    pub look_every: Duration,
    /// How soon a compaction that failed is tried again. Each further time in a row it takes twice as long, up
    /// to five minutes.
    pub retry_compaction_after: Duration,
    /// How many jobs a list looks at while it holds the lock that every verb needs. Between two such steps other
    /// verbs are let in.
    pub list_step_jobs: usize,
    /// How many jobs a list looks at in one call, at most.
    pub list_most_jobs: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            snapshot_after_bytes: 64 << 20,
            snapshot_chunk_jobs: 1_000,
            look_every: Duration::from_secs(1),
            retry_compaction_after: Duration::from_secs(1),
            list_step_jobs: 64,
            list_most_jobs: 20_000,
        }
    }
}

impl Options {
    /// The shortest file: a header and a few small frames.
    const LEAST_SEGMENT: u64 = 2_048;
    /// The length of the first file of a new store, at most.
    const FIRST_SEGMENT: u64 = 4 << 20;

    /// The length of the first file.
    pub(super) fn first_segment(&self) -> u64 {
        self.next_segment(Self::FIRST_SEGMENT / 4)
    }

    /// The length of the file after one of this length: four times as long, up to the limit.
    pub(super) fn next_segment(&self, length: u64) -> u64 {
        let length = length.saturating_mul(4).min(self.segment_bytes);
        // In whole sectors.
        length.max(Self::LEAST_SEGMENT) / SECTOR as u64 * SECTOR as u64
    }
}
