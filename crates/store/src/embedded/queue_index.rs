//! A queue and the indexes of its jobs.

use super::slot::IndexKeys;
use crate::{JobId, Queue, State};
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Jobs by id.
pub(super) type IdIndex = BTreeMap<JobId, u32>;
/// Jobs by time, then by id.
pub(super) type Timeline = BTreeMap<(Moment, JobId), u32>;

/// The index of dead letters, after those of the eight states.
const DEAD: usize = State::ALL.len();

/// A queue and its own indexes.
#[derive(Debug)]
pub(super) struct QueueIndex {
    pub(super) name: Arc<str>,
    pub(super) paused: bool,
    pub(super) created: Moment,
    /// The available jobs of each priority, the longest waiting first.
    ready: BTreeMap<Reverse<i32>, Timeline>,
    id_indexes: [IdIndex; DEAD + 1],
    /// The dead letters by their end.
    dead: Timeline,
}

/// The indexes of a queue, built in bulk.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) ready: BTreeMap<Reverse<i32>, Timeline>,
    pub(super) id_indexes: [IdIndex; DEAD + 1],
    pub(super) dead: Timeline,
}

impl QueueIndex {
    pub(super) fn new(name: Arc<str>, paused: bool, created: Moment) -> Self {
        Self { name, paused, created, ready: BTreeMap::new(), id_indexes: Default::default(), dead: Timeline::new() }
    }

    /// The dead letters by their end.
    pub(super) const fn dead(&self) -> &Timeline {
        &self.dead
    }

    /// The available jobs in the order in which they are claimed.
    pub(super) fn line(&self) -> impl Iterator<Item = u32> {
        self.ready.values().flat_map(|waiting| waiting.values().copied())
    }

    /// The jobs in a state, dead letters or not as `dead` says; absent, both.
    pub(super) fn id_indexes(&self, state: Option<State>, dead: Option<bool>) -> impl Iterator<Item = &IdIndex> {
        let wanted = move |index: &usize| {
            let is_dead = *index == DEAD;
            let of_state = if is_dead { State::Discarded } else { State::ALL[*index] };
            state.is_none_or(|state| state == of_state) && dead.is_none_or(|dead| dead == is_dead)
        };
        (0..=DEAD).filter(wanted).map(|index| &self.id_indexes[index])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.id_indexes.iter().all(BTreeMap::is_empty)
    }

    pub(super) fn queue(&self) -> Queue {
        let count = |state| self.id_indexes(Some(state), None).map(BTreeMap::len).sum();
        let (name, paused, created) = (Arc::clone(&self.name), self.paused, self.created);
        Queue { name, paused, created, counts: State::ALL.map(count) }
    }

    pub(super) fn insert(&mut self, id: JobId, slot: u32, places: &IndexKeys) {
        self.id_indexes[id_index(places)].insert(id, slot);
        if let Some(finished) = places.finished.filter(|_| places.dead) {
            self.dead.insert((finished, id), slot);
        }
        if let Some(since) = places.ready {
            self.ready.entry(Reverse(places.priority)).or_default().insert((since, id), slot);
        }
    }

    pub(super) fn remove(&mut self, id: JobId, places: &IndexKeys) {
        self.id_indexes[id_index(places)].remove(&id);
        if let Some(finished) = places.finished.filter(|_| places.dead) {
            self.dead.remove(&(finished, id));
        }
        if let Some(since) = places.ready
            && let Some(waiting) = self.ready.get_mut(&Reverse(places.priority))
        {
            waiting.remove(&(since, id));
            if waiting.is_empty() {
                self.ready.remove(&Reverse(places.priority));
            }
        }
    }

    /// Takes over indexes that were built in bulk.
    pub(super) fn fill(&mut self, filled: Filled) {
        (self.ready, self.id_indexes, self.dead) = (filled.ready, filled.id_indexes, filled.dead);
    }
}

/// The number of the index that a job is in.
pub(super) fn id_index(places: &IndexKeys) -> usize {
    if places.dead { DEAD } else { places.state as usize }
}
