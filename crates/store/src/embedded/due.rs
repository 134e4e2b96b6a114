//! Jobs that wait for a time, by queue: a queue is passed over as a whole, however many jobs wait in it.

use super::queue_index::Timeline;
use crate::JobId;
use redrive_policy::Moment;
use std::collections::{BTreeMap, BTreeSet};

/// When a job is due, and its id.
type Key = (Moment, JobId);

/// Scheduled and retryable jobs by the time at which they may run.
#[derive(Debug, Default)]
pub(super) struct Due {
    /// The waiting jobs of each queue that has any, by the number of the queue.
    queue_indexes: BTreeMap<u32, Timeline>,
    /// The same queues by their first job.
    heads: BTreeSet<(Key, u32)>,
}

impl Due {
    /// With the waiting jobs of each queue.
    pub(super) fn new(queue_indexes: impl Iterator<Item = (u32, Timeline)>) -> Self {
        let queue_indexes: BTreeMap<u32, Timeline> = queue_indexes.filter(|(_, waiting)| !waiting.is_empty()).collect();
        let heads =
            queue_indexes.iter().filter_map(|(queue_index, waiting)| Some((first(waiting)?, *queue_index))).collect();
        Self { queue_indexes, heads }
    }

    pub(super) fn insert(&mut self, queue_index: u32, key: Key, slot: u32) {
        self.change(queue_index, |waiting| waiting.insert(key, slot));
    }

    pub(super) fn remove(&mut self, queue_index: u32, key: &Key) {
        self.change(queue_index, |waiting| waiting.remove(key));
    }

    fn change(&mut self, queue_index: u32, change: impl FnOnce(&mut Timeline) -> Option<u32>) {
        let waiting = self.queue_indexes.entry(queue_index).or_default();
        let before = first(waiting);
        change(waiting);
        let after = first(waiting);
        if waiting.is_empty() {
            self.queue_indexes.remove(&queue_index);
        }
        if before != after {
            before.map(|key| self.heads.remove(&(key, queue_index)));
            after.map(|key| self.heads.insert((key, queue_index)));
        }
    }

    /// When the first job of the queues that are not held is due.
    pub(super) fn first(&self, held: impl Fn(u32) -> bool) -> Option<Moment> {
        self.heads.iter().find(|(_, queue_index)| !held(*queue_index)).map(|((at, _), _)| *at)
    }

    /// When the first job of a queue is due, and how many are due by now, counted up to `most`.
    pub(super) fn of(&self, queue_index: u32, now: Moment, most: usize) -> (Option<Moment>, usize) {
        let Some(waiting) = self.queue_indexes.get(&queue_index) else { return (None, 0) };
        let due = waiting.keys().take_while(|(at, _)| *at <= now).take(most).count();
        (first(waiting).map(|(at, _)| at), due)
    }

    /// The jobs that are due in the queues that are not held, at most `limit`: the first of each queue, then
    /// the second of each.
    pub(super) fn in_turn(&self, limit: usize, now: Moment, held: impl Fn(u32) -> bool) -> Vec<u32> {
        let due = self.heads.iter().take_while(|((at, _), _)| *at <= now).map(|(_, queue_index)| *queue_index);
        // More queues than jobs are wanted of have no turn.
        let open = due.filter(|queue_index| !held(*queue_index)).take(limit);
        let mut open: Vec<_> = open
            .filter_map(|queue_index| self.queue_indexes.get(&queue_index))
            .map(|waiting| waiting.iter().take_while(|((at, _), _)| *at <= now))
            .collect();
        let mut chosen = Vec::new();
        while chosen.len() < limit && !open.is_empty() {
            let mut turn = Vec::with_capacity(open.len());
            open.retain_mut(|waiting| waiting.next().map(|next| turn.push(next)).is_some());
            turn.sort_unstable();
            chosen.extend(turn.into_iter().take(limit - chosen.len()).map(|(_, slot)| *slot));
        }
        chosen
    }
}

fn first(waiting: &Timeline) -> Option<Key> {
    waiting.first_key_value().map(|(key, _)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn key(at: i64) -> Key {
        (Moment::from_micros(at), JobId::new(Moment::ORIGIN, at.unsigned_abs().into()))
    }

    #[test]
    fn sixty_thousand_held_jobs_are_asked_about_once_and_looked_at_never() {
        const HELD: u32 = 60_000;
        let mut due = Due::default();
        for slot in 0..HELD {
            due.insert(7, key(i64::from(slot)), slot);
        }
        for (queue_index, at) in [(1, 70_000), (2, 80_000), (1, 90_000)] {
            due.insert(queue_index, key(at), HELD + u32::try_from(at).unwrap());
        }
        let asked = RefCell::new(Vec::new());
        let held = |queue_index| {
            asked.borrow_mut().push(queue_index);
            queue_index == 7
        };
        let now = Moment::from_micros(100_000);
        assert_eq!(due.in_turn(9, now, held), [130_000, 140_000, 150_000]);
        assert_eq!(asked.take(), [7, 1, 2], "each queue once, by its first job");
        assert_eq!(due.first(held), Some(Moment::from_micros(70_000)));
        assert_eq!(asked.take(), [7, 1], "up to the first queue that is not held");
        // Without the jobs of the held queue, everything else is the same: nothing is read of them.
        due.queue_indexes.insert(7, Timeline::new());
        assert_eq!(due.in_turn(9, now, held), [130_000, 140_000, 150_000]);
    }

    #[test]
    fn queues_take_turns_and_are_in_order_by_their_first_job() {
        let mut due = Due::default();
        for (queue_index, at) in [(0, 1), (0, 2), (0, 3), (1, 5), (2, 4), (1, 6)] {
            due.insert(queue_index, key(at), u32::try_from(at).unwrap());
        }
        let turns = |due: &Due, limit, now| due.in_turn(limit, Moment::from_micros(now), |_| false);
        assert_eq!(turns(&due, 99, 9), [1, 4, 5, 2, 6, 3]);
        assert_eq!(turns(&due, 4, 9), [1, 4, 5, 2]);
        assert_eq!(turns(&due, 2, 9), [1, 4]);
        assert_eq!(turns(&due, 99, 4), [1, 4, 2, 3]);
        assert_eq!(turns(&due, 0, 9), Vec::<u32>::new());
        due.remove(0, &key(1));
        due.remove(2, &key(4));
        assert_eq!(turns(&due, 99, 9), [2, 5, 3, 6]);
        assert_eq!(due.heads.len(), 2);
        let rebuilt = Due::new(due.queue_indexes.clone().into_iter());
        assert_eq!((rebuilt.queue_indexes, rebuilt.heads), (due.queue_indexes, due.heads));
    }
}
