//! Workflows and schedules on servers that are killed: each step and each slot is one job, whatever crashes and when,
//! and everything that was acknowledged comes to its end.

mod check;
mod ledger;
mod load;
mod plan;

use crate::cluster::Cluster;
use crate::harness::{Folder, Server};
use crate::nodes::{NODES, Nodes};
use crate::target::{Gone, SingleServer, Target};
use crate::{rounds, seed};
use check::{Jobs, Outage};
use ledger::RunLedger;
use load::RunLoad;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

#[test]
fn kill_minus_nine_repeats_no_step_and_no_slot() {
    let (rounds, seed) = (rounds(10), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = Folder::new("crash-runs");
    let data = folder.at("data");
    let (ledger, mut outages) = (Mutex::new(RunLedger::default()), Vec::<Outage>::new());
    let mut gone_at = None;
    for round in 1..=rounds {
        let mut server = Server::start(&data);
        outages.extend(gone_at.map(|at| (at, SystemTime::now())));
        check::compared(&server, &ledger, &format!("round {round}, after the start"));
        loaded_until_killed(&mut server, &ledger, &mut random);
        gone_at = Some(SystemTime::now());
    }
    let server = Server::start(&data);
    outages.extend(gone_at.map(|at| (at, SystemTime::now())));
    ended(&SingleServer::new(&server.url), &server, ledger, &outages, &format!("seed {seed}, {rounds} rounds"));
}

fn loaded_until_killed(server: &mut Server, ledger: &Mutex<RunLedger>, random: &mut fastrand::Rng) {
    let (target, enough) = (SingleServer::new(&server.url), AtomicBool::new(false));
    let load = RunLoad { target: &target, ledger, enough: &enough };
    let lifetime = Duration::from_millis(random.u64(50..800));
    let seeds: [u64; 5] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth] = seeds.map(fastrand::Rng::with_seed);
    let schedules = random.u8(..3) == 0;
    std::thread::scope(|scope| {
        let clients = [
            scope.spawn(|| load.start(first)),
            scope.spawn(|| load.cancel_one(second)),
            scope.spawn(|| if schedules { load.schedule(third) } else { Ok(()) }),
        ];
        let workers = [scope.spawn(|| load.work(fourth)), scope.spawn(|| load.work(fifth))];
        std::thread::sleep(lifetime);
        target.killed.store(true, Ordering::SeqCst);
        server.kill();
        for client in clients {
            let _ = client.join().expect("the ledger was not contradicted");
        }
        for worker in workers {
            assert!(matches!(worker.join().expect("the ledger was not contradicted"), Err(Gone)));
        }
    });
}

#[test]
fn killed_nodes_and_a_crashing_database_repeat_no_step_and_no_slot() {
    let (rounds, seed) = (rounds(6), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut nodes, ledger) = (Nodes::start(Cluster::start()), Mutex::new(RunLedger::default()));
    let mut outages = Vec::<Outage>::new();
    for round in 1..=rounds {
        let began = SystemTime::now();
        disturbed_under_load(&mut nodes, round, &ledger, &mut random);
        // The database is away for a part of such a round.
        outages.extend(round.is_multiple_of(3).then(|| (began, SystemTime::now())));
        nodes.wait_for_the_dead();
        check::compared(nodes.server(random.usize(..NODES)), &ledger, &format!("round {round}"));
    }
    let what = format!("seed {seed}, {rounds} rounds on {NODES} nodes");
    ended(&*nodes.endpoints, nodes.server(0), ledger, &outages, &what);
}

