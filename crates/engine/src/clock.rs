//! Time and randomness, made once in `main` and handed down.

use redrive_policy::{Draw, Moment, Span};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The one clock of a process: microseconds since the Unix epoch.
pub trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Moment;
}

/// The clock of the machine. It never steps back: leases and delays are promises about elapsed time.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest: AtomicI64,
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        let latest = self.latest.fetch_max(micros, Ordering::AcqRel).max(micros);
        Moment::from_micros(latest)
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    micros: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn at(now: Moment) -> Self {
        Self { micros: AtomicI64::new(now.micros()) }
    }

    /// Moves it forward.
    pub fn advance(&self, span: Span) {
        self.set(self.now().after(span));
    }

    /// Sets it, also backwards.
    pub fn set(&self, now: Moment) {
        self.micros.store(now.micros(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment::from_micros(self.micros.load(Ordering::Acquire))
    }
}

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
