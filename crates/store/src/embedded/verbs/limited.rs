//! Claims in queues with limits: lanes that are full are passed over as a whole.

use crate::embedded::lanes::UNLIMITED;
use crate::embedded::queue_index::Turn;
use crate::embedded::record;
use crate::embedded::store_state::StoreState;
use crate::limit::{GroupRow, Room};
use crate::{Bounds, Claim, Claimed, Group, Setting, Standing, State};
use redrive_policy::Moment;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a claim may still take.
pub(super) struct Budget {
    pub(super) bytes: usize,
    /// A job did not fit into the bytes.
    pub(super) is_full: bool,
}

impl Budget {
    /// Whether a job of this size fits; the first always does.
    pub(super) fn takes(&mut self, bytes: usize, most: usize) -> bool {
        let first = self.bytes == 0;
        self.bytes = self.bytes.saturating_add(bytes);
        self.is_full = self.bytes > most && !first;
        !self.is_full
    }
}

impl StoreState {
    /// Whether claims in this queue have to look at limits.
    pub(super) fn is_limited(&self, queue_index: u32) -> bool {
        let queue_index = &self.indexes.queue_indexes[queue_index as usize];
        queue_index.has_lanes() || self.groups.limits_queue(&queue_index.name)
    }

    /// Claims jobs of one queue, as far as all limits allow.
    pub(super) fn claim_limited(
        &mut self,
        queue_index: u32,
        claim: &Claim,
        budget: &mut Budget,
        claimed: &mut Claimed,
        now: Moment,
    ) {
        let queue = &self.indexes.queue_indexes[queue_index as usize];
        let queue_group = Group::Queue(Arc::clone(&queue.name));
        let lanes: Vec<u64> = queue.lanes().collect();
        let heads = lanes.into_iter().filter_map(|lane| self.head(queue_index, lane, now));
        let mut heads: BTreeMap<Turn, (u64, u32)> = heads.collect();
        let mut touched: BTreeSet<Group> = BTreeSet::new();
        while claimed.jobs.len() < claim.count {
            let Some((_, (lane, place))) = heads.pop_first() else { break };
            let groups = self.groups_of(lane, &queue_group);
            if let Some((group, room)) = self.full(&groups, now) {
                let whole_queue = group == queue_group;
                let until = self.groups.get(&group).and_then(|row| row.until(now));
                claimed.pass(group, room, until);
                if whole_queue {
                    break;
                }
                continue;
            }
            if !budget.takes(self.slots.get(place).map_or(0, |slot| slot.bytes(true)), claim.bytes) {
                break;
            }
            let Ok(job) = self.claim_one(place, claim, now) else { continue };
            claimed.jobs.push(job);
            for (group, own) in groups {
                let mut row = self.groups.get(&group).cloned().unwrap_or_default();
                if row.start(own, now) {
                    self.groups.put(group.clone(), row);
                    touched.insert(group);
                }
            }
            heads.extend(self.head(queue_index, lane, now));
        }
        for group in touched {
            self.write_group(&group);
        }
    }

    pub(in crate::embedded) fn set_limit(&mut self, group: &Group, setting: Option<Setting>, now: Moment) {
        if let (Group::Queue(name), true) = (group, setting.is_some()) {
            self.queue_index(name, now);
        }
        self.change_group(group, |row| row.setting = setting);
    }

    pub(in crate::embedded) fn hold_group(&mut self, group: &Group, until: Moment) {
        self.change_group(group, |row| row.held = Some(until));
    }

    fn change_group(&mut self, group: &Group, change: impl FnOnce(&mut GroupRow)) {
        let mut row = self.groups.get(group).cloned().unwrap_or_default();
        change(&mut row);
        self.groups.put(group.clone(), row);
        self.write_group(group);
    }

    pub(in crate::embedded) fn settings(&self) -> Vec<(Group, Setting)> {
        let set = self.groups.iter().filter_map(|(group, row)| Some((group.clone(), row.setting.clone()?)));
        set.collect()
    }

    pub(in crate::embedded) fn standings(&self, group: Option<Group>, now: Moment) -> Vec<Standing> {
        let known = || self.indexes.lanes.groups().chain(self.groups.iter().map(|(group, _)| group)).cloned();
        let groups: BTreeSet<Group> = group.map_or_else(|| known().collect(), |group| [group].into());
        groups.into_iter().filter_map(|group| self.standing(group, now)).collect()
    }

    fn standing(&self, group: Group, now: Moment) -> Option<Standing> {
        let (row, own) = (self.groups.get(&group), self.indexes.lanes.bounds(&group));
        let waiting = match &group {
            Group::Queue(name) => {
                let queue_index = self.indexes.queue_index(name);
                queue_index.map_or(0, |place| self.indexes.queue_indexes[place as usize].count(State::Available))
            }
            Group::Key(_) | Group::Kind(_) => self.indexes.lanes.counts(&group).waiting,
        };
        let active = self.active(&group);
        let is_known = row.is_some() || (!matches!(group, Group::Queue(_)) && active + waiting > 0);
        let empty = GroupRow::EMPTY;
        let row = row.unwrap_or(&empty);
        is_known.then(|| Standing::new(group, row, own.unwrap_or_default(), active, waiting, now))
    }

    /// Stores what a group has from now on.
    pub(super) fn write_group(&mut self, group: &Group) {
        let row = self.groups.get(group).cloned().unwrap_or_default();
        record::group(self.frame.records(), group, &row);
    }

    /// The next job of a lane that has not expired.
    fn head(&self, queue_index: u32, lane: u64, now: Moment) -> Option<(Turn, (u64, u32))> {
        let expired = |place: u32| self.slots.get(place).and_then(|slot| slot.expires).is_some_and(|at| at <= now);
        let mut waiting = self.indexes.queue_indexes[queue_index as usize].lane(lane);
        waiting.find(|(_, place)| !expired(*place)).map(|(turn, place)| (turn, (lane, place)))
    }

    /// The groups of the jobs of a lane, each with the bounds that the jobs bring.
    fn groups_of(&self, lane: u64, queue: &Group) -> Vec<(Group, Bounds)> {
        let own = self.indexes.lanes.get(lane).filter(|_| lane != UNLIMITED);
        let own = own.into_iter().flat_map(|lane| lane.lane.groups());
        std::iter::once((queue.clone(), Bounds::default())).chain(own).collect()
    }

    /// The first of these groups that allows no other run.
    fn full(&self, groups: &[(Group, Bounds)], now: Moment) -> Option<(Group, Room)> {
        groups.iter().find_map(|(group, own)| match self.room(group, *own, now) {
            Room::Open => None,
            room => Some((group.clone(), room)),
        })
    }

    /// Whether a group allows another run of a job with these bounds.
    fn room(&self, group: &Group, own: Bounds, now: Moment) -> Room {
        let row = self.groups.get(group);
        row.unwrap_or(&GroupRow::EMPTY).room(own, self.active(group), now)
    }

    /// How many jobs of a group are active.
    pub(super) fn active(&self, group: &Group) -> usize {
        match group {
            Group::Queue(name) => {
                let queue_index = self.indexes.queue_index(name);
                queue_index.map_or(0, |place| self.indexes.queue_indexes[place as usize].count(State::Active))
            }
            Group::Key(_) | Group::Kind(_) => self.indexes.lanes.counts(group).active,
        }
    }
}
