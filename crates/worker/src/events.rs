//! What happens in a worker, for logs and terminals.

use crate::{Cancelled, ClientError, Failure, Job, Refused};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info, warn};

/// Something that happened in a worker.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A handler starts.
    Started(&'a Job),
    /// A handler succeeded; the server does not know yet.
    Done(&'a Job),
    /// A handler failed, panicked or took too long; the server does not know yet.
    Failed(&'a Job, &'a Failure),
    /// A run is released, to run again after this time: it was snoozed, or the worker stops.
    Released(&'a Job, Duration),
    /// A job is released with a delay for other workers, because this one cannot run it.
    Declined {
        /// The job.
        job: &'a Job,
        /// Why it cannot run here.
        reason: &'a str,
        /// How long it waits.
        wait: Duration,
    },
    /// The worker claims no jobs of a queue for some time, because it found jobs there that it cannot run. Without
    /// a listener and a subscriber of `tracing`, it is printed to standard error.
    Paused {
        /// The queue.
        queue: &'a str,
        /// Why the last of those jobs cannot run here.
        reason: &'a str,
        /// How long it claims no jobs of the queue.
        wait: Duration,
    },
    /// A handler was cancelled.
    Cancelled(&'a Job, Cancelled),
    /// The server accepted the report of a run.
    Settled {
        /// The job.
        job: &'a Job,
        /// The state that it is in now, such as `completed` or `retryable`.
        state: &'a str,
        /// How long it waits for its next run, if there is one.
        retry_after: Option<Duration>,
        /// Whether it is among the dead letters.
        dead: bool,
    },
    /// The server refused the report of a run: it came too late, and changed nothing.
    Refused(&'a Job, &'a Refused),
    /// The server cannot be reached; the next try is after this time.
    Unreachable(&'a ClientError, Duration),
    /// The server answers again.
    Back,
    /// The worker stops: it claims no further jobs.
    Stopping,
}

/// A listener for events.
type OnEvent = dyn Fn(&Event<'_>) + Send + Sync;

/// The listener, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Listener(pub(crate) Option<Arc<OnEvent>>);

impl Listener {
    pub(crate) fn emit(&self, event: &Event<'_>) {
        event.log();
        match (&self.0, event) {
            (Some(listener), _) => listener(event),
            // A worker that silently skips its queue would look like one that works.
            (None, Event::Paused { queue, reason, wait }) if !tracing::dispatcher::has_been_set() => {
                eprintln!("redrive-worker: {reason}; it leaves the queue {queue:?} to others for {wait:.1?}");
            }
            (None, _) => {}
        }
    }
}

impl Event<'_> {
    /// Logs what concerns the whole worker; what happens to each job only at the level `debug`.
    fn log(&self) {
        let (name, job) = match self {
            Self::Paused { queue, reason, wait } => {
                return warn!(queue, "{reason}; the worker leaves the queue {queue} to others for {wait:.1?}");
            }
            Self::Unreachable(error, wait) => return warn!("{error}; next try in {wait:.1?}"),
            Self::Back => return info!("the server answers again"),
            Self::Stopping => return info!("the worker stops: it claims no further jobs"),
            Self::Started(job) => ("started", job),
            Self::Done(job) => ("done", job),
            Self::Failed(job, _) => ("failed", job),
            Self::Released(job, _) => ("released", job),
            Self::Declined { job, .. } => ("declined", job),
            Self::Cancelled(job, _) => ("cancelled", job),
            Self::Settled { job, .. } => ("settled", job),
            Self::Refused(job, _) => ("refused", job),
        };
        let (job_id, kind, queue) = (job.id(), job.kind(), job.queue());
        debug!(job_id, r#type = kind, queue, attempt = job.attempt(), "job {job_id} {name}");
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Listener" } else { "none" })
    }
}
