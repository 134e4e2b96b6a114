//! What is due: overdue runs, expired and due jobs, ended jobs past their retention.

use crate::embedded::queue_index::Timeline;
use crate::embedded::store_state::StoreState;
use crate::limit::GroupRow;
use crate::rules;
use crate::{Decider, Held, Retention, Standstill, Transition};
use redrive_policy::{Moment, Span};

impl StoreState {
    pub(in crate::embedded) fn reclaim(&mut self, decide: &Decider<'_>, limit: usize, now: Moment) -> Vec<Transition> {
        let grace = self.grace.clone();
        let overdue: Vec<u32> = until(&self.indexes.overdue, now).take(limit).collect();
        let mut ended = Vec::with_capacity(overdue.len());
        for place in overdue {
            ended.extend(self.transit(place, |job| rules::reclaim(job, decide, &grace, now)));
        }
        ended
    }

    /// Moves each run to the time at which it is overdue now, so that sweeps find none that is spared.
    pub(in crate::embedded) fn stood_still(&mut self, standstill: Standstill) {
        let before = self.grace.clone();
        self.grace.add(standstill);
        let running: Vec<u32> = self.indexes.overdue.values().copied().collect();
        for place in running {
            let Some(slot) = self.slots.get(place) else { continue };
            self.indexes.shift(slot.id, place, &slot.places(&before), &slot.places(&self.grace));
        }
    }

    pub(in crate::embedded) fn promote(&mut self, held: &Held, limit: usize, now: Moment) -> Vec<Transition> {
        let mut moved = Vec::new();
        let expired: Vec<u32> = until(&self.indexes.expires, now).take(limit).collect();
        for place in expired {
            moved.extend(self.transit(place, |job| rules::expire(job, now)));
        }
        let due = self.indexes.due.in_turn(limit - moved.len(), now, |queue_index| self.is_held(queue_index, held));
        for place in due {
            moved.extend(self.transit(place, |job| rules::fall_due(job, now)));
        }
        moved
    }

    pub(in crate::embedded) fn prune(&mut self, retention: Retention, limit: usize, now: Moment) -> usize {
        let over = |ended: &Timeline, span: Span, limit: usize| -> Vec<u32> {
            let over = ended.iter().take_while(|((finished, _), _)| finished.after(span) <= now);
            over.take(limit).map(|(_, place)| *place).collect()
        };
        let mut ended = over(&self.indexes.finished, retention.finished, limit);
        ended.extend(over(&self.indexes.dead, retention.dead, limit - ended.len()));
        for group in self.groups.over(now) {
            self.groups.put(group.clone(), GroupRow::EMPTY);
            self.write_group(&group);
        }
        ended.into_iter().filter_map(|place| self.remove(place)).count()
    }

    pub(in crate::embedded) fn next_wake(&self, held: &Held) -> Option<Moment> {
        let indexes = &self.indexes;
        let first = |timeline: &Timeline| timeline.first_key_value().map(|((at, _), _)| *at);
        let due = indexes.due.first(|queue_index| self.is_held(queue_index, held));
        [first(&indexes.overdue), first(&indexes.expires), due].into_iter().flatten().min()
    }

    fn is_held(&self, queue_index: u32, held: &Held) -> bool {
        held.contains_queue(&self.indexes.queue_indexes[queue_index as usize].name)
    }
}

/// The slots of the entries of a timeline up to and including this moment.
fn until(timeline: &Timeline, now: Moment) -> impl Iterator<Item = u32> {
    timeline.iter().take_while(move |((at, _), _)| *at <= now).map(|(_, place)| *place)
}
