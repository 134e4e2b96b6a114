//! Who watches the writes of a store: metrics.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Learns how a store writes. Its methods are called by the threads and tasks that write, so they must be quick, and
/// must not call the store.
pub trait WriteObserver: Send + Sync {
    /// Changes of so many jobs became safe together, after so long: with one flush of the log, or with one batch of
    /// transactions on a database.
    fn flushed(&self, jobs: usize, took: Duration);

    /// The log was replaced by a snapshot, or that failed.
    fn compacted(&self, took: Duration, succeeded: bool);
}

/// The observer, if one is set.
#[derive(Clone, Default)]
pub(crate) struct Observed(Arc<OnceLock<Arc<dyn WriteObserver>>>);

impl Observed {
    /// Only the first one counts.
    pub(crate) fn set(&self, observer: Arc<dyn WriteObserver>) {
        let _ = self.0.set(observer);
    }

    pub(crate) fn flushed(&self, jobs: usize, took: Duration) {
        if let Some(observer) = self.0.get() {
            observer.flushed(jobs, took);
        }
    }

    pub(crate) fn compacted(&self, took: Duration, succeeded: bool) {
        if let Some(observer) = self.0.get() {
            observer.compacted(took, succeeded);
        }
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&self.0.get().is_some()).finish()
    }
}
