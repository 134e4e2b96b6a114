//! A server on either store, with a wall clock that can be set while it runs.

use crate::cluster::Cluster;
use crate::faketime;
use crate::harness::{Folder, Server, until};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A server's idea of the time may be off by this much on a busy machine.
const SLACK: Duration = Duration::from_millis(250);
/// Whatever happens within this time did not wait for an hour to pass.
const SOON: Duration = Duration::from_secs(40);

/// The store, and with it whose wall clock counts: that of the server or that of the database.
enum Store {
    Folder(Folder),
    Database(Cluster),
}

/// A server, and the file that sets the offset of its wall clock.
pub(crate) struct SkewedServer {
    store: Store,
    clock: PathBuf,
    server: Option<Server>,
}

impl SkewedServer {
    /// Runs a test on each store, both at once: such a test mostly waits.
    pub(crate) fn on_both(test: impl Fn(Self) + Sync) {
        std::thread::scope(|scope| {
            for server in Self::both() {
                let test = &test;
                scope.spawn(move || test(server));
            }
        });
    }

    fn both() -> [Self; 2] {
        let clocks = ["folder", "database"].map(|name| {
            static COUNT: AtomicUsize = AtomicUsize::new(0);
            let name = format!("redrive-clock-{}-{}-{name}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            // In a place that the user of the database can read.
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, "+0\n").expect("a file for the test");
            path
        });
        let database = Cluster::start_with(&[&format!("--clock={}", clocks[1].display())]);
        let stores = [Store::Folder(Folder::new("clocks")), Store::Database(database)];
        let mut clocks = clocks.into_iter();
        stores.map(|store| {
            let mut server = Self { store, clock: clocks.next().expect("one for each"), server: None };
            server.start();
            server
        })
    }

    pub(crate) fn start(&mut self) {
        let clock = self.clock.to_str().expect("the path is text");
        self.server = Some(match &self.store {
            Store::Folder(folder) => {
                let environment = [
                    ("LD_PRELOAD", faketime()),
                    ("FAKETIME_TIMESTAMP_FILE", clock),
                    ("FAKETIME_NO_CACHE", "1"),
                    ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
                ];
                Server::start_under(&environment, &["--data", &folder.at("data")], &[])
            }
            Store::Database(database) => Server::start_at(&["--store", &database.address], &[]),
        });
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.store {
            Store::Folder(_) => "embedded",
            Store::Database(_) => "postgres",
        }
    }

    pub(crate) fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    pub(crate) fn stop(&mut self) {
        let (status, log) = self.server.take().expect("it runs").stop();
        assert!(status.success(), "{log:?}");
    }

    /// Ends the server as a crash does.
    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.kill();
        for name in ["faketime_shm_", "sem.faketime_sem_"] {
            let _ = std::fs::remove_file(format!("/dev/shm/{name}{}", server.id()));
        }
    }

    /// Sets the wall clock to this offset from the true time.
    pub(crate) fn set_clock(&self, off: &str) {
        let draft = self.clock.with_extension("draft");
        std::fs::write(&draft, format!("{off}\n")).expect("a file for the test");
        std::fs::rename(draft, &self.clock).expect("a file for the test");
    }

    /// Waits until the health of the server shows this step of the wall clock.
    pub(crate) fn notices_step(&self, expected_s: f64) -> Value {
        let health = until("the step is shown", || {
            let health = self.server().ask("GET", "/ojs/v1/health", Value::Null);
            health["clock"]["last_step"].is_object().then_some(health)
        });
        let by_s = health["clock"]["last_step"]["seconds"].as_f64().expect("a number");
        assert!((by_s - expected_s).abs() < 60.0, "{}: a step of {by_s} s in server of {expected_s} s", self.name());
        health
    }

    /// Lets the server sweep for more than a second, so that due jobs have become available.
    pub(crate) fn sweeps(&self) {
        let options = json!({ "queue": "marker", "scheduled_at": "+PT1.2S" });
        self.server().enqueue(json!({ "type": "work", "args": [], "options": options }));
        let marker = self.server().claim("marker");
        self.server().succeed(&marker);
    }

    /// A new job that a worker has claimed, with a lease of `lease_ms`.
    pub(crate) fn held(&self, queue: &str, lease_ms: u64) -> Value {
        self.server().enqueue(json!({ "type": "work", "args": [], "options": { "queue": queue } }));
        let body = json!({ "queues": [queue], "worker_id": "tester", "visibility_timeout_ms": lease_ms });
        self.server().ask("POST", "/ojs/v1/workers/fetch", body)["jobs"][0].take()
    }

    /// A job that has just failed and waits for its retry; and since when.
    pub(crate) fn failed(&self, queue: &str, wait_ms: u64) -> (Value, Instant) {
        let interval = format!("PT{}S", wait_ms as f64 / 1e3);
        let retry = json!({ "max_attempts": 3, "initial_interval": interval, "jitter": false });
        self.server().enqueue(json!({ "type": "work", "args": [], "options": { "queue": queue, "retry": retry } }));
        let job = self.server().claim(queue);
        let failed = Instant::now();
        self.server().fail(&job, "planned");
        (job, failed)
    }

    pub(crate) fn state(&self, job: &Value) -> String {
        self.server().state(job["id"].as_str().expect("an id"))
    }

    /// Sends the server a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.server().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill runs").success());
    }
}

impl Drop for SkewedServer {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.kill();
        }
        let _ = std::fs::remove_file(&self.clock);
    }
}

/// Asserts that something with this delay came on time.
pub(crate) fn assert_on_time(since: Instant, wait: Duration, what: &str) {
    let waited = since.elapsed();
    assert!(waited + SLACK >= wait, "{what} came early, after {waited:?} in server of {wait:?}");
    assert!(waited < wait + SOON, "{what} came late, after {waited:?} in server of {wait:?}");
}
