//! The state of the store in memory, and the records of what changed.

use super::frame::Frame;
use super::groups::Groups;
use super::ids::Ids;
use super::indexes::Indexes;
use super::record::{self, SpecRecord};
use super::runs::Runs;
use super::shared_spec::{Catalogue, SharedSpec};
use super::slot::{Slot, order};
use super::slots::Slots;
use super::uniques::Uniques;
use crate::codec::row::Row;
use crate::standstill::Grace;
use crate::{Job, JobId, Refusal, Spec, StoreError};
use redrive_policy::Moment;
use std::collections::HashMap;
use std::sync::Arc;

/// The jobs, their indexes, and the frame that takes the records of what changes.
///
/// Every method leaves jobs, indexes and records consistent before it returns, and calls no code of the caller in
/// between. So a decision that panics does no harm.
#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) slots: Slots,
    ids: Ids,
    pub(super) indexes: Indexes,
    pub(super) catalogue: Catalogue,
    keys: Keys,
    pub(super) uniques: Uniques,
    pub(super) runs: Runs,
    pub(super) groups: Groups,
    /// About how many bytes a snapshot takes.
    pub(super) live_bytes: u64,
    /// What changed since the last frame was taken away.
    pub(super) frame: Frame,
    /// How many changes of jobs the frame has.
    pub(super) changes: usize,
    /// What was stored last: the time, and how far the wall clock was ahead of it, in microseconds.
    pub(super) clock: Option<(Moment, i64)>,
    /// The grace of runs because this process stood still, or was not running.
    pub(super) grace: Grace,
}

/// Idempotency keys, both ways.
#[derive(Debug, Default)]
pub(super) struct Keys {
    places: HashMap<Arc<str>, u32>,
    /// Apart from the jobs, because most have none.
    of_index_keys: HashMap<u32, Arc<str>>,
}

impl Keys {
    pub(super) fn insert(&mut self, place: u32, key: Arc<str>) {
        self.places.insert(Arc::clone(&key), place);
        self.of_index_keys.insert(place, key);
    }

    pub(super) fn remove(&mut self, place: u32) {
        if let Some(key) = self.of_index_keys.remove(&place) {
            self.places.remove(&key);
        }
    }

    pub(super) fn of(&self, place: u32) -> Option<&Arc<str>> {
        self.of_index_keys.get(&place)
    }

    /// How many there are each way, which is the same unless two jobs have one key.
    pub(super) fn lens(&self) -> (usize, usize) {
        (self.places.len(), self.of_index_keys.len())
    }
}

impl StoreState {
    /// With what was read, of which no index has been built yet.
    pub(super) fn new(
        slots: Slots,
        ids: Ids,
        mut indexes: Indexes,
        catalogue: Catalogue,
        keys: Keys,
        runs: Runs,
        groups: Groups,
    ) -> Self {
        let grace = Grace::default();
        indexes.build(slots.iter(), &grace);
        let uniques = Uniques::build(slots.iter().map(|(_, slot)| slot));
        let live_bytes = slots.iter().map(|(_, slot)| slot.weight() as u64).sum::<u64>() + runs.bytes();
        let (frame, changes, clock) = (Frame::new(), 0, None);
        Self { slots, ids, indexes, catalogue, keys, uniques, runs, groups, live_bytes, frame, changes, clock, grace }
    }

    pub(super) fn find(&self, id: JobId) -> Option<u32> {
        self.ids.get(id)
    }

    pub(super) fn find_key(&self, key: &str) -> Option<u32> {
        self.keys.places.get(key).copied()
    }

    pub(super) fn key(&self, place: u32) -> Option<&Arc<str>> {
        self.keys.of(place)
    }

    pub(super) fn job(&self, place: u32) -> Option<Job> {
        self.slots.get(place).map(Slot::job)
    }

    /// The number of a queue; a queue that is not known yet gets one.
    pub(super) fn queue_index(&mut self, name: &Arc<str>, now: Moment) -> u32 {
        if let Some(queue_index) = self.indexes.queue_index(name) {
            return queue_index;
        }
        record::queue(self.frame.records(), name, false, now);
        self.indexes.add_queue_index(Arc::clone(name), false, now)
    }

    pub(super) fn keep_clock(&mut self, at: Moment, ahead_us: i64) {
        record::clock(self.frame.records(), at, ahead_us);
        self.clock = Some((at, ahead_us));
    }

    /// Pauses or resumes a queue; answers whether that changed anything.
    pub(super) fn pause(&mut self, queue_index: u32, paused: bool) -> bool {
        let queue_index = &mut self.indexes.queue_indexes[queue_index as usize];
        if queue_index.paused == paused {
            return false;
        }
        queue_index.paused = paused;
        record::queue(self.frame.records(), &queue_index.name, paused, queue_index.created);
        true
    }

