//! A server in this process, on the memory store, with a clock that stands still until it is moved.

#![allow(dead_code, reason = "each test crate uses the part that it needs")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod log;

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use redrive_engine::{Clock, Engine, Layers, ManualClock, Randomness, RunLimits, Settings, SystemRandomness, Wall};
use redrive_policy::{Moment, Span};
pub(crate) use redrive_server::Leases;
use redrive_server::{
    ApiKeys, AzollaSettings, Hosts, Limits, LocalStore, SecretKeys, Server, ServerSettings, WebhookSettings,
};
use redrive_store::{Memory, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use tower::ServiceExt;

/// 2026-02-13T10:00:00Z: the clock of every test starts here.
pub(crate) const START: i64 = 1_770_976_800_000_000;

/// A server, its engine, and its clock.
pub(crate) struct Harness {
    pub(crate) engine: Arc<Engine>,
    pub(crate) server: Server,
    pub(crate) log: log::Lines,
    clock: Arc<HarnessClock>,
}

/// Elapsed time that stands still until it is moved, and a wall clock that can be set.
struct HarnessClock {
    elapsed: ManualClock,
    ahead_us: AtomicI64,
}

impl Clock for HarnessClock {
    fn now(&self) -> Moment {
        self.elapsed.now()
    }

    fn wall(&self) -> Wall {
        Wall { ahead_us: self.ahead_us.load(Ordering::Relaxed), ..Wall::default() }
    }
}

/// The parts of a harness; the defaults are those of a server.
pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) randomness: Arc<dyn Randomness>,
    pub(crate) layers: Layers,
    pub(crate) limits: Limits,
    pub(crate) keys: ApiKeys,
    pub(crate) anyone_may_call: bool,
    pub(crate) local: Option<LocalStore>,
    pub(crate) hosts: Hosts,
    pub(crate) test_directives: bool,
    pub(crate) webhooks: WebhookSettings,
    pub(crate) secrets: SecretKeys,
    pub(crate) azolla: AzollaSettings,
    pub(crate) leases: Leases,
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            store: Arc::new(Memory::new()),
            randomness: Arc::new(SystemRandomness::default()),
            layers: Layers::ojs_default().expect("the defaults are valid"),
            limits: Limits::default(),
            keys: ApiKeys::default(),
            anyone_may_call: false,
            local: None,
            hosts: Hosts::default(),
            test_directives: false,
            webhooks: WebhookSettings::default(),
            secrets: SecretKeys::default(),
            azolla: AzollaSettings::default(),
            leases: Leases::default(),
        }
    }
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Reply {
    /// The body of an answer that has this status.
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.body);
        self.body
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

impl Harness {
    pub(crate) fn new() -> Self {
        Self::with(Parts::default())
    }

    pub(crate) fn with(parts: Parts) -> Self {
        Self::at(parts, START)
    }

    /// A server that starts at a given time; on the store of another harness, that is a restart.
    pub(crate) fn at(parts: Parts, micros: i64) -> Self {
        let elapsed = ManualClock::at(Moment::from_micros(micros));
        let clock = Arc::new(HarnessClock { elapsed, ahead_us: AtomicI64::new(0) });
        let settings = Settings::new(parts.layers);
        let engine = Engine::new(parts.store, Arc::clone(&clock) as _, parts.randomness, settings);
        let programs = redrive_server::programs(&parts.limits, parts.leases);
        let engine = Arc::new(engine.with_programs(programs, RunLimits::default()));
        let log = log::captured();
        let settings = ServerSettings {
            limits: parts.limits,
            keys: parts.keys,
            anyone_may_call: parts.anyone_may_call,
            hosts: parts.hosts,
            test_directives: parts.test_directives,
            backend: "memory",
            webhooks: parts.webhooks,
            azolla: parts.azolla,
        };
        let server = Server::new(Arc::clone(&engine), settings).with_local_store(parts.local);
        let server = server.with_secret_keys(parts.secrets);
        Self { engine, server, log, clock }
    }

