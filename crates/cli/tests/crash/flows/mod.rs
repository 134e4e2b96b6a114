//! A thousand durable flows on servers that are killed: each ends with the Result that follows from its input, each of
//! its jobs and cleanups is enqueued once, and each call of a service has one key.

mod load;
mod plan;
mod service;

use crate::check::all_jobs;
use crate::cluster::Cluster;
use crate::harness::{Folder, Server, until};
use crate::ledger::text;
use crate::nodes::{NODES, Nodes};
use crate::target::{Gone, SingleServer, Target};
use crate::webhooks::LOOPBACK;
use crate::{rounds, seed};
use load::{FlowLedger, FlowLoad, place_of};
use serde_json::{Value, json};
use service::Service;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How many flows there are.
const FLOWS: usize = 1_000;

#[test]
fn kill_minus_nine_changes_no_result_of_a_thousand_flows() {
    let (rounds, seed) = (rounds(7).max(3), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = Folder::new("crash-flows");
    let data = folder.at("data");
    let start = || Server::start_under(&LOOPBACK, &["--data", &data], &[]);
    let mut server = start();
    let flows = Flows::new(&server, &mut random);
    for round in 1..=rounds {
        let (target, enough) = (SingleServer::new(&server.url), AtomicBool::new(false));
        let load = flows.load(&target, &enough);
        let goal = flows.goal(round, rounds, &mut random);
        std::thread::scope(|scope| {
            let threads = spawned(scope, &load, round, &mut random);
            let end = EndOfLoad(&enough);
            flows.wait_for(goal);
            std::thread::sleep(Duration::from_millis(random.u64(0..30)));
            target.killed.store(true, Ordering::SeqCst);
            server.kill();
            drop(end);
            threads.into_iter().for_each(|thread| drop(thread.join().expect("no thread panicked")));
        });
        flows.assert_in_the_middle(round);
        server = start();
    }
    flows.ended(&SingleServer::new(&server.url), &server, &format!("seed {seed}, {rounds} kills"));
}

#[test]
fn killed_nodes_and_a_crashing_database_change_no_result_of_a_thousand_flows() {
    let (rounds, seed) = (rounds(5).max(3), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let mut nodes = Nodes::start(Cluster::start());
    let flows = Flows::new(nodes.server(0), &mut random);
    for round in 1..=rounds {
        let (endpoints, enough) = (Arc::clone(&nodes.endpoints), AtomicBool::new(false));
        let load = flows.load(&*endpoints, &enough);
        let goal = flows.goal(round, rounds, &mut random);
        std::thread::scope(|scope| {
            let threads = spawned(scope, &load, round, &mut random);
            let end = EndOfLoad(&enough);
            flows.wait_for(goal);
            crate::postgres::disturbed(&mut nodes, round, &mut random);
            drop(end);
            threads.into_iter().for_each(|thread| assert!(thread.join().expect("no thread panicked").is_ok()));
        });
    }
    nodes.wait_for_the_dead();
    let what = format!("seed {seed}, {rounds} rounds on {NODES} nodes");
    flows.ended(&*nodes.endpoints, nodes.server(0), &what);
}

type Client<'scope> = std::thread::ScopedJoinHandle<'scope, Result<(), Gone>>;

/// The clients of a round. In the first two nobody works, so that all flows run at the same time.
fn spawned<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    load: &'scope FlowLoad<'_>,
    round: u64,
    random: &mut fastrand::Rng,
) -> Vec<Client<'scope>> {
    let seeds: [u64; 5] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth] = seeds.map(fastrand::Rng::with_seed);
    let mut threads = vec![scope.spawn(|| load.start(first)), scope.spawn(|| load.start(second))];
    if round > 2 {
        threads.push(scope.spawn(|| load.work(third)));
        threads.push(scope.spawn(|| load.work(fourth)));
        threads.push(scope.spawn(|| load.cancel(fifth)));
    }
    threads
}

/// Ends the clients, also where the test fails.
struct EndOfLoad<'a>(&'a AtomicBool);

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The flows, and the service that they call.
struct Flows {
    ledger: Mutex<FlowLedger>,
    service: Service,
    /// How many jobs there are to be.
    jobs: usize,
}

impl Flows {
    fn new(server: &Server, random: &mut fastrand::Rng) -> Self {
        let definition = serde_json::from_str(plan::DEFINITION).expect("JSON");
        server.ask("PUT", "/flows/v1/definitions/order", definition);
        let ledger = FlowLedger::new(FLOWS, random);
        let jobs = ledger.orders.values().map(|order| order.jobs().len()).sum();
        Self { ledger: Mutex::new(ledger), service: Service::start(), jobs }
    }

