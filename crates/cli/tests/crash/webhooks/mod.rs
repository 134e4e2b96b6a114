//! Webhooks on servers that are killed: every event that a subscription was owed is delivered at least once, signed, or
//! is dead at its subscription.

pub(crate) mod receiver;

use crate::check::all_jobs;
use crate::cluster::Cluster;
use crate::harness::{Folder, Server, until};
use crate::ledger::{LEASE, text};
use crate::load::{agent, new_id};
use crate::nodes::{NODES, Nodes};
use crate::target::{Gone, SingleServer, Target};
use crate::{rounds, seed};
use receiver::{FLAKY, GOOD, NEVER, Receiver};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const QUEUE: &str = "hooked";
/// The largest number of jobs in a round, and in all rounds: what is dead is listed at once.
const JOBS: usize = 15;
const MOST_JOBS: usize = 450;

/// Events may be sent to this machine.
pub(crate) const LOOPBACK: [(&str, &str); 2] =
    [("REDRIVE_WEBHOOKS_ALLOW_PRIVATE", "true"), ("REDRIVE_WEBHOOKS_ALLOW_HTTP", "true")];

#[test]
fn kill_minus_nine_loses_no_event_that_a_subscription_is_owed() {
    let (rounds, seed) = (rounds(5), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = Folder::new("crash-webhooks");
    let data = folder.at("data");
    let start = || Server::start_under(&LOOPBACK, &["--data", &data], &[]);
    let (mut server, completed) = (start(), Mutex::default());
    let hooks = Hooks::new(&server);
    for round in 1..=rounds {
        if round == rounds {
            hooks.receiver.recovers();
        }
        loaded_until_killed(&mut server, rounds, &completed, &mut random);
        server = start();
    }
    hooks.ended(&server, &completed, &format!("seed {seed}, {rounds} rounds"));
}

#[test]
fn killed_nodes_and_a_crashing_database_lose_no_event_that_a_subscription_is_owed() {
    let (rounds, seed) = (rounds(3), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut nodes, completed) = (Nodes::start(Cluster::start()), Mutex::default());
    let hooks = Hooks::new(nodes.server(0));
    // A node that starts knows all subscriptions.
    for number in 1..NODES {
        nodes.kill(number);
        nodes.start_again(number, None);
    }
    for round in 1..=rounds {
        if round == rounds {
            hooks.receiver.recovers();
        }
        disturbed_under_load(&mut nodes, (round, rounds), &completed, &mut random);
    }
    nodes.wait_for_the_dead();
    hooks.ended(nodes.server(0), &completed, &format!("seed {seed}, {rounds} rounds on {NODES} nodes"));
}

fn loaded_until_killed(
    server: &mut Server,
    rounds: u64,
    completed: &Mutex<BTreeSet<String>>,
    random: &mut fastrand::Rng,
) {
    let (target, enough) = (SingleServer::new(&server.url), AtomicBool::new(false));
    let load = HookedLoad { target: &target, completed, enough: &enough, left: left(rounds) };
    let lifetime = Duration::from_millis(random.u64(100..700));
    let [first, second] = [random.u64(..), random.u64(..)].map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| load.enqueue(first)), scope.spawn(|| load.work(second))];
        std::thread::sleep(lifetime);
        target.killed.store(true, Ordering::SeqCst);
        server.kill();
        threads.into_iter().for_each(|thread| drop(thread.join().expect("no thread panicked")));
    });
}

fn disturbed_under_load(
    nodes: &mut Nodes,
    (round, rounds): (u64, u64),
    completed: &Mutex<BTreeSet<String>>,
    random: &mut fastrand::Rng,
) {
    let (endpoints, enough) = (Arc::clone(&nodes.endpoints), AtomicBool::new(false));
    let load = HookedLoad { target: &*endpoints, completed, enough: &enough, left: left(rounds) };
    let [first, second] = [random.u64(..), random.u64(..)].map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let threads = [scope.spawn(|| load.enqueue(first)), scope.spawn(|| load.work(second))];
        crate::postgres::disturbed(nodes, round, random);
        enough.store(true, Ordering::SeqCst);
        threads.into_iter().for_each(|thread| assert!(thread.join().expect("no thread panicked").is_ok()));
    });
}

/// Clients that make events happen.
struct HookedLoad<'a> {
    target: &'a dyn Target,
    /// The jobs whose completion was acknowledged.
    completed: &'a Mutex<BTreeSet<String>>,
    enough: &'a AtomicBool,
    /// How many jobs may still be enqueued in this round.
    left: AtomicUsize,
}

fn left(rounds: u64) -> AtomicUsize {
    AtomicUsize::new(JOBS.min(MOST_JOBS / rounds.max(1) as usize))
}

