//! Randomness, injected into the engine.

use redrive_policy::Draw;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// The one source of randomness of a process.
pub trait Randomness: Send + Sync {
    /// The next 64 random bits.
    fn bits(&self) -> u64;

    /// The next draw for a decision.
    fn draw(&self) -> Draw {
        Draw::from_bits(self.bits())
    }
}

/// Randomness that the operating system seeds: a keyed hash of a counter, so that what was handed out
/// does not tell what comes next.
#[derive(Debug, Default)]
pub struct SystemRandomness {
    key: RandomState,
    count: AtomicU64,
}

impl Randomness for SystemRandomness {
    fn bits(&self) -> u64 {
        self.key.hash_one(self.count.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sources_differ_and_none_repeats_itself() {
        let (one, other) = (SystemRandomness::default(), SystemRandomness::default());
        let mut drawn: Vec<u64> = (0..1_000).flat_map(|_| [one.bits(), other.bits()]).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 2_000);
    }
}
