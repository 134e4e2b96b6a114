//! The jobs that workers have claimed through this node, as it last saw them. Most of them are settled here, and
//! need not be read again then: the statement that writes the outcome checks that nothing has happened in between.

use super::block::{Block, Blocks};
use super::settling::Written;
use super::stored_row::{Place, StoredRow};
use crate::{Job, JobId};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The size of the cache, in bytes. Beyond that it is emptied: reading rows again only costs time.
const MOST_BYTES: usize = 64 << 20;
/// The approximate size of a job besides its spec, in bytes.
const JOB_BYTES: usize = 1 << 10;

#[derive(Debug, Default)]
pub(super) struct LeaseCache {
    runs: Mutex<Runs>,
    /// Signals that claims were written.
    freed: Notify,
}

/// A job is in the cache as it is in the database if its claim has the revision that is cached here, and the job has
/// not left it by then: what is stored of a job in a claim never changes.
#[derive(Debug, Default)]
struct Runs {
    jobs: HashMap<JobId, StoredRow>,
    blocks: Blocks,
    /// The claims that are being written.
    busy: HashSet<i64>,
    bytes: usize,
}

/// Jobs that were taken out of the cache, and their claims. No one else takes jobs of these claims until this is
/// dropped.
#[derive(Debug)]
pub(super) struct Taken<'c> {
    cache: &'c LeaseCache,
    /// In the order of their ids.
    pub(super) jobs: Vec<StoredRow>,
    pub(super) blocks: Blocks,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut runs = self.cache.runs();
        runs.busy.retain(|no| !self.blocks.contains_key(no));
        drop(runs);
        self.cache.freed.notify_waiters();
    }
}

impl LeaseCache {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Caches runs as they are in the database now.
    pub(super) fn keep(
        &self,
        jobs: impl IntoIterator<Item = StoredRow>,
        blocks: impl IntoIterator<Item = (i64, Block)>,
    ) {
        let mut runs = self.runs();
        for (no, block) in blocks {
            runs.put(no, Some(block));
        }
        for mut stored in jobs {
            stored.changed = false;
            runs.bytes += bytes(&stored);
            if let Some(old) = runs.jobs.insert(stored.job.id, stored) {
                runs.bytes -= bytes(&old);
            }
            if runs.bytes > MOST_BYTES {
                *runs = Runs { busy: std::mem::take(&mut runs.busy), ..Runs::default() };
            }
        }
    }

    /// Takes note of claims that were written.
    pub(super) fn note(&self, written: &Written) {
        let mut runs = self.runs();
        for (no, block) in &written.claims {
            runs.put(*no, block.clone());
        }
    }

    /// Takes those of these jobs out of the cache that are there; waits while their claims are being written. The ids
    /// are in order.
    pub(super) async fn take(&self, ids: &[JobId]) -> Taken<'_> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(taken) = self.try_take(ids) {
                return taken;
            }
            freed.await;
        }
    }

    fn try_take(&self, ids: &[JobId]) -> Option<Taken<'_>> {
        let mut runs = self.runs();
        let is_busy = |id: &JobId| {
            matches!(runs.jobs.get(id)?.place, Place::Claim(no, _) if runs.busy.contains(&no)).then_some(())
        };
        if !runs.busy.is_empty() && ids.iter().any(|id| is_busy(id).is_some()) {
            return None;
        }
        let (mut jobs, mut blocks) = (Vec::with_capacity(ids.len()), Blocks::new());
        for id in ids {
            let Some(stored) = runs.jobs.remove(id) else { continue };
            runs.bytes -= bytes(&stored);
            let Place::Claim(no, place) = stored.place else { continue };
            let Some(block) = blocks.get(&no).or_else(|| runs.blocks.get(&no)).filter(|block| block.has(place)) else {
                continue;
            };
            // Most jobs are of the claim of the job before.
            if !runs.busy.contains(&no) {
                blocks.insert(no, block.clone());
                runs.busy.insert(no);
            }
            jobs.push(stored);
        }
        Some(Taken { cache: self, jobs, blocks })
    }
}

impl Taken<'_> {
    /// Takes note of what was written; claims that were not written are not what they were here.
    pub(super) fn wrote(&self, written: &Written) {
        let mut runs = self.cache.runs();
        for (no, block) in &self.blocks {
            // Another transaction of this node may have read it under a lock meanwhile.
            if !written.claims.contains_key(no) && runs.blocks.get(no) == Some(block) {
                runs.blocks.remove(no);
            }
        }
        for (no, block) in &written.claims {
            runs.put(*no, block.clone());
        }
    }
}

impl Runs {
    /// The newest is what counts, whoever is later to report it.
    fn put(&mut self, no: i64, block: Option<Block>) {
        match block {
            None => drop(self.blocks.remove(&no)),
            Some(block) if self.blocks.get(&no).is_some_and(|known| known.revision > block.revision) => {}
            Some(block) => drop(self.blocks.insert(no, block)),
        }
    }
}

fn bytes(stored: &StoredRow) -> usize {
    let Job { spec, failures, revisions, .. } = &*stored.job;
    let errors: usize = failures.iter().map(|run| run.error.len()).sum();
    let bodies: usize = revisions.iter().map(|revision| revision.body.len()).sum();
    JOB_BYTES + spec.body.len() + errors + bodies
}
