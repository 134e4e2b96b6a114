//! One run of one job, from its claim until its outcome is reported.

use crate::cancel::Cancellation;
use crate::transport::Lease;
use crate::{Cancelled, Job};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// One run of one job.
pub(crate) struct Run {
    pub(crate) job: Job,
    pub(crate) lease: Lease,
    pub(crate) cancellation: Cancellation,
    /// Its index in the buffer.
    pub(crate) slot: usize,
    /// When the job was requested; the times below count from here.
    fetched: Instant,
    /// The last heartbeat that the server accepted, in microseconds after `fetched`.
    alive_us: AtomicU64,
}

impl Run {
    /// `asked` is when the request was sent: the lease began no earlier.
    pub(crate) fn new(job: Job, lease: Lease, slot: usize, asked: Instant) -> Self {
        let cancellation = Cancellation::default();
        Self { job, lease, cancellation, slot, fetched: asked, alive_us: AtomicU64::new(0) }
    }

    /// Notes that the server accepted a heartbeat that was sent at `sent`.
    pub(crate) fn note_alive(&self, sent: Instant) {
        let micros = sent.saturating_duration_since(self.fetched).as_micros();
        self.alive_us.fetch_max(u64::try_from(micros).unwrap_or(u64::MAX), Ordering::AcqRel);
    }

    /// Whether the lease is known to be lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.cancellation.reason().is_some_and(Cancelled::ends_the_lease)
    }

    /// When the last heartbeat was sent.
    pub(crate) fn alive(&self) -> Instant {
        self.fetched + Duration::from_micros(self.alive_us.load(Ordering::Acquire))
    }

    /// When the lease runs out without another heartbeat.
    pub(crate) fn lease_until(&self) -> Instant {
        self.alive() + self.lease.span
    }

    /// When the run will have taken too long, as the server counts it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lease.timeout.and_then(|timeout| self.fetched.checked_add(timeout))
    }
}
