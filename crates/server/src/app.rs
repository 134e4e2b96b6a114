//! What all requests share.

use crate::access::Guard;
use crate::edge::Edge;
use crate::endpoints::{EndpointInfo, Endpoints};
use crate::listen::{Bounds, Connections};
use crate::metrics::{Metrics, Sample};
use crate::ojs::Probe;
use crate::webhooks::Sender;
use crate::{
    ApiKeys, AzollaSettings, Hosts, Limits, LocalStore, SecretKeys, WebhookSettings, edge, exosphere, flow, ojs,
    openapi,
};
use axum::{Router, middleware};
use redrive_engine::{Engine, EngineError, Randomness, SystemRandomness};
use redrive_ojs::Envelopes;
use redrive_policy::Moment;
use redrive_store::WriteObserver;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;

/// How long a scrape waits for the store.
const SAMPLE_TIMEOUT: Duration = Duration::from_secs(5);

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Its limits.
    pub limits: Limits,
    /// The keys that may do everything, beside those in the store.
    pub keys: ApiKeys,
    /// Whether the operator has said that everyone may call, also without a key.
    pub anyone_may_call: bool,
    /// The names under which it may be called, beside those of loopback. They are checked where no keys
    /// are needed, or where the operator names some.
    pub hosts: Hosts,
    /// Whether jobs may end their workers with `options.metadata.test_directive`, which the public test
    /// suite of Open Job Spec needs.
    pub test_directives: bool,
    /// What the store is called, such as `embedded`.
    pub backend: &'static str,
    /// Where events may be sent.
    pub webhooks: WebhookSettings,
    /// What holds for Azolla's protocol, where it is served.
    pub azolla: AzollaSettings,
}

impl ServerSettings {
    /// The defaults for a store of this name: callers need no key, and have to call it by a name
    /// of loopback.
    #[must_use]
    pub fn new(backend: &'static str) -> Self {
        let (limits, keys, hosts) = (Limits::default(), ApiKeys::default(), Hosts::default());
        let (webhooks, azolla) = (WebhookSettings::default(), AzollaSettings::default());
        Self { limits, keys, anyone_may_call: false, hosts, test_directives: false, backend, webhooks, azolla }
    }
}

/// A server: an engine behind HTTP.
#[derive(Debug)]
pub struct Server {
    pub(crate) app: Arc<App>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) connections: Arc<Connections>,
}

impl Server {
    /// A server on an engine.
    #[must_use]
    pub fn new(engine: Arc<Engine>, settings: ServerSettings) -> Self {
        let (stop, stopping) = watch::channel(false);
        let ServerSettings { limits, keys, anyone_may_call, hosts, test_directives, backend, webhooks, azolla } =
            settings;
        let bounds = Bounds { most: limits.connections, most_of_network: limits.connections_per_address };
        let connections = Connections::new(bounds);
        let metrics = Metrics::new(&limits, backend);
        engine.observe(Arc::clone(&metrics) as _);
        let app = App {
            envelopes: Envelopes::new(engine.settings().timeout),
            long_polls: Arc::new(Semaphore::new(limits.long_polls)),
            streams: Arc::new(Semaphore::new(limits.streams)),
            boot: SystemRandomness::default().bits() as u32,
            requests: AtomicU64::new(0),
            metrics,
            probe: Probe::default(),
            connections: Arc::clone(&connections),
            engine,
            limits,
            guard: Guard::new(keys, anyone_may_call),
            hosts,
            test_directives,
            backend,
            stopping,
            azolla,
            webhooks: Sender::new(webhooks),
            local: OnceLock::new(),
            secrets: OnceLock::new(),
        };
        Self { app: Arc::new(app), stop, connections }
    }

    /// Lets the server look after the folder of its store as well, where there is one.
    #[must_use]
    pub fn with_local_store(self, local: Option<LocalStore>) -> Self {
        if let Some(local) = local {
            let _ = self.app.local.set(local);
        }
        self
    }

    /// Lets callers store secrets, encrypted with these keys.
    #[must_use]
    pub fn with_secret_keys(self, keys: SecretKeys) -> Self {
        let _ = self.app.secrets.set(keys);
        self
    }

