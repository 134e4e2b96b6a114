//! Where jobs are found without looking at all of them.

use super::due::Due;
use super::lane::{Filled, Lane, Timeline, shelf};
use super::slot::{Places, Slot};
use crate::JobId;
use crate::standstill::Grace;
use redrive_policy::Moment;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All indexes but the one by name.
#[derive(Debug, Default)]
pub(super) struct Indexes {
    /// The queues. Their places stay while they are known; those of forgotten ones are `free`.
    pub(super) lanes: Vec<Lane>,
    by_name: BTreeMap<Arc<str>, u32>,
    free: Vec<u32>,
    /// How often a free place was taken.
    pub(super) retaken: u64,
    /// Scheduled and retryable jobs by the time at which they may run.
    pub(super) due: Due,
    /// Waiting jobs by the time at which they lose their point.
    pub(super) expires: Timeline,
    /// Active jobs by the time at which their run is overdue.
    pub(super) overdue: Timeline,
    /// Ended jobs by the time of their end.
    pub(super) finished: Timeline,
    /// The same for dead letters.
    pub(super) dead: Timeline,
}

impl Indexes {
    /// The place of a queue.
    pub(super) fn lane(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// A queue that is not known yet.
    pub(super) fn add_lane(&mut self, name: Arc<str>, paused: bool, created: Moment) -> u32 {
        let lane = Lane::new(Arc::clone(&name), paused, created);
        let place = match self.free.pop() {
            Some(place) => {
                self.retaken += 1;
                self.lanes[place as usize] = lane;
                place
            }
            None => {
                self.lanes.push(lane);
                self.lanes.len() as u32 - 1
            }
        };
        self.by_name.insert(name, place);
        place
    }

    /// Forgets a queue to which no job refers.
    pub(super) fn remove_lane(&mut self, place: u32) {
        let lane = std::mem::replace(&mut self.lanes[place as usize], Lane::new("".into(), false, Moment::ORIGIN));
        self.by_name.remove(&lane.name);
        self.free.push(place);
    }

    /// The queues from a place on, in the order of their places.
    pub(super) fn lanes_from(&self, place: usize) -> impl Iterator<Item = &Lane> {
        let known = |(place, lane): &(usize, &Lane)| self.lane(&lane.name) == Some(*place as u32);
        self.lanes.iter().enumerate().skip(place).filter(known).map(|(_, lane)| lane)
    }

    /// The queues by name.
    pub(super) fn sorted_lanes(&self) -> impl Iterator<Item = &Lane> {
        self.by_name.values().map(|place| &self.lanes[*place as usize])
    }

    pub(super) fn insert(&mut self, id: JobId, slot: u32, places: &Places) {
        self.lanes[places.lane as usize].insert(id, slot, places);
        if let Some(at) = places.due {
            self.due.insert(places.lane, (at, id), slot);
        }
        for (timeline, at) in self.timelines(places) {
            if let Some(at) = at {
                timeline.insert((at, id), slot);
            }
        }
    }

    pub(super) fn remove(&mut self, id: JobId, places: &Places) {
        self.lanes[places.lane as usize].remove(id, places);
        if let Some(at) = places.due {
            self.due.remove(places.lane, &(at, id));
        }
        for (timeline, at) in self.timelines(places) {
            if let Some(at) = at {
                timeline.remove(&(at, id));
            }
        }
    }

    /// A job moves from some places to others.
    pub(super) fn shift(&mut self, id: JobId, slot: u32, from: &Places, to: &Places) {
        if from == to {
            return;
        }
        self.remove(id, from);
        self.insert(id, slot, to);
    }

    fn timelines(&mut self, places: &Places) -> [(&mut Timeline, Option<Moment>); 3] {
        let ended = if places.dead { &mut self.dead } else { &mut self.finished };
        [(&mut self.expires, places.expires), (&mut self.overdue, places.overdue), (ended, places.finished)]
    }

    /// Builds the indexes of all jobs at once: faster than one by one, and in half the memory, because
    /// trees that are built from sorted lists have full nodes.
    pub(super) fn build<'a>(&mut self, jobs: impl Iterator<Item = (u32, &'a Slot)>, grace: &Grace) {
        let mut lanes: Vec<LaneDraft> = self.lanes.iter().map(|_| LaneDraft::default()).collect();
        let mut drafts: [TimelineDraft; 4] = Default::default();
        for (slot, job) in jobs {
            let places = job.places(grace);
            let lane = &mut lanes[places.lane as usize];
            lane.shelves[shelf(&places)].push((job.id, slot));
            if let Some(since) = places.ready {
                lane.ready.entry(Reverse(places.priority)).or_default().push(((since, job.id), slot));
            }
            lane.due.extend(places.due.map(|due| ((due, job.id), slot)));
            if let Some(finished) = places.finished.filter(|_| places.dead) {
                lane.dead.push(((finished, job.id), slot));
            }
            let ended = if places.dead { 3 } else { 2 };
            let times = [(0, places.expires), (1, places.overdue), (ended, places.finished)];
            for (draft, at) in times {
                drafts[draft].extend(at.map(|at| ((at, job.id), slot)));
            }
        }
        let mut due = Vec::with_capacity(lanes.len());
        for (lane, draft) in self.lanes.iter_mut().zip(lanes) {
            due.push(draft.due.into_iter().collect());
            let ready = draft.ready.into_iter().map(|(priority, line)| (priority, line.into_iter().collect()));
            lane.fill(Filled {
                ready: ready.collect(),
                shelves: draft.shelves.map(|shelf| shelf.into_iter().collect()),
                dead: draft.dead.into_iter().collect(),
            });
        }
        self.due = Due::new((0..).zip(due));
        [self.expires, self.overdue, self.finished, self.dead] = drafts.map(|draft| draft.into_iter().collect());
    }
}

/// A timeline as a plain list.
type TimelineDraft = Vec<((Moment, JobId), u32)>;

/// The indexes of a queue as plain lists.
#[derive(Default)]
struct LaneDraft {
    shelves: [Vec<(JobId, u32)>; 9],
    ready: BTreeMap<Reverse<i32>, TimelineDraft>,
    due: TimelineDraft,
    dead: TimelineDraft,
}