    pub(crate) fn now(&self) -> Moment {
        self.engine.now()
    }

    /// Advances the clock, and carries out what is due by then.
    pub(crate) async fn advance_ms(&self, ms: f64) {
        self.clock.elapsed.advance(Span::saturating_ms(ms));
        self.engine.sweep().await.expect("the store answers");
        self.engine.advance().await.expect("the store answers");
    }

    /// Moves the clock and nothing else.
    pub(crate) fn advance_clock_ms(&self, ms: f64) {
        self.clock.elapsed.advance(Span::saturating_ms(ms));
    }

    /// Sets the wall clock forward, or back.
    pub(crate) fn step_clock_ms(&self, ms: i64) {
        self.clock.ahead_us.fetch_add(1_000 * ms, Ordering::Relaxed);
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.server.router().oneshot(request).await.expect("a router always answers");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("the body ends");
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
        };
        Reply { status: parts.status, headers: parts.headers, body }
    }

    /// A request with this body, byte for byte.
    pub(crate) async fn call_text(&self, method: &str, path: &str, body: &str) -> Reply {
        let request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned()));
        self.send(request.expect("a valid request")).await
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.call_text(method, path, &body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", &format!("/ojs/v1{path}"), &body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call_text("GET", &format!("/ojs/v1{path}"), "").await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.call_text("DELETE", &format!("/ojs/v1{path}"), "").await
    }

    /// Enqueues a job with a retry policy; returns its id.
    pub(crate) async fn enqueue(&self, retry: Value) -> String {
        self.enqueue_with(json!({ "retry": retry })).await
    }

    /// Enqueues a job with these options; returns its id.
    pub(crate) async fn enqueue_with(&self, options: Value) -> String {
        let body = self.post("/jobs", json!({ "type": "test.run", "args": [1], "options": options })).await;
        text(&body.expect(201)["job"]["id"])
    }

    /// The next job of the queue `default`, if there is one.
    pub(crate) async fn fetch(&self) -> Option<Value> {
        self.fetch_as("w1").await
    }

    pub(crate) async fn fetch_as(&self, worker: &str) -> Option<Value> {
        let body = self.post("/workers/fetch", json!({ "queues": ["default"], "worker_id": worker })).await;
        body.expect(200)["jobs"].as_array().and_then(|jobs| jobs.first().cloned())
    }

    /// Fails the run of a job with an ordinary error; returns the reply.
    pub(crate) async fn fail(&self, id: &str) -> Value {
        self.fail_with(id, json!({ "type": "Boom", "message": "boom" })).await
    }

    pub(crate) async fn fail_with(&self, id: &str, error: Value) -> Value {
        self.post("/workers/nack", json!({ "job_id": id, "error": error })).await.expect(200)
    }

    pub(crate) async fn job(&self, id: &str) -> Value {
        self.get(&format!("/jobs/{id}")).await.expect(200)["job"].clone()
    }

    /// The ids among the dead letters.
    pub(crate) async fn dead(&self) -> Vec<String> {
        let body = self.get("/dead-letter?limit=1000").await.expect(200);
        body["jobs"].as_array().expect("a list").iter().map(|job| text(&job["id"])).collect()
    }

    /// Waits as long as a reply says, and claims the job again.
    pub(crate) async fn run_again(&self, reply: &Value) -> Value {
        self.advance_ms(ms(&reply["retry_delay_ms"]) + 1.0).await;
        self.fetch().await.expect("the job is due")
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

pub(crate) fn ms(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// Draws that follow each other at even distances over [0, 1), so that a distribution is met exactly.
#[derive(Default)]
pub(crate) struct Even {
    count: AtomicU64,
}

impl Randomness for Even {
    fn bits(&self) -> u64 {
        // Multiples of the golden ratio, modulo one: evenly spread for every number of draws.
        self.count.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
