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
}

/// A claim that is being made. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Turn<'c> {
    turns: &'c Turns,
    number: u64,
}

impl Turns {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A claim.
    pub(super) fn begin(&self) -> Turn<'_> {
        let mut running = self.running();
        running.next += 1;
        Turn { turns: self, number: running.next }
    }
}

impl Turn<'_> {
    /// It is about to lock rows of jobs that wait together.
    pub(super) fn hold(&self) {
        self.turns.running().holding.insert(self.number);
    }

    /// Waits until the others that may hold rows now have ended, or wait as well; answers whether there are any. This
    /// one has taken all jobs of the rows that it has locked, and nobody has to wait for it.
    pub(super) async fn others(&self) -> bool {
        let others = {
            let mut running = self.turns.running();
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
            if self.turns.running().holding.is_disjoint(&others) {
                return true;
            }
            ended.await;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.running().holding.remove(&self.number);
        self.turns.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_claim_waits_for_those_that_hold_rows_and_not_for_those_that_wait() {
        let turns = Turns::default();
        let (first, second) = (turns.begin(), turns.begin());
        first.hold();
        second.hold();
        // Each waits for the other one; the later one to wait goes on at once.
        let (one, two) = tokio::join!(first.others(), second.others());
        assert!(one && !two);
        drop(first);
        assert!(!second.others().await);
        let third = turns.begin();
        third.hold();
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
