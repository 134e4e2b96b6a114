//! Claims of this node that are being made, where jobs wait together: a claim that takes a part of a row has locked the
//! whole row, and others pass over it until then.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(super) struct Turns {
    running: Mutex<Running>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    /// Those that may have locked rows of which they do not take all jobs.
    holding: BTreeSet<u64>,
    /// How many have ended that had locked some.
    ended: u64,
}

/// A claim that is being made. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'c> {
    turns: &'c Turns,
    number: u64,
    /// How many had ended when it last looked.
    seen: u64,
    /// Whether it has locked rows.
    locked: bool,
}

impl Turns {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim.
    pub(super) fn begin(&self) -> Turn<'_> {
        let mut running = self.running();
        running.next += 1;
        Turn { turns: self, number: running.next, seen: running.ended, locked: false }
    }
}

impl Turn<'_> {
    /// It is about to lock rows of jobs that wait together.
    pub(super) fn hold(&mut self) {
        let mut running = self.turns.running();
        running.holding.insert(self.number);
        self.seen = running.ended;
    }

    /// It has looked, and has locked rows or found none.
    pub(super) fn looked(&mut self, locked: bool) {
        self.locked |= locked;
        if !self.locked {
            self.turns.running().holding.remove(&self.number);
            self.turns.ended.notify_waiters();
        }
    }

    /// Whether to look again, because others may have held jobs when this one looked: waits until those that may hold
    /// some now have ended, or wait as well. This one has found too few, takes all jobs of the rows that it has locked,
    /// and nobody has to wait for it.
    pub(super) async fn others(&self) -> bool {
        let others = {
            let mut running = self.turns.running();
            if running.ended != self.seen {
                return true;
            }
            running.holding.remove(&self.number);
            running.holding.clone()
        };
        self.turns.ended.notify_waiters();
        if others.is_empty() {
            return false;
        }
        loop {
            let mut ended = std::pin::pin!(self.turns.ended.notified());
            ended.as_mut().enable();
            {
                let mut running = self.turns.running();
                if running.ended != self.seen || running.holding.is_disjoint(&others) {
                    running.holding.insert(self.number);
                    return true;
                }
            }
            ended.await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut running = self.turns.running();
        running.holding.remove(&self.number);
        running.ended += u64::from(self.locked);
        drop(running);
        self.turns.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_claim_waits_for_those_that_hold_rows_and_not_for_those_that_wait() {
        let turns = Turns::default();
        let (mut first, mut second) = (turns.begin(), turns.begin());
        first.hold();
        first.looked(true);
        second.hold();
        second.looked(true);
        // Each waits for the other one; the later one to wait goes on at once.
        let (one, two) = tokio::join!(first.others(), second.others());
        assert!(one && !two);
        drop(first);
        assert!(second.others().await, "one has ended since it looked");
        second.hold();
        assert!(!second.others().await);
        let mut idle = turns.begin();
        idle.hold();
        idle.looked(false);
        drop(idle);
        assert!(!second.others().await, "nobody has held anything");
        let mut third = turns.begin();
        third.hold();
        second.hold();
        let waiting = second.others();
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("it did not wait"),
            () = std::future::ready(()) => drop(third),
        }
        assert!(waiting.await);
    }
}
