//! Lists, in steps: the lock is free between two of them, and each goes on behind the last entry of the one before.

use crate::embedded::lane::{Shelf, Timeline};
use crate::embedded::ledger::Ledger;
use crate::embedded::slot::Slot;
use crate::listing::Gathering;
use crate::{Entry, Filter, Job, JobId, Listed, Page, State};
use redrive_policy::Moment;
use std::collections::BinaryHeap;
use std::collections::btree_map;
use std::iter::Rev;

/// A list that is being read.
#[derive(Debug)]
pub(in crate::embedded) struct Scan {
    filter: Filter,
    page: Gathering<Job>,
    total: Option<usize>,
    /// How many further jobs may be looked at.
    left: usize,
    progress: Progress,
}

/// How far a list has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Begun,
    /// The page is full, or enough has been looked at; the list goes on.
    Stopped,
    /// The list has no further entries.
    Ended,
}

impl Scan {
    pub(in crate::embedded) fn is_over(&self) -> bool {
        self.progress != Progress::Begun
    }

    pub(in crate::embedded) fn listed(self) -> Listed {
        let next = (self.progress == Progress::Stopped).then(|| self.page.rest());
        Listed { jobs: self.page.into_found(), next, total: self.total }
    }
}

impl Ledger {
    /// Begins a list of which at most so many jobs are looked at.
    pub(in crate::embedded) fn begin_list(&self, filter: Filter, page: Page, most: usize) -> Scan {
        let total = filter.is_counted().then(|| self.shelves(&filter).map(Shelf::len).sum());
        Scan { filter, page: Gathering::new(page), total, left: most.max(1), progress: Progress::Begun }
    }

    /// Goes on with a list, and looks at up to `step` further jobs.
    pub(in crate::embedded) fn go_on(&self, scan: &mut Scan, step: usize) {
        let after = scan.page.rest().after;
        if scan.filter.is_by_end() {
            let ended = self.ended(&scan.filter, after);
            self.look(scan, step, ended);
        } else {
            let shelves: Vec<&Shelf> = self.shelves(&scan.filter).filter(|shelf| !shelf.is_empty()).collect();
            self.look(scan, step, Newest::new(&shelves, after.map(|after| after.id)));
        }
    }

    fn look(&self, scan: &mut Scan, step: usize, mut entries: impl Iterator<Item = (Entry, u32)>) {
        for _ in 0..step.clamp(1, scan.left) {
            let Some((entry, place)) = entries.next() else {
                scan.progress = Progress::Ended;
                return;
            };
            scan.left -= 1;
            match self.slots.get(place).filter(|slot| fits(&scan.filter, slot)) {
                None => scan.page.pass(entry),
                Some(slot) => {
                    let page = scan.page.rest();
                    if !scan.page.take(entry, slot.bytes(page.payloads), || page.shown(slot.job())) {
                        scan.progress = Progress::Stopped;
                        return;
                    }
                }
            }
        }
        if scan.left == 0 {
            scan.progress = Progress::Stopped;
        }
    }

    /// The shelves on which all jobs fit the filter as far as queue, state and dead letters go.
    fn shelves(&self, filter: &Filter) -> impl Iterator<Item = &Shelf> {
        let lanes = match &filter.queue {
            Some(queue) => self.indexes.lane(queue).map(|lane| &self.indexes.lanes[lane as usize..=lane as usize]),
            None => Some(&self.indexes.lanes[..]),
        };
        let (state, dead) = (filter.state, filter.dead);
        lanes.unwrap_or_default().iter().flat_map(move |lane| lane.shelves(state, dead))
    }

    /// The dead letters behind an entry that fit the filter as far as queue, state and times go, by their end.
    fn ended<'a>(&'a self, filter: &Filter, after: Option<Entry>) -> impl Iterator<Item = (Entry, u32)> + use<'a> {
        let timeline = match &filter.queue {
            Some(queue) => self.indexes.lane(queue).map(|lane| self.indexes.lanes[lane as usize].dead()),
            None => Some(&self.indexes.dead),
        };
        let timeline = timeline.filter(|_| filter.state.is_none_or(|state| state == State::Discarded));
        let first = |moment: Moment| (moment, JobId::from_bytes([0; 16]));
        let after = after.map(|after| after.ended.map_or(first(Moment::from_micros(i64::MIN)), |at| (at, after.id)));
        let end = after.into_iter().chain(filter.finished_before.map(first)).min();
        let start = filter.finished_since.map(first);
        timeline.into_iter().flat_map(move |timeline| {
            between(timeline, start, end).map(|((at, id), place)| (Entry { ended: Some(*at), id: *id }, *place))
        })
    }
}

/// What a timeline has from `start` on and before `end`, the latest first.
fn between(
    timeline: &Timeline,
    start: Option<(Moment, JobId)>,
    end: Option<(Moment, JobId)>,
) -> impl Iterator<Item = (&(Moment, JobId), &u32)> {
    let empty = matches!((start, end), (Some(start), Some(end)) if start > end);
    let range = match (start.filter(|_| !empty), end) {
        (Some(start), Some(end)) => timeline.range(start..end),
        (Some(start), None) => timeline.range(start..),
        (None, Some(end)) => timeline.range(..end),
        (None, None) => timeline.range(..),
    };
    range.rev().take(if empty { 0 } else { usize::MAX })
}

/// The rest of the filter, without making a job of the slot first.
fn fits(filter: &Filter, slot: &Slot) -> bool {
    let finished = slot.row().and_then(|row| row.finished);
    filter.kind.as_ref().is_none_or(|kind| *kind == slot.terms.kind)
        && filter.finished_since.is_none_or(|since| finished.is_some_and(|at| at >= since))
        && filter.finished_before.is_none_or(|before| finished.is_some_and(|at| at < before))
}

/// Several shelves as one, the newest name first.
struct Newest<'a> {
    shelves: Vec<Rev<btree_map::Range<'a, JobId, u32>>>,
    /// The next of each shelf, and which shelf that is.
    heads: BinaryHeap<(JobId, u32, usize)>,
}

impl<'a> Newest<'a> {
    /// What the shelves have before a name.
    fn new(shelves: &[&'a Shelf], before: Option<JobId>) -> Self {
        let range = |shelf: &'a Shelf| match before {
            Some(before) => shelf.range(..before),
            None => shelf.range(..),
        };
        let mut shelves: Vec<_> = shelves.iter().map(|shelf| range(shelf).rev()).collect();
        let heads = shelves.iter_mut().enumerate().filter_map(|(index, shelf)| {
            let (id, place) = shelf.next()?;
            Some((*id, *place, index))
        });
        let heads = heads.collect();
        Self { shelves, heads }
    }
}

impl Iterator for Newest<'_> {
    type Item = (Entry, u32);

    fn next(&mut self) -> Option<(Entry, u32)> {
        let (id, place, index) = self.heads.pop()?;
        if let Some((id, place)) = self.shelves[index].next() {
            self.heads.push((*id, *place, index));
        }
        Some((Entry { ended: None, id }, place))
    }
}
