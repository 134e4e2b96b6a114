//! The lanes of jobs with limits of their own, and how many jobs of each group wait and are active.
//!
//! All of it follows from the jobs: it is built with the other indexes, and changes where they change.

use crate::codec::limits;
use crate::limit::Lane;
use crate::{Bounds, Group, Spec, State};
use std::collections::HashMap;
use std::sync::Arc;

/// The number of the lane of jobs without limits of their own.
pub(super) const UNLIMITED: u64 = 0;

/// A lane, by its number.
#[derive(Debug)]
pub(super) struct NumberedLane {
    pub(super) number: u64,
    pub(super) lane: Lane,
    groups: Vec<Group>,
    key: LaneKey,
}

/// The limits as bytes, and the type where it is limited.
type LaneKey = (Arc<[u8]>, Option<Arc<str>>);

/// How many jobs of a group are available and active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) waiting: usize,
    pub(super) active: usize,
}

/// All lanes that a job has.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_key: HashMap<LaneKey, Arc<NumberedLane>>,
    by_number: HashMap<u64, Arc<NumberedLane>>,
    counts: HashMap<Group, Counts>,
    last: u64,
}

impl NumberedLane {
    /// The limits as bytes.
    pub(super) const fn bytes(&self) -> &Arc<[u8]> {
        &self.key.0
    }
}

impl Lanes {
    /// The lane of a job; `None` where it has no limits of its own.
    pub(super) fn of(&mut self, spec: &Spec) -> Option<Arc<NumberedLane>> {
        Lane::of(spec).map(|lane| self.numbered(lane))
    }

    pub(super) fn numbered(&mut self, lane: Lane) -> Arc<NumberedLane> {
        let mut bytes = Vec::new();
        limits::encode(&lane.limits, &mut bytes);
        let key: LaneKey = (bytes.into(), lane.kind.clone());
        if let Some(known) = self.by_key.get(&key) {
            return Arc::clone(known);
        }
        self.last += 1;
        let groups = lane.groups().map(|(group, _)| group).collect();
        let new = Arc::new(NumberedLane { number: self.last, lane, groups, key: key.clone() });
        self.by_key.insert(key, Arc::clone(&new));
        self.by_number.insert(new.number, Arc::clone(&new));
        new
    }

    pub(super) fn get(&self, number: u64) -> Option<&Arc<NumberedLane>> {
        self.by_number.get(&number)
    }

    /// A shared specification gives up its lane. One that no other has is removed.
    pub(super) fn release(&mut self, lane: Arc<NumberedLane>) {
        // Two here, one for the caller.
        if Arc::strong_count(&lane) <= 3 {
            self.by_key.remove(&lane.key);
            self.by_number.remove(&lane.number);
        }
    }

    /// Removes lanes that no shared specification has.
    pub(super) fn sweep(&mut self) {
        self.by_number.retain(|_, lane| Arc::strong_count(lane) > 2);
        self.by_key.retain(|_, lane| Arc::strong_count(lane) > 1);
    }

    /// A job of a lane is in this state from now on.
    pub(super) fn enter(&mut self, number: u64, state: State) {
        self.count(number, state, |count| *count += 1);
    }

    /// A job of a lane is no longer in this state.
    pub(super) fn leave(&mut self, number: u64, state: State) {
        self.count(number, state, |count| *count -= 1);
    }

    fn count(&mut self, number: u64, state: State, change: impl Fn(&mut usize)) {
        let Some(lane) = self.by_number.get(&number) else { return };
        for group in &lane.groups {
            let counts = self.counts.entry(group.clone()).or_default();
            match state {
                State::Available => change(&mut counts.waiting),
                State::Active => change(&mut counts.active),
                _ => {}
            }
            if *counts == Counts::default() {
                self.counts.remove(group);
            }
        }
    }

    /// The groups that have available or active jobs.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        self.counts.keys()
    }

    /// The bounds that jobs of a group bring: those of the lane that came last.
    pub(super) fn bounds(&self, group: &Group) -> Option<Bounds> {
        let lanes = self.by_number.values().filter(|lane| lane.groups.contains(group));
        let last = lanes.max_by_key(|lane| lane.number)?;
        last.lane.groups().find(|(of, _)| of == group).map(|(_, own)| own)
    }

    /// How many jobs of a group wait and are active; not of the group of a queue, whose jobs are counted anyway.
    pub(super) fn counts(&self, group: &Group) -> Counts {
        self.counts.get(group).copied().unwrap_or_default()
    }
}
