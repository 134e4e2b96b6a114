//! The jobs that workers have claimed through this node, as it last saw them. Most of them are settled here, and
//! need not be read again then: the statement that writes the outcome checks that nothing has happened in between.

use super::stored_row::StoredRow;
use crate::{Job, JobId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The size of the cache, in bytes. Beyond that it is emptied: reading rows again only costs time.
const MOST_BYTES: usize = 64 << 20;
/// The approximate size of a job besides its spec, in bytes.
const JOB_BYTES: usize = 1 << 10;

#[derive(Debug, Default)]
pub(super) struct LeaseCache(Mutex<Runs>);

#[derive(Debug, Default)]
struct Runs {
    jobs: HashMap<JobId, StoredRow>,
    bytes: usize,
}

impl LeaseCache {
    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Caches runs as they are in the database now.
    pub(super) fn keep(&self, jobs: impl IntoIterator<Item = StoredRow>) {
        let mut runs = self.runs();
        for mut stored in jobs {
            stored.revision += i64::from(stored.changed);
            (stored.changed, stored.new_failure) = (false, false);
            runs.bytes += bytes(&stored);
            if let Some(old) = runs.jobs.insert(stored.job.id, stored) {
                runs.bytes -= bytes(&old);
            }
            if runs.bytes > MOST_BYTES {
                *runs = Runs::default();
            }
        }
    }

    /// Takes these jobs out of the cache.
    pub(super) fn take(&self, ids: impl IntoIterator<Item = JobId>) -> HashMap<JobId, StoredRow> {
        let mut runs = self.runs();
        let mut taken = HashMap::new();
        for id in ids {
            if let Some(stored) = runs.jobs.remove(&id) {
                runs.bytes -= bytes(&stored);
                taken.insert(id, stored);
            }
        }
        taken
    }
}

fn bytes(stored: &StoredRow) -> usize {
    let Job { spec, failures, revisions, .. } = &stored.job;
    let errors: usize = failures.iter().map(|run| run.error.len()).sum();
    let bodies: usize = revisions.iter().map(|revision| revision.body.len()).sum();
    JOB_BYTES + spec.body.len() + errors + bodies
}
