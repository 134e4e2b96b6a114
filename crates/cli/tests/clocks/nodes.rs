//! Two servers on one PostgreSQL, one whose clock is an hour ahead and one whose clock is an hour behind.
//! The clock of the database, which is that of this test, counts for all times.

use crate::cluster::Cluster;
use crate::harness::{Server, until};
use crate::{assert_now, faketime, written};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const HOUR_S: i64 = 3_600;
/// How long things wait here: long enough to be seen waiting, short beside the hour.
const WAIT: Duration = Duration::from_secs(2);
/// A server's idea of the database's clock may be off by half of the time that an answer of the database
/// takes, which is long on a machine that is busy with other tests.
const SLACK: Duration = Duration::from_millis(250);
/// Whatever happens within this time did not wait for an hour to pass.
const SOON: Duration = Duration::from_secs(40);

/// Two servers on one database, each with its own clock.
struct Nodes {
    fast: Server,
    slow: Server,
    _database: Cluster,
}

impl Nodes {
    fn start() -> Self {
        let database = Cluster::start();
        let (fast, slow) = (node(&database.address, "+1h"), node(&database.address, "-1h"));
        for (server, expected_s) in [(&fast, HOUR_S), (&slow, -HOUR_S)] {
            let off_s = clock_of(server) - crate::seconds("now");
            assert!((off_s - expected_s).abs() < 60, "the clock of the server is {off_s} s off, not {expected_s} s");
        }
        Self { fast, slow, _database: database }
    }

    /// The two servers, in both orders.
    fn both_ways(&self) -> [(&Server, &Server); 2] {
        [(&self.fast, &self.slow), (&self.slow, &self.fast)]
    }
}

/// The library leaves shared memory behind if its process is killed.
impl Drop for Nodes {
    fn drop(&mut self) {
        for server in [&mut self.fast, &mut self.slow] {
            server.kill();
            for name in ["faketime_shm_", "sem.faketime_sem_"] {
                let _ = std::fs::remove_file(format!("/dev/shm/{name}{}", server.id()));
            }
        }
    }
}

/// A server on this database whose own clock is off.
fn node(address: &str, off: &str) -> Server {
    let environment = [("LD_PRELOAD", faketime()), ("FAKETIME", off), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    Server::start_under(&environment, &["--store", address], &[])
}

/// The time of the process itself, which its HTTP layer reports.
fn clock_of(server: &Server) -> i64 {
    let agent: ureq::Agent = ureq::Agent::config_builder().proxy(None).build().into();
    let answer = agent.get(format!("{}/ojs/v1/health", server.url)).call().unwrap();
    crate::seconds(answer.headers().get("date").expect("answers are dated").to_str().unwrap())
}

/// Claims the job as soon as it is available on this server; returns it and the time since `since`.
fn taken(server: &Server, queue: &str, since: Instant) -> (Value, Duration) {
    let job = server.claim(queue);
    (job, since.elapsed())
}

fn assert_on_time(waited: Duration, what: &str) {
    assert!(waited + SLACK >= WAIT, "{what} came early, after {waited:?} in server of {WAIT:?}");
    assert!(waited < SOON, "{what} came late, after {waited:?} in server of {WAIT:?}");
}

#[test]
fn a_start_time_holds_on_a_node_whose_clock_is_fast_and_on_one_whose_clock_is_slow() {
    let nodes = Nodes::start();
    for (hands_in, runs) in nodes.both_ways() {
        for relative in [true, false] {
            let start = if relative { "+PT2S".to_owned() } else { written("+2 seconds") };
            let sent = Instant::now();
            let options = json!({ "queue": "later", "scheduled_at": start });
            let id = hands_in.enqueue(json!({ "type": "work", "args": [], "options": options }));
            let (job, waited) = taken(runs, "later", sent);
            assert_eq!(job["id"], json!(id));
            assert_on_time(waited, &format!("the job that starts at {start}"));
            ["/created_at", "/enqueued_at", "/started_at"].iter().for_each(|time| assert_now(&job, time));
            runs.succeed(&job);
            assert_now(&hands_in.job(&id), "/completed_at");
        }
    }
}

#[test]
fn a_retry_delay_holds_on_whichever_node_the_next_run_starts() {
    let nodes = Nodes::start();
    for (fails, runs) in nodes.both_ways() {
        let retry = json!({ "max_attempts": 3, "initial_interval": "PT2S", "jitter": false });
        let id = fails.enqueue(json!({ "type": "work", "args": [], "options": { "queue": "again", "retry": retry } }));
        let job = fails.claim("again");
        let failed = Instant::now();
        let answer = fails.fail(&job, "planned");
        assert_now(&answer, "/next_attempt_at");
        let (again, waited) = taken(runs, "again", failed);
        assert_eq!((&again["id"], &again["attempt"]), (&json!(id), &json!(2)));
        assert_on_time(waited, "the second run");
        assert_now(&again, "/errors/0/timestamp");
        runs.succeed(&again);
    }
}

#[test]
fn a_lease_holds_on_all_nodes_for_as_long_as_was_said() {
    let nodes = Nodes::start();
    for (holds, looks_on) in nodes.both_ways() {
        let [long, short] = ["long", "short"].map(|queue| {
            holds.enqueue(json!({ "type": "work", "args": [], "options": { "queue": queue } }));
            let lease_ms = if queue == "long" { 600_000 } else { WAIT.as_millis() };
            let body = json!({ "queues": [queue], "worker_id": "tester", "visibility_timeout_ms": lease_ms as u64 });
            (Instant::now(), holds.ask("POST", "/ojs/v1/workers/fetch", body)["jobs"][0].take())
        });
        // The server that ends the short lease has checked the long one too.
        let retry = until("the end of the short lease", || {
            let job = looks_on.job(short.1["id"].as_str().unwrap());
            (job["state"] != "active").then(|| (job, short.0.elapsed()))
        });
        assert_on_time(retry.1, "the end of the short lease");
        assert_now(&retry.0, "/errors/0/timestamp");
        assert_eq!(looks_on.state(long.1["id"].as_str().unwrap()), "active", "the long lease goes on");
        looks_on.succeed(&long.1);
    }
}

#[test]
fn a_lease_of_a_node_whose_clock_was_fast_ends_in_time_when_that_node_is_gone() {
    let mut nodes = Nodes::start();
    nodes.fast.enqueue(json!({ "type": "work", "args": [], "options": { "queue": "left" } }));
    let body = json!({ "queues": ["left"], "worker_id": "tester", "visibility_timeout_ms": WAIT.as_millis() as u64 });
    let asked = Instant::now();
    let job = nodes.fast.ask("POST", "/ojs/v1/workers/fetch", body)["jobs"][0].take();
    nodes.fast.kill();
    let (again, waited) = taken(&nodes.slow, "left", asked);
    assert_eq!((&again["id"], &again["attempt"]), (&job["id"], &json!(2)));
    assert_on_time(waited, "the run in server of the lost one");
}
