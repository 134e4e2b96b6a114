//! One server on its own folder.

use crate::check::{compared, drained};
use crate::harness::{Folder, Server, killed_while_starting, redrive, stdout};
use crate::ledger::Ledger;
use crate::load::Load;
use crate::target::{Gone, SingleServer};
use crate::{rounds, seed};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The largest number of enqueue requests of each of two clients in one round.
const REQUESTS: usize = 40;

#[test]
fn kill_minus_nine_loses_nothing_that_was_acknowledged() {
    let (rounds, seed) = (rounds(20), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let folder = Folder::new("crash");
    let data = folder.at("data");
    let (ledger, batches) = (Mutex::new(Ledger::default()), AtomicU64::new(0));
    for round in 1..=rounds {
        if random.u8(..4) == 0 {
            killed_while_starting(&["--data", &data], Duration::from_millis(random.u64(0..40)));
        }
        let mut server = Server::start(&data);
        compared(&server, &ledger, &format!("round {round}, after the start"));
        let killed = loaded(&mut server, &ledger, &batches, &mut random);
        assert!(killed, "round {round}: the load ended before the kill");
        sound(&data);
    }
    let server = Server::start(&data);
    compared(&server, &ledger, "after the last kill");
    drained(&SingleServer::new(&server.url), &server, &ledger, &batches, &mut random);
    let ledger = ledger.into_inner().expect("no thread panicked");
    let (jobs, acknowledged) = (ledger.jobs.len(), ledger.acknowledged);
    assert!(jobs as u64 >= rounds, "hardly any job got in: {jobs}");
    eprintln!("crash: seed {seed}, {rounds} rounds, {jobs} jobs, {acknowledged} acknowledgements, all of them durable");
}

/// Puts the server under load and kills it at a random moment; returns whether the load was still on.
fn loaded(server: &mut Server, ledger: &Mutex<Ledger>, batches: &AtomicU64, random: &mut fastrand::Rng) -> bool {
    let (target, enough) = (SingleServer::new(&server.url), AtomicBool::new(false));
    let load = Load { target: &target, ledger, enough: &enough, batches };
    let lifetime = Duration::from_millis(random.u64(20..700));
    let seeds: [u64; 5] = std::array::from_fn(|_| random.u64(..));
    let [first, second, third, fourth, fifth] = seeds.map(fastrand::Rng::with_seed);
    std::thread::scope(|scope| {
        let helpers = [
            scope.spawn(|| load.enqueue(first, REQUESTS)),
            scope.spawn(|| load.enqueue(second, REQUESTS)),
            scope.spawn(|| load.cancel_some(third)),
            scope.spawn(|| load.report_missing()),
        ];
        let workers = [scope.spawn(|| load.work(fourth)), scope.spawn(|| load.work(fifth))];
        std::thread::sleep(lifetime);
        target.killed.store(true, Ordering::SeqCst);
        server.kill();
        for helper in helpers {
            let _ = helper.join().expect("the ledger was not contradicted");
        }
        // Workers end only when the server is gone.
        workers.into_iter().all(|worker| matches!(worker.join().expect("the ledger was not contradicted"), Err(Gone)))
    })
}

/// The folder that a kill left is sound, to the last byte.
fn sound(data: &str) {
    let output = redrive(&["store", "check", data, "--json"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}
