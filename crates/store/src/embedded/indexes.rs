//! Indexes, by which jobs are found without reading all of them.

use super::due::Due;
use super::lanes::{Lanes, UNLIMITED};
use super::queue_index::{Filled, QueueIndex, Ready, Timeline, id_index};
use super::slot::{IndexKeys, Slot};
use crate::JobId;
use crate::standstill::Grace;
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// All indexes but the one by id.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// The queues by number. A queue keeps its number until it is removed; the numbers of removed queues are `free`.
    pub(super) queue_indexes: Vec<QueueIndex>,
    by_name: BTreeMap<Arc<str>, u32>,
    free: Vec<u32>,
    /// The lanes of jobs with limits of their own.
    pub(super) lanes: Lanes,
    /// How often a free number was reused.
    pub(super) retaken: u64,
    /// Scheduled and retryable jobs by the time at which they may run.
    pub(super) due: Due,
    /// Waiting jobs by the time at which they expire.
    pub(super) expires: Timeline,
    /// Active jobs by the time at which their run is overdue.
    pub(super) overdue: Timeline,
    /// Ended jobs by the time of their end.
    pub(super) finished: Timeline,
    /// The same for dead letters.
    pub(super) dead: Timeline,
}

impl Indexes {
    /// The number of a queue.
    pub(super) fn queue_index(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// A queue that is not known yet.
    pub(super) fn add_queue_index(&mut self, name: Arc<str>, paused: bool, created: Moment) -> u32 {
        let queue_index = QueueIndex::new(Arc::clone(&name), paused, created);
        let place = match self.free.pop() {
            Some(place) => {
                self.retaken += 1;
                self.queue_indexes[place as usize] = queue_index;
                place
            }
            None => {
                self.queue_indexes.push(queue_index);
                self.queue_indexes.len() as u32 - 1
            }
        };
        self.by_name.insert(name, place);
        place
    }

    /// Removes a queue to which no job refers.
    pub(super) fn remove_queue_index(&mut self, place: u32) {
        let queue_index = std::mem::replace(
            &mut self.queue_indexes[place as usize],
            QueueIndex::new("".into(), false, Moment::ORIGIN),
        );
        self.by_name.remove(&queue_index.name);
        self.free.push(place);
    }

    /// The queues from a number on, in the order of their numbers.
    pub(super) fn queue_indexes_from(&self, place: usize) -> impl Iterator<Item = &QueueIndex> {
        let known =
            |(place, queue_index): &(usize, &QueueIndex)| self.queue_index(&queue_index.name) == Some(*place as u32);
        self.queue_indexes.iter().enumerate().skip(place).filter(known).map(|(_, queue_index)| queue_index)
    }

    /// The queues by name.
    pub(super) fn sorted_queue_indexes(&self) -> impl Iterator<Item = &QueueIndex> {
        self.by_name.values().map(|place| &self.queue_indexes[*place as usize])
    }

    pub(super) fn insert(&mut self, id: JobId, slot: u32, places: &IndexKeys) {
        if places.lane != UNLIMITED {
            self.lanes.enter(places.lane, places.state);
        }
        self.queue_indexes[places.queue_index as usize].insert(id, slot, places);
        if let Some(at) = places.due {
            self.due.insert(places.queue_index, (at, id), slot);
        }
        for (timeline, at) in self.timelines(places) {
            if let Some(at) = at {
                timeline.insert((at, id), slot);
            }
        }
    }

    pub(super) fn remove(&mut self, id: JobId, places: &IndexKeys) {
        if places.lane != UNLIMITED {
            self.lanes.leave(places.lane, places.state);
        }
        self.queue_indexes[places.queue_index as usize].remove(id, places);
        if let Some(at) = places.due {
            self.due.remove(places.queue_index, &(at, id));
        }
        for (timeline, at) in self.timelines(places) {
            if let Some(at) = at {
                timeline.remove(&(at, id));
            }
        }
    }

    /// A job moves from some keys to others.
    pub(super) fn shift(&mut self, id: JobId, slot: u32, from: &IndexKeys, to: &IndexKeys) {
        if from == to {
            return;
        }
        self.remove(id, from);
        self.insert(id, slot, to);
    }

    fn timelines(&mut self, places: &IndexKeys) -> [(&mut Timeline, Option<Moment>); 3] {
        let ended = if places.dead { &mut self.dead } else { &mut self.finished };
        [(&mut self.expires, places.expires), (&mut self.overdue, places.overdue), (ended, places.finished)]
    }

    /// Builds the indexes of all jobs in bulk: faster than one by one, and in half the memory, because
    /// trees that are built from sorted lists have full nodes.
    pub(super) fn build<'a>(&mut self, jobs: impl Iterator<Item = (u32, &'a Slot)>, grace: &Grace) {
        let mut queue_indexes: Vec<QueueIndexDraft> =
            self.queue_indexes.iter().map(|_| QueueIndexDraft::default()).collect();
        let mut drafts: [TimelineDraft; 4] = Default::default();
        for (slot, job) in jobs {
            let places = job.places(grace);
            let queue_index = &mut queue_indexes[places.queue_index as usize];
            queue_index.id_indexes[id_index(&places)].push((job.id, slot));
            if let Some(since) = places.ready {
                let ready = queue_index.ready.entry(places.lane).or_default();
                ready.entry(Reverse(places.priority)).or_default().push(((since, job.id), slot));
            }
            if places.lane != UNLIMITED {
                self.lanes.enter(places.lane, places.state);
            }
            queue_index.due.extend(places.due.map(|due| ((due, job.id), slot)));
            if let Some(finished) = places.finished.filter(|_| places.dead) {
                queue_index.dead.push(((finished, job.id), slot));
            }
            let ended = if places.dead { 3 } else { 2 };
            let times = [(0, places.expires), (1, places.overdue), (ended, places.finished)];
            for (draft, at) in times {
                drafts[draft].extend(at.map(|at| ((at, job.id), slot)));
            }
        }
        let mut due = Vec::with_capacity(queue_indexes.len());
        for (queue_index, draft) in self.queue_indexes.iter_mut().zip(queue_indexes) {
            due.push(draft.due.into_iter().collect());
            let filled = |ready: ReadyDraft| -> Ready {
                ready.into_iter().map(|(priority, line)| (priority, line.into_iter().collect())).collect()
            };
            let mut lanes: HashMap<u64, Ready> =
                draft.ready.into_iter().map(|(lane, ready)| (lane, filled(ready))).collect();
            queue_index.fill(Filled {
                ready: lanes.remove(&UNLIMITED).unwrap_or_default(),
                lanes,
                id_indexes: draft.id_indexes.map(|id_index| id_index.into_iter().collect()),
                dead: draft.dead.into_iter().collect(),
            });
        }
        self.due = Due::new((0..).zip(due));
        [self.expires, self.overdue, self.finished, self.dead] = drafts.map(|draft| draft.into_iter().collect());
    }
}

/// A timeline as a plain list.
type TimelineDraft = Vec<((Moment, JobId), u32)>;

type ReadyDraft = BTreeMap<Reverse<i32>, TimelineDraft>;

/// The indexes of a queue as plain lists.
#[derive(Default)]
struct QueueIndexDraft {
    id_indexes: [Vec<(JobId, u32)>; 9],
    /// By lane.
    ready: HashMap<u64, ReadyDraft>,
    due: TimelineDraft,
    dead: TimelineDraft,
}
