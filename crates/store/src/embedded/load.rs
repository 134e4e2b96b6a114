//! From records to the state in memory.

use super::groups::Groups;
use super::ids::Ids;
use super::indexes::Indexes;
use super::record::{Record, SharedSpecRecord, SpecRecord};
use super::runs::Runs;
use super::shared_spec::CatalogueReader;
use super::slot::Slot;
use super::slots::Slots;
use super::store_state::{Keys, StoreState};
use crate::codec::row::Row;
use crate::codec::{Decoder, Unreadable};
use crate::{JobId, RunId};
use redrive_policy::Moment;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The state while it is being read. Its indexes are built once, at the end.
#[derive(Debug, Default)]
pub(super) struct Loader {
    slots: Slots,
    ids: Ids,
    indexes: Indexes,
    catalogue: CatalogueReader,
    keys: HashMap<u32, Arc<str>>,
    runs: Runs,
    groups: Groups,
    /// Jobs that records refer to before they are known. A snapshot leaves out what is deleted while
    /// it is being written, so the log may still speak of them, up to their deletion.
    unknown: HashSet<JobId>,
    /// Runs that have messages before they are known, likewise.
    unknown_runs: HashSet<RunId>,
    /// Queues that were removed, by number. The numbers stay taken until everything is read: of what a snapshot has,
    /// the log may say again how it was before.
    gone: HashSet<u32>,
    /// Queues that shared specifications refer to before they are known, by number; as with `unknown`, they are gone in
    /// the end.
    unmade: HashSet<u32>,
    pub(super) marks: Marks,
    /// Why a record could not be read that a newer version wrote.
    pub(super) newer: Option<String>,
    pub(super) records: u64,
    clock: Option<(Moment, i64)>,
    /// The latest moment at which something happened.
    latest: Option<Moment>,
}

/// The records that concern no job.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// The last record said that the log goes on in the next segment.
    pub(super) sealed: bool,
    /// The last record said that the store was closed cleanly.
    pub(super) closed: bool,
    pub(super) begin: Option<u64>,
    pub(super) end: Option<u64>,
}

impl Loader {
    /// Applies the records of a frame. What is wrong with them otherwise.
    pub(super) fn apply(&mut self, records: &[u8]) -> Result<(), String> {
        let mut from = Decoder::new(records);
        while !from.is_empty() {
            let record = Record::decode(&mut from).map_err(|unreadable| {
                let found = unreadable.to_string();
                if let Unreadable::Newer { .. } = unreadable {
                    self.newer = Some(found.clone());
                }
                found
            })?;
            self.records += 1;
            (self.marks.sealed, self.marks.closed) = (false, false);
            self.take(record)?;
        }
        Ok(())
    }