fn disturbed_under_load(nodes: &mut Nodes, round: u64, ledger: &Mutex<RunLedger>, random: &mut fastrand::Rng) {
    let (endpoints, enough) = (std::sync::Arc::clone(&nodes.endpoints), AtomicBool::new(false));
    let load = RunLoad { target: &*endpoints, ledger, enough: &enough };
    let seeds: [u64; 6] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth, sixth] = seeds.map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| load.start(first)),
            scope.spawn(|| load.cancel_one(second)),
            scope.spawn(|| if round <= 3 { load.schedule(third) } else { Ok(()) }),
            scope.spawn(|| load.work(fourth)),
            scope.spawn(|| load.work(fifth)),
            scope.spawn(|| load.work(sixth)),
        ];
        crate::postgres::disturbed(nodes, round, random);
        enough.store(true, Ordering::SeqCst);
        for thread in threads {
            assert!(thread.join().expect("the ledger was not contradicted").is_ok());
        }
    });
}

/// Lets everything end without further kills, redrives what failed for good, and checks everything after each.
fn ended(target: &dyn Target, server: &Server, ledger: Mutex<RunLedger>, outages: &[Outage], what: &str) {
    check::compared(server, &ledger, "after the last kill");
    let names: Vec<String> = ledger.lock().expect("no thread panicked").schedules.keys().cloned().collect();
    for name in &names {
        let paused = server.command(&["cron", "pause", name]);
        assert!(paused.status.success(), "{name} was paused: {paused:?}");
    }
    worked(target, server, &ledger);
    finished(server, &ledger, outages, "at the end");
    let redriven = redrive_failed(server, &ledger);
    worked(target, server, &ledger);
    finished(server, &ledger, outages, "after the redrive");
    let ledger = ledger.into_inner().expect("no thread panicked");
    let slots: usize = ledger.schedules.values().map(|schedule| schedule.slots.len()).sum();
    assert!(ledger.workflows.len() >= 10 && slots >= 1, "hardly anything got in: {what}");
    eprintln!(
        "crash: {what}, {} workflows, {redriven} steps redriven, {slots} slots of {} schedules, each of them once",
        ledger.workflows.len(),
        names.len(),
    );
}

/// Workers run until all workflows and all jobs are over.
fn worked(target: &dyn Target, server: &Server, ledger: &Mutex<RunLedger>) {
    let enough = AtomicBool::new(false);
    let load = RunLoad { target, ledger, enough: &enough };
    std::thread::scope(|scope| {
        let load = &load;
        let workers = [1, 2].map(|seed| scope.spawn(move || load.work(fastrand::Rng::with_seed(seed))));
        let end = EndOfWork(&enough);
        check::all_over(server);
        drop(end);
        for worker in workers {
            assert!(worker.join().expect("the ledger was not contradicted").is_ok());
        }
    });
}

/// Ends the workers, also where the test fails.
struct EndOfWork<'a>(&'a AtomicBool);

impl Drop for EndOfWork<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn finished(server: &Server, ledger: &Mutex<RunLedger>, outages: &[Outage], when: &str) {
    check::compared(server, ledger, when);
    let ledger = ledger.lock().expect("no thread panicked");
    let jobs = Jobs::of(server);
    let mut wrong = check::workflows(server, &ledger, &jobs);
    wrong.extend(check::schedules(server, &ledger, &jobs, outages));
    assert!(wrong.is_empty(), "{when}: {wrong:#?}");
}

/// Redrives the steps that have failed for good, of workflows that nobody cancelled; answers how many.
fn redrive_failed(server: &Server, ledger: &Mutex<RunLedger>) -> usize {
    let mut ledger = ledger.lock().expect("no thread panicked");
    let mut failed = Vec::new();
    for (id, workflow) in ledger.workflows.iter().filter(|(_, workflow)| workflow.cancelled.is_none()) {
        let doomed = (0..workflow.steps.len())
            .filter(|step| workflow.plan.steps[*step].doomed && workflow.plan.is_enqueued(*step));
        failed.extend(doomed.filter_map(|step| Some((id.clone(), step, workflow.steps[step].job.clone()?))));
    }
    for (id, step, job) in &failed {
        let _: Value = server.ask("POST", &format!("/ojs/v1/dead-letter/{job}/retry"), json!({}));
        ledger.redriven(id, *step);
    }
    failed.len()
}
