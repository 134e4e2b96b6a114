//! Three servers on one PostgreSQL: one after another is killed and started again while the others go on,
//! and sometimes the database crashes. In one test it does not come back, and its standby takes over.

use crate::check::{compared, drained};
use crate::cluster::Cluster;
use crate::harness::until;
use crate::ledger::Ledger;
use crate::load::Load;
use crate::nodes::{NODES, Nodes};
use crate::{rounds, seed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The largest number of enqueue requests of each of two clients in one round.
const REQUESTS: usize = 40;
/// Every server has its own idea of the database's clock. It is off by half of the time that an answer of
/// the database takes at most, which is long on a machine that is busy with other tests.
const SLACK: Duration = Duration::from_millis(250);

#[test]
fn killed_nodes_and_a_crashing_database_lose_nothing_that_was_acknowledged() {
    let (rounds, seed) = (rounds(8), seed());
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut nodes, ledger) = (Nodes::start(Cluster::start()), Record::new());
    for round in 1..=rounds {
        ledger.loaded(&mut nodes, &mut random, |nodes, random| disturbed(nodes, round, random));
        ledger.compared(&nodes, &format!("round {round}"), &mut random);
    }
    let (silent, refused) = ledger.drained(&nodes, &mut random, &format!("seed {seed}, {rounds} rounds"));
    assert!(silent as u64 >= rounds, "hardly any kill was noticed: {silent} requests had no answer");
    assert!(refused as u64 >= rounds / 3, "hardly any crash of the database was noticed: {refused} requests refused");
}

/// The standby has everything that was acknowledged, because the primary waited for it.
#[test]
fn a_failover_to_a_synchronous_standby_loses_nothing_that_was_acknowledged() {
    let seed = seed();
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut nodes, ledger) = (Nodes::start(Cluster::start_with(&["--standby"])), Record::new());
    ledger.loaded(&mut nodes, &mut random, |nodes, random| {
        ledger.wait_for_more(random.usize(50..150));
        nodes.fail_over();
        ledger.wait_for_more(50);
    });
    ledger.compared(&nodes, "after the failover", &mut random);
    ledger.drained(&nodes, &mut random, &format!("seed {seed}, a failover"));
}

/// The ledger of all rounds.
struct Record {
    ledger: Mutex<Ledger>,
    batches: AtomicU64,
}

impl Record {
    fn new() -> Self {
        Self { ledger: Mutex::new(Ledger { slack: SLACK, ..Ledger::default() }), batches: AtomicU64::new(0) }
    }

    /// Puts the servers under load while something happens to them.
    fn loaded(
        &self,
        nodes: &mut Nodes,
        random: &mut fastrand::Rng,
        disturb: impl FnOnce(&mut Nodes, &mut fastrand::Rng),
    ) {
        let (endpoints, enough) = (Arc::clone(&nodes.endpoints), AtomicBool::new(false));
        let load = Load { target: &*endpoints, ledger: &self.ledger, enough: &enough, batches: &self.batches };
        let seeds: [u64; 6] = std::array::from_fn(|_| random.u64(..));
        let [first, second, third, fourth, fifth, sixth] = seeds.map(fastrand::Rng::with_seed);
        std::thread::scope(|scope| {
            let threads = [
                scope.spawn(|| load.enqueue(first, REQUESTS)),
                scope.spawn(|| load.enqueue(second, REQUESTS)),
                scope.spawn(|| load.cancel_some(third)),
                scope.spawn(|| load.report_missing()),
                scope.spawn(|| load.work(fourth)),
                scope.spawn(|| load.work(fifth)),
                scope.spawn(|| load.work(sixth)),
            ];
            disturb(nodes, random);
            enough.store(true, Ordering::SeqCst);
            for thread in threads {
                assert!(thread.join().expect("the ledger was not contradicted").is_ok());
            }
        });
    }

    /// Waits until this many more acknowledgements have come.
    fn wait_for_more(&self, acknowledgements: usize) {
        let acknowledged = || self.ledger.lock().expect("no thread panicked").acknowledged;
        let enough = acknowledged() + acknowledgements;
        until("acknowledgements come in", || (acknowledged() >= enough).then_some(()));
    }

    /// Any server shows the jobs, once no transaction of a killed one is running.
    fn compared(&self, nodes: &Nodes, when: &str, random: &mut fastrand::Rng) {
        nodes.wait_for_the_dead();
        compared(nodes.server(random.usize(..NODES)), &self.ledger, when);
    }

    /// Lets every job end; returns how many requests had no answer, and how many no database.
    fn drained(self, nodes: &Nodes, random: &mut fastrand::Rng, what: &str) -> (usize, usize) {
        drained(&*nodes.endpoints, nodes.server(0), &self.ledger, &self.batches, random);
        let ledger = self.ledger.into_inner().expect("no thread panicked");
        let (jobs, acknowledged) = (ledger.jobs.len(), ledger.acknowledged);
        assert!(jobs >= 10, "hardly any job got in: {jobs}");
        let (silent, refused) =
            (nodes.endpoints.silent.load(Ordering::SeqCst), nodes.endpoints.refused.load(Ordering::SeqCst));
        eprintln!(
            "crash: {what} on {NODES} nodes, {jobs} jobs, {acknowledged} acknowledgements, all of them durable; \
             {silent} requests had no answer, {refused} no database"
        );
        (silent, refused)
    }
}

/// What happens to the servers in one round. In every third one the database crashes too, before, while or
/// after servers are gone.
pub(crate) fn disturbed(nodes: &mut Nodes, round: u64, random: &mut fastrand::Rng) {
    let victim = random.usize(..NODES);
    let other = random.bool().then(|| (victim + 1) % NODES);
    let database_at = if round.is_multiple_of(3) { random.u8(..4) } else { u8::MAX };
    for moment in 0..4 {
        std::thread::sleep(Duration::from_millis(random.u64(10..250)));
        match moment {
            0 => nodes.kill(victim),
            1 => other.into_iter().for_each(|other| nodes.kill(other)),
            2 => nodes.start_again(victim, start_cut_short(random)),
            _ => other.into_iter().for_each(|other| nodes.start_again(other, None)),
        }
        if moment == database_at {
            std::thread::sleep(Duration::from_millis(random.u64(0..150)));
            nodes.crash_database(Duration::from_millis(random.u64(0..400)));
        }
    }
}

fn start_cut_short(random: &mut fastrand::Rng) -> Option<Duration> {
    (random.u8(..4) == 0).then(|| Duration::from_millis(random.u64(0..60)))
}
