//! Runs in a simulation from a seed: clients start, signal, cancel and redrive what a program does with jobs, runs and
//! timers, on two nodes over one store that fails. Nodes are lost, the server dies, the clock leaps and stands still.
//! Afterwards every message was read once, every child is there once, and every run has ended.

mod actors;
mod check;
mod flaws;
mod program;
mod world;

use crate::common::Seeded;
use crate::faults::Faults;
use crate::postgres::InDatabase;
use crate::scheduler::Scheduler;
use crate::store_kind::{InMemory, OnDisk, StoreKind};
use actors::{redriver, signaller, starter, sweeper, work, worker};
use flaws::{Flaw, FlawedRuns};
use redrive_policy::{Moment, Span};
use redrive_store::Store;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use world::{NODES, RunWorld};

/// The first second of 2026.
const START: Moment = Moment::from_micros(1_767_225_600_000_000);
/// How many seeds are tried where nobody says, and on PostgreSQL.
const SEEDS: u64 = 1_500;
const SEEDS_IN_DATABASE: u64 = 12;
/// How many rounds there are before a simulation counts as one that never ends.
const MOST_ROUNDS: usize = 2_000;
/// How many simulations on a store with a flaw may pass before the checker sees it.
const MOST_BROKEN: u64 = 200;

type Tally = BTreeMap<&'static str, u64>;

fn simulate(seed: u64, store_kind: &mut dyn StoreKind) -> (Vec<String>, Tally) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let driven = store_kind.runtime().cloned();
    let _inside = driven.as_ref().unwrap_or(runtime.handle()).enter();
    Simulation::new(seed, store_kind).run()
}

struct Simulation<'a> {
    world: Rc<RunWorld>,
    scheduler: Scheduler,
    store_kind: &'a mut dyn StoreKind,
    store: Option<Arc<dyn Store>>,
    rng: Seeded,
}

impl<'a> Simulation<'a> {
    fn new(seed: u64, store_kind: &'a mut dyn StoreKind) -> Self {
        let rng = Seeded::new(seed);
        let faults = Arc::new(Faults::new(rng.child(), *rng.pick(&[0, 10, 50, 150]), *rng.pick(&[0, 1, 3])));
        let world = Rc::new(RunWorld::new(START, faults, rng.child()));
        let store = store_kind.open();
        world.start(&store);
        Self { world, scheduler: Scheduler::new(rng.child()), store_kind, store: Some(store), rng }
    }

    fn run(mut self) -> (Vec<String>, Tally) {
        for _ in 0..self.rng.between(1, 2) {
            self.scheduler.spawn(starter(Rc::clone(&self.world), self.rng.child()));
            self.scheduler.spawn(worker(Rc::clone(&self.world), self.rng.child()));
            self.scheduler.spawn(sweeper(Rc::clone(&self.world), self.rng.child()));
        }
        self.scheduler.spawn(worker(Rc::clone(&self.world), self.rng.child()));
        self.scheduler.spawn(signaller(Rc::clone(&self.world), self.rng.child()));
        self.scheduler.spawn(redriver(Rc::clone(&self.world), self.rng.child()));
        for _ in 0..self.rng.between(200, 1_500) {
            self.turn();
        }
        self.world.close();
        self.world.faults.end();
        while !self.scheduler.is_empty() {
            if !self.scheduler.step() {
                self.scheduler.wake_all();
            }
        }
        let finished = self.finish();
        let mut violations = check::violations(&self.world, self.store.as_deref().expect("the server is up"));
        if !finished {
            violations.push(format!("stuck: not at its end after {MOST_ROUNDS} rounds"));
        }
        let tally = self.world.tally.borrow().clone();
        (violations, tally)
    }

    /// An actor goes on, and now and then something happens that no actor decides.
    fn turn(&mut self) {
        if !self.scheduler.step() {
            self.scheduler.wake_all();
        }
        if self.rng.permille(60) {
            match self.rng.below(8) {
                0..=4 => self.world.advance(Span::from_millis(self.rng.below(4_000) as u32)),
                5 => self.world.advance(Span::from_secs(self.rng.below(120) as u32)),
                6 => self.world.advance(Span::from_secs(self.rng.below(100_000) as u32)),
                _ => {
                    let back = self.rng.below(20_000_000) as i64;
                    self.world.clock.set(Moment::from_micros(self.world.now().micros() - back));
                    self.world.count("steps back");
                }
            }
        }
        if self.rng.permille(3) {
            let store = self.store.as_ref().expect("the server is up");
            self.world.lose(self.rng.below(NODES as u64) as usize, store);
            self.scheduler.wake_all();
            self.world.count("nodes lost");
        }
        if self.rng.permille(2) {
            self.restart();
        }
    }

