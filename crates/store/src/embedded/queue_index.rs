//! A queue and the indexes of its jobs.

use super::lanes::UNLIMITED;
use super::slot::IndexKeys;
use crate::{JobId, Queue, State};
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Jobs by id.
pub(super) type IdIndex = BTreeMap<JobId, u32>;
/// Jobs by time, then by id.
pub(super) type Timeline = BTreeMap<(Moment, JobId), u32>;

/// Available jobs by priority, then the longest waiting first.
pub(super) type Ready = BTreeMap<Reverse<i32>, Timeline>;

/// The index of dead letters, after those of the eight states.
const DEAD: usize = State::ALL.len();

/// A queue and its own indexes.
#[derive(Debug)]
pub(super) struct QueueIndex {
    pub(super) name: Arc<str>,
    pub(super) paused: bool,
    pub(super) created: Moment,
    /// The available jobs without limits of their own.
    ready: Ready,
    /// Those of lanes. A lane without any is not here.
    lanes: HashMap<u64, Ready>,
    id_indexes: [IdIndex; DEAD + 1],
    /// The dead letters by their end.
    dead: Timeline,
}

/// The indexes of a queue, built in bulk.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) ready: Ready,
    pub(super) lanes: HashMap<u64, Ready>,
    pub(super) id_indexes: [IdIndex; DEAD + 1],
    pub(super) dead: Timeline,
}

impl QueueIndex {
    pub(super) fn new(name: Arc<str>, paused: bool, created: Moment) -> Self {
        let (ready, lanes, dead) = (Ready::new(), HashMap::new(), Timeline::new());
        Self { name, paused, created, ready, lanes, id_indexes: Default::default(), dead }
    }

    /// The dead letters by their end.
    pub(super) const fn dead(&self) -> &Timeline {
        &self.dead
    }

    /// The available jobs without limits of their own, in the order in which they are claimed.
    pub(super) fn line(&self) -> impl Iterator<Item = u32> {
        self.ready.values().flat_map(|waiting| waiting.values().copied())
    }

    /// Whether jobs with limits of their own are available.
    pub(super) fn has_lanes(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// The numbers of the lanes that have available jobs.
    pub(super) fn lanes(&self) -> impl Iterator<Item = u64> {
        let unlimited = (!self.ready.is_empty()).then_some(UNLIMITED);
        unlimited.into_iter().chain(self.lanes.keys().copied())
    }

    /// The available jobs of a lane in the order in which they are claimed, each with its place in that order.
    pub(super) fn lane(&self, number: u64) -> impl Iterator<Item = (Turn, u32)> {
        let ready = if number == UNLIMITED { Some(&self.ready) } else { self.lanes.get(&number) };
        ready
            .into_iter()
            .flatten()
            .flat_map(|(priority, waiting)| waiting.iter().map(|((since, id), slot)| ((*priority, *since, *id), *slot)))
    }

    /// How many jobs are in a state that has no dead letters.
    pub(super) fn count(&self, state: State) -> usize {
        self.id_indexes[state as usize].len()
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
            let ready = match places.lane {
                UNLIMITED => &mut self.ready,
                lane => self.lanes.entry(lane).or_default(),
            };
            ready.entry(Reverse(places.priority)).or_default().insert((since, id), slot);
        }
    }

    pub(super) fn remove(&mut self, id: JobId, places: &IndexKeys) {
        self.id_indexes[id_index(places)].remove(&id);
        if let Some(finished) = places.finished.filter(|_| places.dead) {
            self.dead.remove(&(finished, id));
        }
        let Some(since) = places.ready else { return };
        if places.lane == UNLIMITED {
            unready(&mut self.ready, places.priority, &(since, id));
        } else if let Some(ready) = self.lanes.get_mut(&places.lane) {
            unready(ready, places.priority, &(since, id));
            if ready.is_empty() {
                self.lanes.remove(&places.lane);
            }
        }
    }

    /// Takes over indexes that were built in bulk.
    pub(super) fn fill(&mut self, filled: Filled) {
        (self.ready, self.lanes) = (filled.ready, filled.lanes);
        (self.id_indexes, self.dead) = (filled.id_indexes, filled.dead);
    }
}

/// The place of an available job in the order in which they are claimed.
pub(super) type Turn = (Reverse<i32>, Moment, JobId);

fn unready(ready: &mut Ready, priority: i32, key: &(Moment, JobId)) {
    if let Some(waiting) = ready.get_mut(&Reverse(priority)) {
        waiting.remove(key);
        if waiting.is_empty() {
            ready.remove(&Reverse(priority));
        }
    }
}

/// The number of the index that a job is in.
pub(super) fn id_index(places: &IndexKeys) -> usize {
    if places.dead { DEAD } else { places.state as usize }
}
