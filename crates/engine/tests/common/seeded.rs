//! Randomness that a seed determines.

use redrive_engine::Randomness;
use std::sync::atomic::{AtomicU64, Ordering};

/// The numbers of SplitMix64: small, even, and the same on every machine. It can be shared, so that
/// an engine and a store can draw from it.
#[derive(Debug)]
pub(crate) struct Seeded(AtomicU64);

impl Seeded {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// An independent source, so that the draws of one part do not affect those of another.
    pub(crate) fn child(&self) -> Self {
        Self::new(self.bits())
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        // The bias of the remainder is below bound / 2^64.
        self.bits() % bound.max(1)
    }

    /// A number between the two, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True this many times in a thousand.
    pub(crate) fn permille(&self, times: u64) -> bool {
        self.below(1_000) < times
    }

    /// One of the items, with equal probability.
    pub(crate) fn pick<'a, T>(&self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

impl Randomness for Seeded {
    fn bits(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
