//! The numbers of one queue and type, and of one queue.

use super::families::JobFamilies;
use prometheus::{Histogram, IntCounter};
use redrive_store::{EventKind, Overdue, Transition};
use std::cell::OnceCell;

/// The numbers of the jobs of one type in one queue.
pub(super) struct JobSeries {
    /// The queue and the type.
    pub(super) labels: (Box<str>, Box<str>),
    pub(super) enqueued: IntCounter,
    pub(super) completed: IntCounter,
    pub(super) failed: IntCounter,
    pub(super) retried: IntCounter,
    pub(super) cancelled: IntCounter,
    pub(super) expired: IntCounter,
    pub(super) attempts: IntCounter,
    pub(super) failures: IntCounter,
    pub(super) leases_expired: IntCounter,
    pub(super) timed_out: IntCounter,
    pub(super) released: IntCounter,
    pub(super) dead: IntCounter,
    pub(super) redriven: IntCounter,
    /// By the state of the job after the attempt; made when there is the first, because there are few of them.
    pub(super) durations: [OnceCell<Histogram>; 8],
    pub(super) queue_time: Histogram,
    pub(super) time_to_success: Histogram,
    pub(super) attempts_to_success: Histogram,
}

impl JobSeries {
    /// Counts what happened to one of the jobs.
    pub(super) fn count(&self, families: &JobFamilies, transition: &Transition) {
        let since_enqueued = || transition.at.since(transition.job.times.created).secs();
        match transition.event {
            EventKind::Enqueued => self.enqueued.inc(),
            EventKind::Claimed => {
                self.attempts.inc();
                if transition.attempt == 1 && transition.generation() == 0 {
                    self.queue_time.observe(since_enqueued());
                }
            }
            EventKind::Completed => {
                self.completed.inc();
                self.time_to_success.observe(since_enqueued());
                self.attempts_to_success.observe(f64::from(transition.attempt));
            }
            EventKind::RetryScheduled => {
                self.failures.inc();
                self.retried.inc();
            }
            EventKind::Discarded => {
                self.failures.inc();
                self.failed.inc();
            }
            EventKind::Expired => self.expired.inc(),
            EventKind::Cancelled => self.cancelled.inc(),
            EventKind::Released | EventKind::Snoozed => self.released.inc(),
            EventKind::Redriven => self.redriven.inc(),
            EventKind::Due | EventKind::Activated | EventKind::Removed => {}
        }
        if transition.job.dead && transition.end().is_some() {
            self.dead.inc();
        }
        match transition.overdue {
            Some(Overdue::Stalled) => self.leases_expired.inc(),
            Some(Overdue::TimedOut) => self.timed_out.inc(),
            None => {}
        }
        if let Some(took) = transition.run_time() {
            self.duration(families, transition).observe(took.secs());
        }
    }

    fn duration(&self, families: &JobFamilies, transition: &Transition) -> &Histogram {
        let state = transition.job.state;
        self.durations[state as usize].get_or_init(|| {
            let (queue, kind) = &self.labels;
            families.durations.with_label_values(&[&**queue, &**kind, state.name()])
        })
    }
}

/// The numbers of one queue.
pub(super) struct QueueSeries {
    pub(super) enqueue: Histogram,
    pub(super) retry_delay: Histogram,
    pub(super) wait: Histogram,
    pub(super) rejected: IntCounter,
}