    pub(super) const fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) const fn runs(&self) -> &Runs {
        &self.runs
    }

    pub(super) fn queues(&self) -> usize {
        self.indexes.queue_indexes.len() - self.gone.len()
    }

    fn take(&mut self, record: Record<'_>) -> Result<(), String> {
        match record {
            Record::Policy { number, text } => {
                let kept = self.catalogue.policy(number, text);
                kept.map_err(|error| format!("policy {number}, which cannot be read: {error}"))
            }
            Record::SharedSpec(shared_spec) => self.shared_spec(&shared_spec),
            Record::Queue { name, paused, created } => {
                self.happened([Some(created)]);
                self.queue(name, paused, created);
                Ok(())
            }
            Record::QueueGone { name } => {
                self.gone.extend(self.indexes.queue_index(name));
                Ok(())
            }
            Record::Put { id, created, key, spec, row } => {
                self.happened([Some(created)]);
                self.happened(moments(&row));
                self.put(id, created, key, &spec, row)
            }
            Record::Row { id, row } => {
                self.happened(moments(&row));
                self.known(id, |slot| slot.set_row(row));
                Ok(())
            }
            Record::Failure { id, run } => {
                self.happened([Some(run.at)]);
                self.known(id, |slot| slot.add_failure(run));
                Ok(())
            }
            Record::Revision { id, revision } => {
                self.happened([Some(revision.at)]);
                self.known(id, |slot| slot.add_revision(revision));
                Ok(())
            }
            Record::Respec { id, spec } => self.respec(id, &spec),
            Record::Delete { id } => {
                self.delete(id);
                Ok(())
            }
            Record::Run(run) => {
                self.happened([Some(run.created), Some(run.advanced), run.end.as_ref().map(|end| end.at)]);
                self.unknown_runs.remove(&run.id);
                self.runs.put(run);
                Ok(())
            }
            Record::RunGone { id } => {
                self.unknown_runs.remove(&id);
                self.runs.remove(id);
                Ok(())
            }
            Record::Message { run, message } => {
                self.happened([Some(message.at)]);
                self.known_run(run);
                self.runs.put_message(run, message);
                Ok(())
            }
            Record::MessageGone { run, number } => {
                self.known_run(run);
                self.runs.remove_message(run, number);
                Ok(())
            }
            Record::LastMessage { number } => {
                self.runs.set_last_message(number);
                Ok(())
            }
            Record::Group { group, row } => {
                self.groups.put(group, row);
                Ok(())
            }
            Record::Clock { at, ahead_us } => {
                self.happened([Some(at)]);
                self.clock = Some((at, ahead_us));
                Ok(())
            }
            Record::Sealed => {
                self.marks.sealed = true;
                Ok(())
            }
            Record::Closed => {
                self.marks.closed = true;
                Ok(())
            }
            Record::Begin { next_sequence } => {
                self.marks.begin = Some(next_sequence);
                Ok(())
            }
            Record::End { jobs } => {
                self.marks.end = Some(jobs);
                Ok(())
            }
        }
    }

    fn happened(&mut self, moments: impl IntoIterator<Item = Option<Moment>>) {
        self.latest = moments.into_iter().chain([self.latest]).flatten().max();
    }

    fn known(&mut self, id: JobId, then: impl FnOnce(&mut Slot)) {
        match self.ids.get(id).and_then(|place| self.slots.get_mut(place)) {
            Some(slot) => then(slot),
            None => {
                self.unknown.insert(id);
            }
        }
    }

    fn known_run(&mut self, id: RunId) {
        if self.runs.get(id).is_none() {
            self.unknown_runs.insert(id);
        }
    }

    fn shared_spec(&mut self, record: &SharedSpecRecord<'_>) -> Result<(), String> {
        let queue_index = self.indexes.queue_index(record.queue).unwrap_or_else(|| {
            let queue_index = self.indexes.add_queue_index(record.queue.into(), false, Moment::ORIGIN);
            self.unmade.insert(queue_index);
            queue_index
        });
        let queue = Arc::clone(&self.indexes.queue_indexes[queue_index as usize].name);
        self.catalogue
            .shared_spec(record, queue, queue_index, &mut self.indexes.lanes)
            .ok_or_else(|| "a shared specification with a policy that is not known".to_owned())
    }

    fn queue(&mut self, name: &str, paused: bool, created: Moment) {
        let queue_index = self
            .indexes
            .queue_index(name)
            .unwrap_or_else(|| self.indexes.add_queue_index(name.into(), paused, created));
        let known = &mut self.indexes.queue_indexes[queue_index as usize];
        (known.paused, known.created) = (paused, created);
        self.gone.remove(&queue_index);
        self.unmade.remove(&queue_index);
    }

    fn put(
        &mut self,
        id: JobId,
        created: Moment,
        key: Option<&str>,
        spec: &SpecRecord<'_>,
        row: Row,
    ) -> Result<(), String> {
        let shared_spec =
            self.catalogue.get(spec.shared_spec).ok_or("a job with a shared specification that is not known")?;
        let slot = Slot::new(id, created, Arc::clone(shared_spec), spec.body.into(), spec.expires, row);
        let known = self.ids.get(id).and_then(|place| Some((place, self.slots.get_mut(place)?)));
        let place = match known {
            Some((place, kept)) => {
                *kept = slot;
                place
            }
            None => {
                let place = self.slots.insert(slot);
                self.ids.insert(id, place);
                place
            }
        };
        match key {
            Some(key) => self.keys.insert(place, key.into()),
            None => self.keys.remove(&place),
        };
        Ok(())
    }

    fn respec(&mut self, id: JobId, spec: &SpecRecord<'_>) -> Result<(), String> {
        let shared_spec = Arc::clone(
            self.catalogue.get(spec.shared_spec).ok_or("a job with a shared specification that is not known")?,
        );
        self.known(id, |slot| {
            slot.shared_spec = shared_spec;
            slot.body = spec.body.into();
            slot.expires = spec.expires;
        });
        Ok(())
    }

    fn delete(&mut self, id: JobId) {
        self.unknown.remove(&id);
        if let Some(place) = self.ids.remove(id) {
            self.slots.remove(place);
            self.keys.remove(&place);
        }
    }

    /// The state, once everything is read; or what is inconsistent in it.
    pub(super) fn finish(mut self) -> Result<StoreState, String> {
        self.forget_queues()?;
        if let Some(id) = self.unknown.iter().min() {
            return Err(format!("records of job {id}, which was never written"));
        }
        if let Some(id) = self.unknown_runs.iter().min() {
            return Err(format!("messages of run {id}, which was never written"));
        }
        if !self.runs.keys_are_unique() {
            return Err("two runs with one key".to_owned());
        }
        let mut keys = Keys::default();
        for (place, key) in self.keys {
            keys.insert(place, key);
        }
        let (one_way, other_way) = keys.lens();
        if one_way != other_way {
            return Err("two jobs with one idempotency key".to_owned());
        }
        let catalogue = self.catalogue.finish().ok_or("two numbers for the same shared specification")?;
        self.indexes.lanes.sweep();
        let mut store_state =
            StoreState::new(self.slots, self.ids, self.indexes, catalogue, keys, self.runs, self.groups);
        // The latest moment is known by now, and is not to be forgotten when those jobs are.
        store_state.clock = self.latest.map(|latest| (latest, self.clock.map_or(0, |(_, ahead_us)| ahead_us)));
        Ok(store_state)
    }

    /// Frees the numbers of queues that are gone.
    fn forget_queues(&mut self) -> Result<(), String> {
        if !self.unmade.is_subset(&self.gone) {
            return Err("a shared specification with a queue that is not known".to_owned());
        }
        if let Some((_, slot)) = self.slots.iter().find(|(_, slot)| self.gone.contains(&slot.shared_spec.queue_index)) {
            return Err(format!("the job {} in a queue that was forgotten", slot.id));
        }
        for queue_index in self.gone.drain() {
            self.indexes.remove_queue_index(queue_index);
        }
        Ok(())
    }
}

/// When something happened to a job, other than that it was created.
fn moments(row: &Row) -> [Option<Moment>; 4] {
    [row.available, row.started, row.finished, row.lease.as_ref().map(|lease| lease.alive)]
}

#[cfg(test)]
mod tests;
