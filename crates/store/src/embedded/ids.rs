//! From ids to slots in memory.

use crate::JobId;
use std::collections::HashMap;

/// A hash map in many small ones: each grows for itself, so that no insertion ever waits for the
/// rehashing of a million entries.
#[derive(Debug)]
pub(super) struct Ids(Vec<HashMap<JobId, u32>>);

const SHARDS: usize = 256;

impl Default for Ids {
    fn default() -> Self {
        Self((0..SHARDS).map(|_| HashMap::new()).collect())
    }
}

impl Ids {
    pub(super) fn get(&self, id: JobId) -> Option<u32> {
        self.0[shard(id)].get(&id).copied()
    }

    pub(super) fn insert(&mut self, id: JobId, slot: u32) -> Option<u32> {
        self.0[shard(id)].insert(id, slot)
    }

    pub(super) fn remove(&mut self, id: JobId) -> Option<u32> {
        self.0[shard(id)].remove(&id)
    }
}

/// The last byte of a name is random.
fn shard(id: JobId) -> usize {
    usize::from(id.to_bytes()[15])
}
