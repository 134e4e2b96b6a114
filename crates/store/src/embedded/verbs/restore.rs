//! Jobs and queues that are copied from another store.

use crate::StoreError;
use crate::embedded::record;
use crate::embedded::store_state::StoreState;
use crate::transfer::{Portable, QueueMark};
use std::sync::Arc;

impl StoreState {
    /// Stores a queue that is not known yet, as it is.
    pub(in crate::embedded) fn restore_queue(&mut self, queue: &QueueMark) {
        record::queue(self.frame.records(), &queue.name, queue.paused, queue.created);
        self.indexes.add_queue_index(Arc::clone(&queue.name), queue.paused, queue.created);
    }

    /// Stores a job as it is.
    pub(in crate::embedded) fn restore(&mut self, moved: Portable) -> Result<(), StoreError> {
        let Portable { job, idempotency_key } = moved;
        let taken = idempotency_key.as_deref().and_then(|key| self.find_key(key)).is_some();
        if taken || self.find(job.id).is_some() {
            return Err(StoreError::Broken(format!("the name or the key of job {} is there twice", job.id)));
        }
        let shared_spec = self.shared_spec(&job.spec, job.times.created)?;
        self.insert(&job, shared_spec, idempotency_key);
        for run in &job.failures {
            record::failure(self.frame.records(), job.id, run);
        }
        for revision in &job.revisions {
            record::revision(self.frame.records(), job.id, revision);
        }
        Ok(())
    }
}
