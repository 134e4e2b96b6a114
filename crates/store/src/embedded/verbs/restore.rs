//! Jobs, queues, runs and limits that are copied from another store.

use crate::StoreError;
use crate::embedded::record;
use crate::embedded::store_state::StoreState;
use crate::transfer::{Portable, PortableGroup, PortableRun, QueueMark};
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

    /// Stores what a group has, as it is.
    pub(in crate::embedded) fn restore_group(&mut self, moved: PortableGroup) {
        let PortableGroup { group, row } = moved;
        self.groups.put(group.clone(), row);
        self.write_group(&group);
    }

    /// Stores a run as it is, with its messages.
    pub(in crate::embedded) fn restore_run(&mut self, moved: PortableRun) -> Result<(), StoreError> {
        let PortableRun { run, messages } = moved;
        let id = run.id;
        let taken = run.key.as_deref().and_then(|key| self.runs.of_key(key)).is_some();
        if taken || self.runs.get(id).is_some() {
            return Err(StoreError::Broken(format!("the id or the key of run {id} is there twice")));
        }
        self.put_run(run);
        messages.into_iter().for_each(|message| self.put_message(id, message));
        Ok(())
    }
}
