//! A clock for tests.

use super::Clock;
use redrive_policy::{Moment, Span};
use std::sync::atomic::{AtomicI64, Ordering};

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
