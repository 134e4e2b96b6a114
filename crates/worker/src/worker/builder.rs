//! Building a worker.

use super::registry::{Kind, Registry};
use super::{Settings, Worker};
use crate::context::Shared;
use crate::events::Listener;
use crate::handler::{Endpoint, Handler};
use crate::middleware::Middleware;
use crate::transport::{ReportDefaults, Transport, WorkerRetry};
use crate::{Client, ClientError, Context, Event, IntoOutcome, Retry};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A lease shorter than this cannot be extended reliably.
const MIN_LEASE: Duration = Duration::from_millis(100);

/// Builds a [`Worker`].
///
/// | setting | default |
/// | --- | --- |
/// | queues | `default` |
/// | concurrency | 10 handlers |
/// | prefetched jobs | as many as the handlers complete in 20 ms, at most 1,000 |
/// | retry policy | that of the job and the server |
/// | lease | 30 s, extended while the handler runs |
/// | wait of one request for jobs | 2 s |
/// | timeout of a run | that of the job or the server |
/// | time to finish on a stop | 25 s, then 1 s after the cancellation |
#[must_use = "a builder builds nothing until `build` is called"]
pub struct Builder<S> {
    transport: Arc<dyn Transport>,
    state: Arc<S>,
    kinds: HashMap<Box<str>, Kind<S>>,
    fallback: Option<Endpoint<S>>,
    layers: Vec<Arc<dyn Middleware<S>>>,
    queues: Vec<Arc<str>>,
    concurrency: usize,
    max_prefetched: usize,
    timeout: Option<Duration>,
    lease: Duration,
    retry: Option<WorkerRetry>,
    wait: Duration,
    stop_within: Duration,
    cancel_grace: Duration,
    name: Option<String>,
    listener: Listener,
    problems: Vec<String>,
}