impl HookedLoad<'_> {
    fn enqueue(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        while !self.enough.load(Ordering::SeqCst) && self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
            let id = new_id(&mut random);
            let job = json!({ "id": id, "type": "hooked.job", "args": [], "options": { "queue": QUEUE } });
            self.target.ask(&agent, "POST", "/ojs/v1/jobs", &job)?;
            std::thread::sleep(Duration::from_millis(random.u64(0..20)));
        }
        Ok(())
    }

    fn work(&self, mut random: fastrand::Rng) -> Result<(), Gone> {
        let agent = agent();
        let body = json!({
            "queues": [QUEUE], "count": 3, "worker_id": "crash", "wait_ms": 20,
            "visibility_timeout_ms": LEASE.as_millis() as u64,
        });
        while !self.enough.load(Ordering::SeqCst) {
            let fetched = self.target.ask(&agent, "POST", "/ojs/v1/workers/fetch", &body)?;
            let jobs = fetched.and_then(|(_, answer)| answer["jobs"].as_array().cloned()).unwrap_or_default();
            for job in jobs.iter().filter(|_| random.u8(..20) > 0) {
                let ack = json!({ "job_id": job["id"], "lease_token": job["lease_token"] });
                if let Some((200, _)) = self.target.ask(&agent, "POST", "/ojs/v1/workers/ack", &ack)? {
                    self.completed.lock().expect("no thread panicked").insert(text(job, "id"));
                }
            }
        }
        Ok(())
    }
}

/// The subscriptions, and where they lead to.
struct Hooks {
    receiver: Receiver,
    /// By path: the ids of the subscriptions.
    subscriptions: Vec<(&'static str, String)>,
}

impl Hooks {
    fn new(server: &Server) -> Self {
        let (receiver, mut subscriptions) = (Receiver::start(), Vec::new());
        for (path, attempts) in [(GOOD, 100), (FLAKY, 100), (NEVER, 2)] {
            let made = server.ask(
                "POST",
                "/ojs/v1/webhooks/subscriptions",
                json!({
                    "url": receiver.url(path), "events": ["job.completed"], "filter": { "queues": [QUEUE] },
                    "timeout_ms": 5_000,
                    "retry": { "max_attempts": attempts, "initial_interval": "PT0.05S", "max_interval": "PT0.5S" },
                }),
            );
            receiver.signed_with(path, text(&made, "secret"));
            subscriptions.push((path, text(&made, "id")));
        }
        Self { receiver, subscriptions }
    }

    /// Waits until no delivery is outstanding, and checks that every event arrived or is dead.
    fn ended(&self, server: &Server, completed: &Mutex<BTreeSet<String>>, what: &str) {
        for (_, id) in &self.subscriptions {
            until("every delivery has ended", || {
                let shown = server.ask("GET", &format!("/ojs/v1/webhooks/subscriptions/{id}"), Value::Null);
                (shown["deliveries"]["outstanding"] == 0).then_some(())
            });
        }
        let of_clients = |job: &Value| text(job, "queue") == QUEUE && text(job, "state") == "completed";
        let owed: BTreeSet<String> =
            all_jobs(server).iter().filter(|job| of_clients(job)).map(|job| text(job, "id")).collect();
        let acknowledged = completed.lock().expect("no thread panicked");
        assert!(acknowledged.is_subset(&owed), "an acknowledged completion is lost");
        let mut counts = Vec::new();
        for (path, id) in &self.subscriptions {
            let arrived = self.receiver.take(path);
            assert_eq!(arrived.wrong, Vec::<String>::new(), "{path}");
            let dead = dead(server, id);
            let taken = arrived.taken.iter().filter(|(_, ids)| !ids.is_empty());
            let delivered: BTreeSet<String> = taken.map(|(job, _)| job.clone()).collect();
            let missing: Vec<&String> =
                owed.iter().filter(|job| !delivered.contains(*job) && !dead.contains(*job)).collect();
            assert!(missing.is_empty(), "{path}: neither delivered nor dead: {missing:?}");
            let unowed: Vec<&String> = arrived.taken.keys().filter(|job| !owed.contains(*job)).collect();
            assert!(unowed.is_empty(), "{path}: nothing happened to {unowed:?}");
            let twice: Vec<_> = arrived.taken.iter().filter(|(_, ids)| ids.len() > 1).collect();
            assert!(twice.is_empty(), "{path}: several deliveries of one event: {twice:?}");
            match *path {
                NEVER => assert_eq!(dead, owed, "what is never answered is dead"),
                _ => assert_eq!(delivered, owed, "{path} was answered in the end"),
            }
            counts.push((arrived.requests, arrived.failed));
        }
        assert!(owed.len() >= 10 && counts[1].1 > 0, "hardly anything happened: {counts:?}");
        assert_eq!(server.ask("GET", "/ojs/v1/dead-letter?limit=1", Value::Null)["jobs"], json!([]));
        eprintln!("crash: {what}, {} events, requests and failures: {counts:?}", owed.len());
    }
}

/// The jobs whose events are dead at a subscription.
fn dead(server: &Server, subscription: &str) -> BTreeSet<String> {
    let path = format!("/ojs/v1/webhooks/deliveries?subscription_id={subscription}&status=dead&limit=500");
    let listed = server.ask("GET", &path, Value::Null);
    assert_eq!(listed["has_more"], false);
    let subject = |delivery: &Value| {
        let path = format!("/ojs/v1/webhooks/deliveries/{}", text(delivery, "id"));
        text(&server.ask("GET", &path, Value::Null)["event"], "subject")
    };
    listed["deliveries"].as_array().expect("deliveries").iter().map(subject).collect()
}