    fn load<'a>(&'a self, target: &'a dyn Target, enough: &'a AtomicBool) -> FlowLoad<'a> {
        FlowLoad { target, ledger: &self.ledger, service: &self.service.url, enough }
    }

    /// How much is to be done before something happens in a round: in the first while flows are being started, in the
    /// second when all have been, and then spread over the work.
    fn goal(&self, round: u64, rounds: u64, random: &mut fastrand::Rng) -> usize {
        match round {
            1 => random.usize(FLOWS / 5..FLOWS * 4 / 5),
            2 => FLOWS,
            _ => {
                let part = self.jobs * 8 / 10 / (rounds - 2) as usize;
                FLOWS + (round - 3) as usize * part + random.usize(part / 5..part)
            }
        }
    }

    fn wait_for(&self, goal: usize) {
        let progress = || self.ledger.lock().expect("no thread panicked").progress();
        until(&format!("progress up to {goal}"), || (progress() >= goal).then_some(()));
    }

    fn assert_in_the_middle(&self, round: u64) {
        let progress = self.ledger.lock().expect("no thread panicked").progress();
        assert!(progress < FLOWS + self.jobs, "round {round}: the flows ended before the kill: {progress}");
    }

    /// Lets every flow end without further kills, and checks all of them.
    fn ended(self, target: &dyn Target, server: &Server, what: &str) {
        let enough = AtomicBool::new(false);
        let load = self.load(target, &enough);
        let ids: Vec<String> = self.ledger.lock().expect("no thread panicked").orders.keys().cloned().collect();
        let shown: BTreeMap<String, Value> = std::thread::scope(|scope| {
            let threads = spawned(scope, &load, u64::MAX, &mut fastrand::Rng::with_seed(1));
            let end = EndOfLoad(&enough);
            self.wait_for_starts();
            let shown = ids.into_iter().map(|id| (id.clone(), ended(server, &id))).collect();
            drop(end);
            threads.into_iter().for_each(|thread| assert!(thread.join().expect("no thread panicked").is_ok()));
            shown
        });
        let mut wrong = std::mem::take(&mut self.ledger.lock().expect("no thread panicked").wrong);
        wrong.extend(self.wrong_results(&shown));
        wrong.extend(self.wrong_jobs(&all_jobs(server)));
        let (calls, requests) = self.service.arrived();
        wrong.extend(self.wrong_calls(&calls));
        assert!(wrong.is_empty(), "{what}: {} problems: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
        let repeated = self.ledger.lock().expect("no thread panicked").repeated;
        eprintln!(
            "crash: {what}, {FLOWS} flows, {} jobs, each of them once, {} calls in {requests} requests; {repeated} \
             requests repeated",
            self.jobs,
            calls.len(),
        );
    }

    fn wait_for_starts(&self) {
        until("all flows are started", || {
            (self.ledger.lock().expect("no thread panicked").started == FLOWS).then_some(())
        });
    }

    fn wrong_results(&self, shown: &BTreeMap<String, Value>) -> Vec<String> {
        let ledger = self.ledger.lock().expect("no thread panicked");
        let mut wrong = Vec::new();
        for (id, run) in shown {
            let expected = ledger.orders[id].result();
            let mut result = run["result"].clone();
            if let Some(members) = result.as_object_mut() {
                members.remove("message");
                // They have the deadline, which follows from the time of the start.
                members.retain(|name, _| name != "details" || expected["type"] != "timeout");
            }
            let state = match text(&expected, "type").as_str() {
                "success" => "completed",
                "cancellation" => "cancelled",
                _ => "failed",
            };
            if result != expected || run["state"] != state {
                wrong.push(format!("{id} has to be {state} with {expected}: {run}"));
            }
        }
        wrong
    }

    /// Each run has exactly its jobs, and those that workers had are over.
    fn wrong_jobs(&self, jobs: &[Value]) -> Vec<String> {
        let ledger = self.ledger.lock().expect("no thread panicked");
        let (mut wrong, mut found) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
        for job in jobs.iter().filter(|job| text(job, "queue").starts_with(plan::QUEUE)) {
            let (id, place, at) = place_of(job);
            let state = match ledger.orders.get(&id) {
                Some(order) if order.fails(&place, &at) => "discarded",
                _ if place == "late" => "cancelled",
                _ => "completed",
            };
            if job["state"] != state {
                wrong.push(format!("a job that has to be {state}: {job}"));
            }
            if !found.entry(id).or_default().insert(plan::named(&place, &at)) {
                wrong.push(format!("a second job for the same place: {job}"));
            }
        }
        for (id, order) in &ledger.orders {
            let (expected, found) = (order.jobs(), found.remove(id).unwrap_or_default());
            if found != expected {
                wrong.push(format!("{id} has the jobs {found:?}, expected are {expected:?}"));
            }
        }
        wrong.extend(found.into_iter().map(|(id, jobs)| format!("there is no order {id:?}, but there are {jobs:?}")));
        wrong
    }

    /// Each call of the service has a key of its own, however often it was made.
    fn wrong_calls(&self, calls: &service::Calls) -> Vec<String> {
        let ledger = self.ledger.lock().expect("no thread panicked");
        let expected: BTreeSet<(String, u64)> =
            ledger.orders.iter().flat_map(|(id, order)| (0..order.calls()).map(|call| (id.clone(), call))).collect();
        let called: BTreeSet<(String, u64)> = calls.keys().cloned().collect();
        let differ = expected.symmetric_difference(&called).map(|call| format!("missing or not expected: {call:?}"));
        let mut wrong: Vec<String> = differ.collect();
        let several = calls.iter().filter(|(_, keys)| keys.len() != 1);
        wrong.extend(several.map(|(call, keys)| format!("{call:?} was made with the keys {keys:?}")));
        let keys: BTreeSet<&String> = calls.values().flatten().collect();
        if keys.len() != calls.len() || keys.contains(&String::new()) {
            wrong.push(format!("{} calls have {} keys", calls.len(), keys.len()));
        }
        wrong
    }
}

/// Waits for the end of a run, and shows it.
fn ended(server: &Server, id: &str) -> Value {
    until(&format!("the end of {id}"), || {
        let run = server.ask("GET", &format!("/flows/v1/runs/{id}"), json!(null));
        run["ended_at"].is_string().then_some(run)
    })
}