    /// Removes a queue that has no jobs, and so no shared specification that refers to it.
    pub(super) fn remove_queue_index(&mut self, queue_index: u32) {
        record::queue_gone(self.frame.records(), &self.indexes.queue_indexes[queue_index as usize].name);
        self.indexes.remove_queue_index(queue_index);
    }

    pub(super) fn shared_spec(&mut self, spec: &Spec, now: Moment) -> Result<Arc<SharedSpec>, StoreError> {
        let queue_index = self.queue_index(&spec.queue, now);
        self.catalogue.shared_spec_of(spec, queue_index, &mut self.indexes.lanes, self.frame.records())
    }

    /// Stores a job whose id and key are not taken.
    pub(super) fn insert(&mut self, job: &Job, shared_spec: Arc<SharedSpec>, key: Option<Arc<str>>) {
        self.changes += 1;
        record::put(self.frame.records(), job, shared_spec.number, key.as_deref());
        let slot = Slot::of(job, shared_spec);
        self.live_bytes += slot.weight() as u64;
        let places = slot.places(&self.grace);
        self.uniques.shift(None, slot.unique_entry());
        let place = self.slots.insert(slot);
        self.ids.insert(job.id, place);
        self.indexes.insert(job.id, place, &places);
        if let Some(key) = key {
            self.keys.insert(place, key);
        }
    }

    /// Applies a rule to a job: whole, or not at all where the rule refuses. The rule leaves the
    /// specification of the job as it is.
    pub(super) fn change<T: AsRef<Job>>(
        &mut self,
        place: u32,
        rule: impl FnOnce(Job) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.change_with(place, None, rule)
    }

    /// Applies a rule that replaces the specification of the job, where this is the shared part of the new one.
    pub(super) fn change_with<T: AsRef<Job>>(
        &mut self,
        place: u32,
        shared_spec: Option<Arc<SharedSpec>>,
        rule: impl FnOnce(Job) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let answer = rule(self.job(place).ok_or(Refusal::NotFound)?)?;
        self.update(place, answer.as_ref(), shared_spec);
        Ok(answer)
    }

    fn update(&mut self, place: u32, job: &Job, shared_spec: Option<Arc<SharedSpec>>) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        let (from, weight) = (slot.places(&self.grace), slot.weight() as u64);
        let unique = slot.unique_entry();
        self.changes += 1;
        let out = self.frame.records();
        let mut released = None;
        if let Some(shared_spec) = shared_spec {
            let body = &job.spec.body;
            record::respec(
                out,
                job.id,
                &SpecRecord { shared_spec: shared_spec.number, expires: job.spec.expires, body },
            );
            (slot.body, slot.expires) = (Arc::clone(body), job.spec.expires);
            released = Some(std::mem::replace(&mut slot.shared_spec, shared_spec));
        }
        let row = Row::of(job);
        if slot.row() != Some(&row) {
            record::row(out, job);
            slot.set_row(row);
        }
        let known = slot.failures().last().map(order);
        for run in job.failures.iter().filter(|run| known.is_none_or(|known| known < order(run))) {
            record::failure(out, job.id, run);
            slot.add_failure(run.clone());
        }
        let known = slot.revisions().last().map(|last| last.generation);
        for revision in job.revisions.iter().filter(|revision| known.is_none_or(|known| known < revision.generation)) {
            record::revision(out, job.id, revision);
            slot.add_revision(revision.clone());
        }
        self.live_bytes = self.live_bytes - weight + slot.weight() as u64;
        self.uniques.shift(unique, slot.unique_entry());
        self.indexes.shift(job.id, place, &from, &slot.places(&self.grace));
        // Only now, because the indexes count by the lane.
        released.into_iter().for_each(|spec| self.catalogue.release(spec, &mut self.indexes.lanes));
    }

    /// Removes a job.
    pub(super) fn remove(&mut self, place: u32) -> Option<Job> {
        let slot = self.slots.remove(place)?;
        self.changes += 1;
        record::delete(self.frame.records(), slot.id);
        let job = slot.job();
        self.live_bytes -= slot.weight() as u64;
        self.uniques.shift(slot.unique_entry(), None);
        self.indexes.remove(slot.id, &slot.places(&self.grace));
        self.ids.remove(slot.id);
        self.keys.remove(place);
        self.catalogue.release(slot.shared_spec, &mut self.indexes.lanes);
        Some(job)
    }
}