impl<S: Send + Sync + 'static> Builder<S> {
    pub(super) fn new(client: &Client, state: S) -> Self {
        Self {
            transport: client.transport(),
            state: Arc::new(state),
            kinds: HashMap::new(),
            fallback: None,
            layers: Vec::new(),
            queues: Vec::new(),
            concurrency: 10,
            max_prefetched: 1_000,
            timeout: None,
            lease: Duration::from_secs(30),
            retry: None,
            wait: Duration::from_secs(2),
            stop_within: Duration::from_secs(25),
            cancel_grace: Duration::from_secs(1),
            name: None,
            listener: Listener::default(),
            problems: Vec::new(),
        }
    }

    /// Runs jobs of a type with an async function: `async fn(Args) -> Result<R, E>` or
    /// `async fn(Args, Context<S>) -> Result<R, E>`; see [`Handler`].
    ///
    /// A job of a type without a handler is released for other workers, which spends no attempt, and
    /// the worker claims no jobs of its queue for a while: see [`Event::Paused`].
    pub fn handle<Form>(self, kind: &str, handler: impl Handler<S, Form>) -> Self {
        self.handle_at(kind, Arc::new(move |context| handler.call(context)))
    }

    /// Runs jobs of a type with a function of the context alone: the job with its envelope is in it,
    /// its arguments are not read.
    pub fn handle_whole<F, Fut>(self, kind: &str, handler: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        self.handle_at(kind, endpoint(handler))
    }

    fn handle_at(mut self, kind: &str, endpoint: Endpoint<S>) -> Self {
        let entry = self.kinds.entry(kind.into()).or_default();
        if entry.endpoint.is_some() {
            self.problems.push(format!("there are two handlers for the type {kind:?}; keep one of them"));
        }
        entry.endpoint = Some(endpoint);
        self
    }

    /// Runs every job that has no other handler. The function gets the context alone: the job with
    /// its envelope is in it, its arguments are not read.
    pub fn handle_all<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutcome> + Send + 'static,
    {
        if self.fallback.is_some() {
            self.problems.push("there are two handlers for all other types; keep one of them".to_owned());
        }
        self.fallback = Some(endpoint(handler));
        self
    }

    /// Adds middleware. The first one added is the outermost.
    pub fn middleware(mut self, layer: impl Middleware<S>) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Adds a queue; the worker claims from those added first before the others.
    pub fn queue(mut self, queue: &str) -> Self {
        self.queues.push(Arc::from(queue));
        self
    }

    /// How many handlers run at once.
    pub fn concurrency(mut self, most: usize) -> Self {
        self.concurrency = most;
        self
    }

    /// How many handlers of one type run at once. Further jobs of the type wait in the worker.
    pub fn concurrency_of(mut self, kind: &str, most: usize) -> Self {
        if most == 0 {
            self.problems.push(format!("a concurrency of 0 for {kind:?} would run nothing; allowed is 1 or more"));
        }
        self.kinds.entry(kind.into()).or_default().concurrency = Some(most);
        self
    }

    /// How many jobs the worker may claim beyond those that run. It prefetches only as many as its
    /// handlers complete in 20 ms; 0 prefetches none.
    pub fn max_prefetched(mut self, most: usize) -> Self {
        self.max_prefetched = most;
        self
    }

    /// How long one run may take. The timeout of the job or the server applies too.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How long one run of a type may take, instead of [`Builder::timeout`].
    pub fn timeout_of(mut self, kind: &str, timeout: Duration) -> Self {
        self.kinds.entry(kind.into()).or_default().timeout = Some(timeout);
        self
    }

    /// How long the server waits for a heartbeat before it counts a run as failed. The worker
    /// sends one every third of it, whatever its handlers do.
    pub fn lease(mut self, lease: Duration) -> Self {
        if lease < MIN_LEASE {
            self.problems.push(format!("a lease of {lease:?} is too short; allowed is {MIN_LEASE:?} or more"));
        }
        self.lease = lease;
        self
    }

    /// The worker's own retry policy. It decides on the delays of jobs that leave them to the worker that runs
    /// them ([`Retry::by_worker`]); for every other job it only lowers the number of attempts.
    /// [`Retry::none`] ends every job on its first failure.
    ///
    /// A server without Redrive's extensions cannot be given the delays; there the limit applies.
    pub fn retry(mut self, retry: &Retry) -> Self {
        let text = retry.to_json().to_string().into();
        self.retry = Some(WorkerRetry { text, policy: Arc::new(retry.policy.clone()) });
        self
    }

    /// How long one request for jobs waits at the server when there is none. An idle worker needs up
    /// to this long to stop: it waits for the server's answer, so that no delivered job is lost.
    pub fn poll(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// How long running handlers may go on once the worker stops.
    pub fn stop_within(mut self, time: Duration) -> Self {
        self.stop_within = time;
        self
    }

    /// How long a cancelled handler may take to end; then it is dropped at its next await point.
    pub fn cancel_grace(mut self, time: Duration) -> Self {
        self.cancel_grace = time;
        self
    }

    /// The name under which the worker claims jobs. Each running worker needs its own; by default one is
    /// generated.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Calls a function for each event. It is called in the middle of the work and should be quick.
    pub fn on_event(mut self, listener: impl Fn(&Event<'_>) + Send + Sync + 'static) -> Self {
        self.listener = Listener(Some(Arc::new(listener)));
        self
    }

    /// Builds the worker.
    ///
    /// # Errors
    /// All settings that contradict each other or have no effect.
    pub fn build(mut self) -> Result<Worker<S>, ClientError> {
        if self.concurrency == 0 {
            self.problems.push("a concurrency of 0 would run nothing; allowed is 1 or more".to_owned());
        }
        let idle: Vec<&str> =
            self.kinds.iter().filter(|(_, kind)| kind.endpoint.is_none()).map(|(name, _)| &**name).collect();
        if self.fallback.is_none() && !idle.is_empty() {
            let idle = idle.join(", ");
            self.problems.push(format!("there are limits for types without a handler: {idle}; add handlers for them"));
        }
        if self.fallback.is_none() && self.kinds.is_empty() {
            self.problems.push("there is no handler; add one with handle(), or handle_all()".to_owned());
        }
        if !self.problems.is_empty() {
            return Err(ClientError::Invalid(self.problems.join("; ")));
        }
        if self.queues.is_empty() {
            self.queues.push(Arc::from("default"));
        }
        let name = self.name.unwrap_or_else(|| format!("worker-{}-{:08x}", std::process::id(), fastrand::u32(..)));
        let settings = Settings {
            queues: self.queues.into(),
            concurrency: self.concurrency,
            max_prefetched: self.max_prefetched,
            timeout: self.timeout,
            wait: self.wait,
            stop_within: self.stop_within,
            cancel_grace: self.cancel_grace,
            lease: self.lease,
            report_defaults: ReportDefaults { worker: name.into(), retry: self.retry },
            listener: self.listener,
        };
        let shared = Shared { state: self.state, transport: self.transport, stopping: watch::channel(false).0 };
        let registry = Registry { kinds: self.kinds, fallback: self.fallback, layers: self.layers.into() };
        Ok(Worker { registry: Arc::new(registry), shared: Arc::new(shared), settings })
    }
}

fn endpoint<S, F, Fut>(handler: F) -> Endpoint<S>
where
    F: Fn(Context<S>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutcome> + Send + 'static,
{
    Arc::new(move |context| {
        let run = handler(context);
        Box::pin(async move { run.await.into_outcome() })
    })
}

impl<S> std::fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("queues", &self.queues).finish_non_exhaustive()
    }
}
