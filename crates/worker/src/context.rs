//! What a handler can see and do besides its arguments.

use crate::run::Run;
use crate::transport::{ProgressUpdate, Transport};
use crate::{Cancelled, ClientError, Job};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a handler can see and do besides its arguments: the job, the state that all handlers share,
/// the lease, progress, and whether it should end.
///
/// It is cheap to clone, and a clone may go into a task or a thread of its own.
pub struct Context<S = ()> {
    pub(crate) run: Arc<Run>,
    pub(crate) shared: Arc<Shared<S>>,
}

/// What all runs of a worker share.
pub(crate) struct Shared<S> {
    pub(crate) state: Arc<S>,
    pub(crate) transport: Arc<dyn Transport>,
    /// True once the worker stops.
    pub(crate) stopping: watch::Sender<bool>,
}

impl<S> Context<S> {
    /// The job.
    #[must_use]
    pub fn job(&self) -> &Job {
        &self.run.job
    }

    /// What all handlers of the worker share.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.shared.state
    }

    /// The same, as an owned value.
    #[must_use]
    pub fn state_arc(&self) -> Arc<S> {
        Arc::clone(&self.shared.state)
    }

    /// How long the lease lasts without another heartbeat. The worker sends heartbeats automatically, so
    /// this comes near zero only if the server cannot be reached.
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        self.run.lease_until().saturating_duration_since(Instant::now())
    }

    /// Why the handler should end; `None` while it may continue.
    #[must_use]
    pub fn cancelled(&self) -> Option<Cancelled> {
        self.run.cancellation.reason()
    }

    /// Completes once the handler should end. Shortly after, it is dropped at its next await point.
    pub async fn cancellation(&self) -> Cancelled {
        self.run.cancellation.cancelled().await
    }

    /// Whether the worker is stopping. Running handlers have time to finish; one that would take long
    /// can snooze, or return early.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.shared.stopping.borrow()
    }

    /// Reports the progress of the run to the server, in percent, with a message for people.
    ///
    /// # Errors
    /// The server cannot be reached, does not accept progress, or the lease is lost.
    pub async fn progress(&self, percent: f64, message: &str) -> Result<(), ClientError> {
        self.progress_with(percent, message, ()).await
    }

    /// The same with data for programs.
    ///
    /// # Errors
    /// As [`Context::progress`], or the data cannot be written as JSON.
    pub async fn progress_with(
        &self,
        percent: f64,
        message: &str,
        data: impl Serialize + Send,
    ) -> Result<(), ClientError> {
        let data = serde_json::value::to_raw_value(&data).map_err(ClientError::unwritable)?;
        let data = Some(data).filter(|data| data.get() != "null");
        let percent = if percent.is_finite() { percent.clamp(0.0, 100.0) } else { 0.0 };
        let progress = ProgressUpdate { percent, message: message.to_owned(), data };
        self.shared.transport.progress(&self.run, progress).await
    }
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self { run: Arc::clone(&self.run), shared: Arc::clone(&self.shared) }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("job", self.job()).field("cancelled", &self.cancelled()).finish_non_exhaustive()
    }
}