    /// The server dies and comes back on what its store kept.
    fn restart(&mut self) {
        self.world.die();
        self.store_kind.cut();
        self.scheduler.wake_all();
        while self.world.in_flight() > 0 {
            self.scheduler.step();
        }
        if let Some(store) = self.store.take() {
            assert_eq!(Arc::strong_count(&store), 1, "a task still holds the store of the server that died");
        }
        let store = self.store_kind.reopen();
        self.world.start(&store);
        self.store = Some(store);
        self.world.count("restarts");
    }

    /// An honest worker brings everything to its end; whether it got there.
    fn finish(&mut self) -> bool {
        let (world, rng) = (Rc::clone(&self.world), self.rng.child());
        let ended = Rc::new(std::cell::Cell::new(false));
        let answer = Rc::clone(&ended);
        self.scheduler.spawn(async move {
            for _ in 0..MOST_ROUNDS {
                let _ = world.ask(|engine| async move { engine.sweep().await }).await;
                let steps = world.ask(|engine| async move { engine.advance().await }).await;
                if work(&world, &rng).await > 0 || !matches!(steps, Some(Ok(0))) {
                    continue;
                }
                let next = world.ask(|engine| async move { engine.next_sweep().await }).await;
                let next = next.and_then(Result::ok).flatten();
                let running = world.ask(|engine| async move {
                    let goes_on = redrive_store::RunFilter { ended: Some(false), ..Default::default() };
                    engine.list_runs(goes_on, 1_000).await
                });
                let running = running.await.and_then(Result::ok).unwrap_or_default();
                let timer = running.iter().filter_map(|run| run.timer).min();
                match next.into_iter().chain(timer).min() {
                    Some(next) if next > world.now() => world.clock.set(next),
                    Some(_) => world.advance(Span::from_secs(1)),
                    // The clock may be behind the time of a message, or of the start of a run.
                    None if !running.is_empty() => world.advance(Span::from_secs(10)),
                    None => return answer.set(true),
                }
            }
        });
        while !self.scheduler.is_empty() {
            if !self.scheduler.step() {
                self.scheduler.wake_all();
            }
        }
        ended.get()
    }
}

/// Tries seeds, or the one that `REDRIVE_SIM_RUN_SEED` names.
fn prove(seeds: u64, mut kind: impl FnMut() -> Box<dyn StoreKind>) {
    let setting = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let single = setting("REDRIVE_SIM_RUN_SEED");
    let seeds = single.map_or(0..seeds, |seed| seed..seed + 1);
    let mut tally = Tally::new();
    for seed in seeds {
        let (violations, counted) = simulate(seed, &mut *kind());
        let again = format!("REDRIVE_SIM_RUN_SEED={seed} cargo test -p redrive-engine --test simulation runs::");
        assert!(violations.is_empty(), "seed {seed}, to be had again with {again}: {violations:#?}");
        counted.into_iter().for_each(|(what, count)| *tally.entry(what).or_default() += count);
    }
    eprintln!("{tally:#?}");
    let always = ["starts", "notes", "cancels", "redrives", "reports", "restarts", "nodes lost", "standstills"];
    let never: Vec<_> = always.into_iter().filter(|what| !tally.contains_key(what)).collect();
    assert!(single.is_some() || never.is_empty(), "in all simulations there were no {never:?}");
}

#[test]
fn runs_come_to_their_end_on_the_store_in_memory() {
    prove(SEEDS, || Box::new(InMemory::default()));
}

#[test]
fn runs_come_to_their_end_on_the_embedded_store_over_power_cuts() {
    prove(SEEDS / 3, || Box::new(OnDisk::default()));
}

#[test]
fn runs_come_to_their_end_on_postgresql_over_restarts() {
    prove(SEEDS_IN_DATABASE, || Box::new(InDatabase::default()));
}

#[test]
fn every_flaw_of_runs_is_seen() {
    for flaw in Flaw::ALL {
        let mut store_kind = FlawedRuns::new(flaw);
        let seen = (0..MOST_BROKEN).find_map(|seed| {
            let (violations, _) = simulate(seed, &mut store_kind);
            violations.into_iter().next().map(|violation| (seed, violation))
        });
        let (seed, violation) = seen.unwrap_or_else(|| panic!("nobody noticed {flaw:?}"));
        eprintln!(
            "{flaw:?}: seen after {} simulations: {}",
            seed + 1,
            violation.split(": ").next().unwrap_or_default()
        );
    }
}