    /// Reads the stored keys, and answers whether callers need a key. Where they do not, only those on this machine
    /// should be able to reach the server.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn needs_keys(&self) -> Result<bool, EngineError> {
        self.app.guard.read(&self.app.engine).await?;
        Ok(!self.app.guard.is_open())
    }

    /// All endpoints, with the scope that each needs: by their paths.
    #[must_use]
    pub fn endpoints() -> Vec<EndpointInfo> {
        let (_, table) = endpoints().finish(ojs::no_such_path);
        let mut all: Vec<EndpointInfo> = table.entries().iter().map(EndpointInfo::of).collect();
        all.sort_by_key(|endpoint| (endpoint.path, endpoint.method));
        all
    }

    /// Who is to learn how the store writes, for the metrics.
    #[must_use]
    pub fn write_observer(&self) -> Arc<dyn WriteObserver> {
        Arc::clone(&self.app.metrics) as _
    }

    /// How many fetches are waiting for a job.
    #[must_use]
    pub fn waiting_fetches(&self) -> usize {
        self.app.waiting_fetches()
    }

    /// How many event streams are open.
    #[must_use]
    pub fn open_streams(&self) -> usize {
        self.app.open_streams()
    }

    /// All paths of the server.
    pub fn router(&self) -> Router {
        let app = Arc::clone(&self.app);
        let (router, table) = endpoints().finish(ojs::no_such_path);
        let edge = Edge { app: Arc::clone(&app), table: Arc::new(table) };
        router.layer(middleware::from_fn_with_state(edge, edge::edge)).with_state(app)
    }
}

/// All endpoints of all interfaces.
pub(crate) fn endpoints() -> Endpoints {
    openapi::add(flow::add(exosphere::add(ojs::add(Endpoints::new()))))
}

/// What all requests share.
pub(crate) struct App {
    pub(crate) engine: Arc<Engine>,
    pub(crate) limits: Limits,
    pub(crate) guard: Guard,
    pub(crate) hosts: Hosts,
    pub(crate) test_directives: bool,
    pub(crate) backend: &'static str,
    pub(crate) envelopes: Envelopes,
    pub(crate) long_polls: Arc<Semaphore>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) azolla: AzollaSettings,
    /// True once the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Tells the ids of this process from those of another.
    pub(crate) boot: u32,
    requests: AtomicU64,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether a write would be flushed, as far as that was found out.
    pub(crate) probe: Probe,
    pub(crate) connections: Arc<Connections>,
    /// Sends events.
    pub(crate) webhooks: Sender,
    /// The store, where it is in a folder of this machine.
    pub(crate) local: OnceLock<LocalStore>,
    /// The keys for secrets.
    secrets: OnceLock<SecretKeys>,
}

impl App {
    /// The keys for secrets; none where the operator has set none.
    pub(crate) fn secret_keys(&self) -> SecretKeys {
        self.secrets.get().cloned().unwrap_or_default()
    }

    fn waiting_fetches(&self) -> usize {
        self.limits.long_polls - self.long_polls.available_permits()
    }

    fn open_streams(&self) -> usize {
        self.limits.streams - self.streams.available_permits()
    }

    /// What the metrics say about the present. A store that does not answer in time is told as such.
    pub(crate) async fn sample(&self, is_ready: bool) -> Sample {
        let loads = timeout(SAMPLE_TIMEOUT, self.engine.loads()).await;
        let (queues, stored_now) = match loads {
            Ok(Ok((queues, now))) => (Some(queues), now),
            _ => (None, Moment::ORIGIN),
        };
        Sample {
            queues,
            stored_now,
            workers: self.engine.workers(),
            wall: self.engine.wall(),
            now: self.engine.now(),
            uptime: self.engine.uptime(),
            local: self.local.get().map(|local| local.store.status()),
            connections: self.connections.count(),
            waiting_fetches: self.waiting_fetches(),
            streams: self.open_streams(),
            is_ready,
            maintenance: self.engine.maintenance().is_some(),
        }
    }

    /// An id for a request that brings none.
    pub(crate) fn next_request_id(&self) -> String {
        format!("req-{:08x}-{:x}", self.boot, self.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// The same as a UUID.
    pub(crate) fn next_request_uuid(&self) -> String {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff_ffff;
        format!("{:08x}-0000-4000-8000-{number:012x}", self.boot)
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("limits", &self.limits).field("backend", &self.backend).finish_non_exhaustive()
    }
}
