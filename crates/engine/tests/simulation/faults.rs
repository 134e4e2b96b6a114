//! A store that is slow, cannot be reached, or does what it is told and loses the answer.

use super::common::{Around, Passing, Seeded, Verb};
use redrive_store::StoreError;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

/// What goes wrong between the engine and its store, from a seed.
pub(crate) struct Faults {
    rng: Seeded,
    /// How often, in a thousand calls, each of the two kinds strikes.
    permille: AtomicU64,
    /// How many turns a call, and its answer, can take at most.
    slowness: u64,
    outage: AtomicBool,
}

impl Faults {
    pub(crate) const fn new(rng: Seeded, permille: u64, slowness: u64) -> Self {
        Self { rng, permille: AtomicU64::new(permille), slowness, outage: AtomicBool::new(false) }
    }

    /// For a while, nothing gets through.
    pub(crate) fn outage(&self, on: bool) {
        self.outage.store(on, Ordering::Relaxed);
    }

    /// From now on, everything works.
    pub(crate) fn end(&self) {
        self.outage(false);
        self.permille.store(0, Ordering::Relaxed);
    }

    fn pass(&self) -> Passing {
        let turns = self.rng.below(self.slowness + 1);
        let strikes = self.rng.permille(self.permille.load(Ordering::Relaxed));
        let down = strikes || self.outage.load(Ordering::Relaxed);
        Box::pin(async move {
            Turns(turns).await;
            if down { Err(StoreError::Unavailable("simulated".to_owned())) } else { Ok(()) }
        })
    }
}

impl Around for Faults {
    fn before(&self, _: Verb) -> Passing {
        self.pass()
    }

    fn after(&self, _: Verb) -> Passing {
        self.pass()
    }
}

/// Lets others go first, so many times.
struct Turns(u64);

impl Future for Turns {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
