//! The index of jobs that must be unique, by key. Other jobs are not in it.

use super::slot::Slot;
use super::store_state::StoreState;
use crate::unique::{Holder, MOST_REPLACED};
use crate::{Duplicate, JobId, Redrive, State, Unique, UniqueKey};
use redrive_policy::Moment;
use std::collections::BTreeSet;

/// By key, state, creation and id, so that jobs that do not count are not looked at, however many they are.
#[derive(Debug, Default)]
pub(super) struct Uniques(BTreeSet<Entry>);

/// Under which entry a job is.
pub(super) type Entry = (UniqueKey, State, Moment, JobId);

impl Uniques {
    pub(super) fn build<'s>(slots: impl Iterator<Item = &'s Slot>) -> Self {
        Self(slots.filter_map(Slot::unique_entry).collect())
    }

    /// A job moves from one entry to another; from none if it is new, to none if it is removed.
    pub(super) fn shift(&mut self, from: Option<Entry>, to: Option<Entry>) {
        if from != to {
            from.map(|entry| self.0.remove(&entry));
            self.0.extend(to);
        }
    }
}

impl StoreState {
    /// The jobs of which a job with this policy is a duplicate, in the order of their creation, then by id; where they
    /// are more than one job replaces, not all.
    pub(in crate::embedded) fn holders(&self, unique: &Unique, now: Moment) -> Vec<Holder> {
        const LAST: JobId = JobId::from_bytes([u8::MAX; 16]);
        let since = Moment::from_micros(unique.since(now));
        let mut holders = Vec::new();
        for state in unique.states.iter() {
            let first = (unique.key, state, since, JobId::from_bytes([0; 16]));
            let entries = self.uniques.0.range(first..=(unique.key, state, Moment::from_micros(i64::MAX), LAST));
            let counting = entries.filter(|(_, state, created, _)| unique.counts(*state, *created, now));
            holders.extend(counting.take(MOST_REPLACED + 1).map(|(_, state, created, id)| Holder {
                created: *created,
                id: *id,
                state: *state,
                due: self.find(*id).and_then(|place| self.slots.get(place)).and_then(Slot::due),
            }));
        }
        holders.sort_by_key(|holder| (holder.created, holder.id));
        holders
    }

    /// What the job in this place is a duplicate of if it is redriven.
    pub(in crate::embedded) fn redriven_duplicate(
        &self,
        place: u32,
        redrive: &Redrive,
        now: Moment,
    ) -> Option<Duplicate> {
        let slot = self.slots.get(place)?;
        let unique = if redrive.spec.is_some() { redrive.unique.as_ref() } else { slot.unique() };
        unique.and_then(|unique| unique.redriven(slot.id, self.holders(unique, now)))
    }
}
