//! Lists, newest first.

use crate::embedded::lane::Shelf;
use crate::embedded::ledger::Ledger;
use crate::embedded::slot::Slot;
use crate::{Filter, JobId, Listed, Page};
use std::collections::BinaryHeap;
use std::collections::btree_map;
use std::iter::Rev;

impl Ledger {
    pub(in crate::embedded) fn list(&self, filter: &Filter, page: Page) -> Listed {
        let shelves = self.shelves(filter);
        let places = Newest::new(&shelves);
        if filter.kind.is_none() && filter.finished_since.is_none() && filter.finished_before.is_none() {
            // Every job on these shelves fits, so that they need not be looked at to be counted.
            let total = shelves.iter().map(|shelf| shelf.len()).sum();
            let jobs = places.skip(page.offset).take(page.limit).filter_map(|place| self.job(place)).collect();
            return Listed { jobs, total };
        }
        let mut listed = Listed { jobs: Vec::new(), total: 0 };
        for slot in places.filter_map(|place| self.slots.get(place)).filter(|slot| fits(filter, slot)) {
            if listed.total >= page.offset && listed.jobs.len() < page.limit {
                listed.jobs.push(slot.job());
            }
            listed.total += 1;
        }
        listed
    }

    /// The shelves on which all jobs fit the filter as far as queue, state and dead letters go.
    fn shelves(&self, filter: &Filter) -> Vec<&Shelf> {
        let lanes = match &filter.queue {
            Some(queue) => self.indexes.lane(queue).map(|lane| &self.indexes.lanes[lane as usize..=lane as usize]),
            None => Some(&self.indexes.lanes[..]),
        };
        let shelves = lanes.unwrap_or_default().iter().flat_map(|lane| lane.shelves(filter.state, filter.dead));
        shelves.filter(|shelf| !shelf.is_empty()).collect()
    }
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
    shelves: Vec<Rev<btree_map::Iter<'a, JobId, u32>>>,
    /// The next of each shelf, and which shelf that is.
    heads: BinaryHeap<(JobId, u32, usize)>,
}

impl<'a> Newest<'a> {
    fn new(shelves: &[&'a Shelf]) -> Self {
        let mut shelves: Vec<_> = shelves.iter().map(|shelf| shelf.iter().rev()).collect();
        let heads = shelves.iter_mut().enumerate().filter_map(|(index, shelf)| {
            let (id, place) = shelf.next()?;
            Some((*id, *place, index))
        });
        let heads = heads.collect();
        Self { shelves, heads }
    }
}

impl Iterator for Newest<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (_, place, index) = self.heads.pop()?;
        if let Some((id, place)) = self.shelves[index].next() {
            self.heads.push((*id, *place, index));
        }
        Some(place)
    }
}
