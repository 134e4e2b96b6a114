//! The worker: claims jobs, runs handlers, extends leases, reports outcomes.

mod buffer;
mod builder;
pub(crate) mod executor;
mod fetcher;
mod heartbeats;
mod pauses;
mod registry;
pub(crate) mod runner;
mod settler;

pub use builder::Builder;

use crate::context::Shared;
use crate::events::Listener;
use crate::transport::ReportDefaults;
use crate::{Client, ClientError};
use registry::Registry;
use runner::Runner;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A worker, ready to run.
pub struct Worker<S = ()> {
    pub(crate) registry: Arc<Registry<S>>,
    pub(crate) shared: Arc<Shared<S>>,
    pub(crate) settings: Settings,
}

/// What a worker was built with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) queues: Arc<[Arc<str>]>,
    pub(crate) concurrency: usize,
    pub(crate) max_prefetched: usize,
    pub(crate) timeout: Option<Duration>,
    pub(crate) wait: Duration,
    pub(crate) stop_within: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) lease: Duration,
    pub(crate) report_defaults: ReportDefaults,
    pub(crate) listener: Listener,
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Runs that succeeded, as acknowledged by the server.
    pub done: u64,
    /// Runs that failed, as acknowledged by the server.
    pub failed: u64,
    /// Runs that were released.
    pub released: u64,
    /// Runs whose job was cancelled meanwhile.
    pub cancelled: u64,
    /// Runs whose lease was lost, and reports that came too late.
    pub lost: u64,
}

impl Worker<()> {
    /// Starts to build a worker whose handlers share nothing.
    pub fn builder(client: &Client) -> Builder<()> {
        Builder::new(client, ())
    }
}

impl<S: Send + Sync + 'static> Worker<S> {
    /// Starts to build a worker whose handlers share a state.
    pub fn with_state(client: &Client, state: S) -> Builder<S> {
        Builder::new(client, state)
    }

    /// Works until the server asks it to stop, which most servers never do.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run(self) -> Result<Summary, ClientError> {
        self.run_until(std::future::pending()).await
    }

    /// Works until `stop` completes. Then the worker claims no further jobs, releases those that have not started,
    /// and gives running handlers time to finish; those that are not done by then are cancelled, and their jobs
    /// released, which spends no attempt.
    ///
    /// # Errors
    /// The server refuses the worker from the start, for example because of an unknown key. A server
    /// that cannot be reached is not an error: the worker waits for it.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<Summary, ClientError> {
        self.run_until_aborted(stop, std::future::pending()).await
    }

    /// The same; if `abort` completes after `stop`, running handlers are cancelled immediately, and their jobs
    /// released.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run_until_aborted(
        self,
        stop: impl Future<Output = ()>,
        abort: impl Future<Output = ()>,
    ) -> Result<Summary, ClientError> {
        Runner::new(&self).run(stop, abort).await
    }
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("registry", &self.registry)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
