//! Lists, in steps: the lock is free between two of them, and each goes on behind the last entry of the one before.

use crate::embedded::queue_index::{IdIndex, Timeline};
use crate::embedded::slot::Slot;
use crate::embedded::store_state::StoreState;
use crate::listing::Gathering;
use crate::{Entry, Filter, Job, JobId, Listed, Page, State};
use redrive_policy::Moment;
use std::collections::BinaryHeap;
use std::collections::btree_map;
use std::iter::Rev;

/// A job that is copied to the page takes as long as looking at so many others.
const COPY: usize = 7;

/// A list that is being read.
#[derive(Debug)]
pub(in crate::embedded) struct Scan {
    filter: Filter,
    page: Gathering<Job>,
    total: Option<usize>,
    /// How many further jobs may be looked at.
    left: usize,
    progress: ListPosition,
}

/// How far a list has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListPosition {
    Begun,
    /// The page is full, or enough has been looked at; the list goes on.
    Stopped,
    /// The list has no further entries.
    Ended,
}

impl Scan {
    pub(in crate::embedded) fn is_over(&self) -> bool {
        self.progress != ListPosition::Begun
    }

    pub(in crate::embedded) fn listed(self) -> Listed {
        let next = (self.progress == ListPosition::Stopped).then(|| self.page.rest());
        Listed { jobs: self.page.into_found(), next, total: self.total }
    }
}

impl StoreState {
    /// Begins a list that looks at a limited number of jobs.
    pub(in crate::embedded) fn begin_list(&self, filter: Filter, page: Page, most: usize) -> Scan {
        let total = filter.is_counted().then(|| self.id_indexes(&filter).map(IdIndex::len).sum());
        Scan { filter, page: Gathering::new(page), total, left: most.max(1), progress: ListPosition::Begun }
    }

    /// Goes on with a list, and looks at up to `step` further jobs, or at fewer where some are copied to the page.
    pub(in crate::embedded) fn go_on(&self, scan: &mut Scan, step: usize) {
        let after = scan.page.rest().after;
        if scan.filter.is_by_end() {
            let ended = self.ended(&scan.filter, after);
            self.look(scan, step, ended);
        } else {
            let id_indexes: Vec<&IdIndex> =
                self.id_indexes(&scan.filter).filter(|id_index| !id_index.is_empty()).collect();
            self.look(scan, step, Newest::new(&id_indexes, after.map(|after| after.id)));
        }
    }

    fn look(&self, scan: &mut Scan, step: usize, mut entries: impl Iterator<Item = (Entry, u32)>) {
        let mut step = step.max(1);
        while step > 0 && scan.left > 0 {
            let Some((entry, place)) = entries.next() else {
                scan.progress = ListPosition::Ended;
                return;
            };
            (step, scan.left) = (step - 1, scan.left - 1);
            match self.slots.get(place).filter(|slot| fits(&scan.filter, slot)) {
                None => scan.page.pass(entry),
                Some(slot) => {
                    let page = scan.page.rest();
                    if !scan.page.take(entry, slot.bytes(page.payloads), || page.shown(slot.job())) {
                        scan.progress = ListPosition::Stopped;
                        return;
                    }
                    step = step.saturating_sub(COPY);
                }
            }
        }
        if scan.left == 0 {
            scan.progress = ListPosition::Stopped;
        }
    }

    /// The indexes whose jobs all fit the filter by queue, state and dead letter.
    fn id_indexes(&self, filter: &Filter) -> impl Iterator<Item = &IdIndex> {
        let queue_indexes = match &filter.queue {
            Some(queue) => self
                .indexes
                .queue_index(queue)
                .map(|queue_index| &self.indexes.queue_indexes[queue_index as usize..=queue_index as usize]),
            None => Some(&self.indexes.queue_indexes[..]),
        };
        let (state, dead) = (filter.state, filter.dead);
        queue_indexes.unwrap_or_default().iter().flat_map(move |queue_index| queue_index.id_indexes(state, dead))
    }

    /// The dead letters behind an entry that fit the filter by queue, state and times, by their end.
    fn ended<'a>(&'a self, filter: &Filter, after: Option<Entry>) -> impl Iterator<Item = (Entry, u32)> + use<'a> {
        let timeline = match &filter.queue {
            Some(queue) => self
                .indexes
                .queue_index(queue)
                .map(|queue_index| self.indexes.queue_indexes[queue_index as usize].dead()),
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
    filter.kind.as_ref().is_none_or(|kind| *kind == slot.shared_spec.kind)
        && filter.finished_since.is_none_or(|since| finished.is_some_and(|at| at >= since))
        && filter.finished_before.is_none_or(|before| finished.is_some_and(|at| at < before))
}

/// Several indexes as one, the newest id first.
struct Newest<'a> {
    id_indexes: Vec<Rev<btree_map::Range<'a, JobId, u32>>>,
    /// The next entry of each index, and the number of that index.
    heads: BinaryHeap<(JobId, u32, usize)>,
}

impl<'a> Newest<'a> {
    /// The entries of the indexes before an id.
    fn new(id_indexes: &[&'a IdIndex], before: Option<JobId>) -> Self {
        let range = |id_index: &'a IdIndex| match before {
            Some(before) => id_index.range(..before),
            None => id_index.range(..),
        };
        let mut id_indexes: Vec<_> = id_indexes.iter().map(|id_index| range(id_index).rev()).collect();
        let heads = id_indexes.iter_mut().enumerate().filter_map(|(index, id_index)| {
            let (id, place) = id_index.next()?;
            Some((*id, *place, index))
        });
        let heads = heads.collect();
        Self { id_indexes, heads }
    }
}

impl Iterator for Newest<'_> {
    type Item = (Entry, u32);

    fn next(&mut self) -> Option<(Entry, u32)> {
        let (id, place, index) = self.heads.pop()?;
        if let Some((id, place)) = self.id_indexes[index].next() {
            self.heads.push((*id, *place, index));
        }
        Some((Entry { ended: None, id }, place))
    }
}
