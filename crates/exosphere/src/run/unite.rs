//! Nodes that unite: they run once below a state, when everything else below that state has ended.

use super::machine::Machine;
use super::state::{Row, Status};
use crate::template::Strategy;

impl Machine<'_> {
    /// A state has ended. Everything that was waiting for it, and for nothing else, is created.
    pub(super) fn unite_around(&mut self, index: u32) {
        let around: Vec<u32> = std::iter::once(index).chain(self.state.above(index)).collect();
        around.into_iter().for_each(|united| self.unite(united));
    }

    /// Creates the states that unite a state, as far as nothing is missing.
    fn unite(&mut self, united: u32) {
        let row = self.state.row(united);
        if row.status != Status::Success || row.pending > 0 {
            return;
        }
        let (identifier, failed) = (&self.state.template.nodes[row.node as usize].identifier, row.failed);
        let fits = |strategy: Strategy| strategy == Strategy::AllDone || failed == 0;
        let ready: Vec<u32> = (0..)
            .zip(&self.state.template.nodes)
            .filter(|(_, node)| {
                node.unites.as_ref().is_some_and(|by| by.identifier == *identifier && fits(by.strategy))
            })
            .map(|(node, _)| node)
            .filter(|node| !row.joined.contains(node))
            .collect();
        // All of them are noted first: one that cannot be created ends at once, and leads back here.
        self.state.row_mut(united).joined.extend(&ready);
        for node in ready {
            let resolved = self.state.resolve(node as usize, united);
            let created = self.add(Row::new(node, Some(united), Status::Started, self.context.now));
            match resolved {
                Ok(inputs) => self.enqueue(created, inputs, None),
                Err(why) => {
                    self.state.row_mut(created).error = Some(why);
                    self.end(created, Status::Errored);
                }
            }
        }
    }

    /// A state has not ended, or has: every state above it counts those below.
    pub(super) fn count_pending(&mut self, index: u32, by: i32) {
        for above in self.counting(index) {
            let row = self.state.row_mut(above);
            row.pending = row.pending.saturating_add_signed(by);
        }
    }

    /// A state has ended without success, or that does not count any more.
    pub(super) fn count_failed(&mut self, index: u32, by: i32) {
        for above in self.counting(index) {
            let row = self.state.row_mut(above);
            row.failed = row.failed.saturating_add_signed(by);
        }
    }

    /// A state that has ended is counted no more.
    pub(super) fn uncount(&mut self, index: u32) {
        let status = self.state.row(index).status;
        if status.has_failed() {
            self.count_failed(index, -1);
        }
        if status.is_pending() {
            self.count_pending(index, -1);
        }
    }

    /// The states that count a state: all above it, except one that it, or what it comes after, unites.
    fn counting(&self, index: u32) -> Vec<u32> {
        let (mut counting, mut below) = (Vec::new(), index);
        for above in self.state.above(index) {
            let node = self.state.row(below).node as usize;
            if self.state.template.nodes[node].unites.is_none() {
                counting.push(above);
            }
            below = above;
        }
        counting
    }
}
