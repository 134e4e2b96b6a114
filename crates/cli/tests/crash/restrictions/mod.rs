//! Unique jobs and limits on servers that are killed: at no moment are there two jobs of a kind that must be unique, no
//! limit is exceeded, and no job waits for ever.

mod check;
mod ledger;
mod load;

use crate::cluster::Cluster;
use crate::harness::{Folder, Server};
use crate::nodes::{NODES, Nodes};
use crate::target::{Gone, SingleServer, Target};
use crate::{rounds, seed};
use ledger::{QUEUE_LIMIT, Restricted};
use load::RestrictedLoad;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The times of one server are exact, as far as they are written.
const EXACT: Duration = Duration::from_millis(20);
/// Those of several are not: each has its own idea of the clock of the database.
const SLACK: Duration = Duration::from_millis(250);

#[test]
fn kill_minus_nine_leaves_no_duplicate_and_exceeds_no_limit() {
    let (rounds, seed) = (rounds(8), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = Folder::new("crash-restrictions");
    let data = folder.at("data");
    let ledger = Mutex::new(Restricted::new(EXACT));
    for round in 1..=rounds {
        let mut server = Server::start(&data);
        if round == 1 {
            limit_queue(&server);
        }
        check::compared(&server, &ledger, &format!("round {round}, after the start"));
        loaded_until_killed(&mut server, &ledger, &mut random);
    }
    let server = Server::start(&data);
    ended(&SingleServer::new(&server.url), &server, ledger, &format!("seed {seed}, {rounds} rounds"));
}

#[test]
fn killed_nodes_and_a_crashing_database_leave_no_duplicate_and_exceed_no_limit() {
    let (rounds, seed) = (rounds(4), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut nodes, ledger) = (Nodes::start(Cluster::start()), Mutex::new(Restricted::new(SLACK)));
    limit_queue(nodes.server(0));
    for round in 1..=rounds {
        disturbed_under_load(&mut nodes, round, &ledger, &mut random);
        nodes.wait_for_the_dead();
        check::compared(nodes.server(random.usize(..NODES)), &ledger, &format!("round {round}"));
    }
    let what = format!("seed {seed}, {rounds} rounds on {NODES} nodes");
    ended(&*nodes.endpoints, nodes.server(0), ledger, &what);
}

/// The limit of a queue is set once, and is there after every crash.
fn limit_queue(server: &Server) {
    let most = QUEUE_LIMIT.to_string();
    server.printed(&["queues", "config", load::NARROW, "--concurrency", &most]);
}

fn loaded_until_killed(server: &mut Server, ledger: &Mutex<Restricted>, random: &mut fastrand::Rng) {
    let (target, enough) = (SingleServer::new(&server.url), AtomicBool::new(false));
    let load = RestrictedLoad { target: &target, ledger, enough: &enough };
    let lifetime = Duration::from_millis(random.u64(50..700));
    let seeds: [u64; 6] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth, sixth] = seeds.map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| load.enqueue(first)),
            scope.spawn(|| load.enqueue(second)),
            scope.spawn(|| load.redrive(third)),
            scope.spawn(|| load.work(fourth)),
            scope.spawn(|| load.work(fifth)),
            scope.spawn(|| load.work(sixth)),
        ];
        std::thread::sleep(lifetime);
        target.killed.store(true, Ordering::SeqCst);
        server.kill();
        for thread in threads {
            assert!(matches!(thread.join().expect("the ledger was not contradicted"), Err(Gone)));
        }
    });
}

fn disturbed_under_load(nodes: &mut Nodes, round: u64, ledger: &Mutex<Restricted>, random: &mut fastrand::Rng) {
    let (endpoints, enough) = (std::sync::Arc::clone(&nodes.endpoints), AtomicBool::new(false));
    let load = RestrictedLoad { target: &*endpoints, ledger, enough: &enough };
    let seeds: [u64; 6] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth, sixth] = seeds.map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| load.enqueue(first)),
            scope.spawn(|| load.enqueue(second)),
            scope.spawn(|| load.redrive(third)),
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

/// Lets every job end without further kills, and checks everything once more.
fn ended(target: &dyn Target, server: &Server, ledger: Mutex<Restricted>, what: &str) {
    check::compared(server, &ledger, "after the last kill");
    let enough = AtomicBool::new(false);
    let load = RestrictedLoad { target, ledger: &ledger, enough: &enough };
    std::thread::scope(|scope| {
        let load = &load;
        let workers = [1, 2].map(|seed| scope.spawn(move || load.work(fastrand::Rng::with_seed(seed))));
        let over = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check::all_over(server)));
        enough.store(true, Ordering::SeqCst);
        for worker in workers {
            assert!(worker.join().expect("the ledger was not contradicted").is_ok());
        }
        assert!(over.is_ok(), "jobs that never end: {over:?}");
    });
    check::compared(server, &ledger, "at the end");
    let ledger = ledger.into_inner().expect("no thread panicked");
    check::lifetimes(server, &ledger);
    let [created, ignored, refused, redriven] = ledger.counts;
    assert!(created >= 50 && ignored >= 3 && refused >= 3, "hardly anything got in: {:?}", ledger.counts);
    eprintln!(
        "crash: {what}, {created} jobs, {ignored} duplicates ignored and {refused} refused, {redriven} redriven, \
         {} leases within their limits",
        ledger.held.len()
    );
}
