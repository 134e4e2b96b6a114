//! Who watches an engine: metrics and traces.

use crate::Engine;
use redrive_policy::Span;
use redrive_store::{Full, Transition};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Learns what an engine does, while it does it. Its methods are called by the commands themselves, so they must be
/// quick, and must not call the engine.
pub trait Observer: Send + Sync {
    /// This happened to jobs. It is stored already.
    fn changed(&self, transitions: &mut dyn Iterator<Item = &Transition>) {
        let _ = transitions;
    }

    /// Jobs were enqueued in this queue. The store took so long.
    fn enqueued(&self, queue: &Arc<str>, took: Duration) {
        let _ = (queue, took);
    }

    /// Jobs were not enqueued because this queue is full.
    fn rejected(&self, queue: &Arc<str>) {
        let _ = queue;
    }

    /// A claim found groups that allow no further attempt, and passed their jobs over.
    fn passed_over(&self, groups: &[Full]) {
        let _ = groups;
    }

    /// A run of a program was advanced. If its timer was due, it was so for this long.
    fn advanced(&self, program: &str, timer_lag: Option<Span>) {
        let _ = (program, timer_lag);
    }
}

/// The observer, if one is set.
#[derive(Default)]
pub(crate) struct Observed(OnceLock<Arc<dyn Observer>>);

impl Observed {
    pub(crate) fn get(&self) -> Option<&dyn Observer> {
        self.0.get().map(|observer| &**observer)
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.0.get().is_some()).finish()
    }
}

impl Engine {
    /// Lets `observer` learn what the engine does from now on. Only the first one counts.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.observer.0.set(observer);
    }
}
