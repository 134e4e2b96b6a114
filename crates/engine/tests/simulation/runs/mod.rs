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
use crate::stage::{Found, START, Stage, first_found, prove};
use crate::store_kind::{InMemory, OnDisk, StoreKind};
use actors::{redriver, signaller, starter, sweeper, work, worker};
use flaws::{Flaw, FlawedRuns};
use redrive_policy::Span;
use std::rc::Rc;
use std::sync::Arc;
use world::RunWorld;

/// How many seeds are tried where nobody says, and on PostgreSQL.
const SEEDS: u64 = 1_500;
const SEEDS_IN_DATABASE: u64 = 12;
/// How many rounds there are before a simulation counts as one that never ends.
const MOST_ROUNDS: usize = 2_000;
/// How many simulations on a store with a flaw may pass before the checker sees it.
const MOST_BROKEN: u64 = 200;

fn simulate(seed: u64, store_kind: &mut dyn StoreKind) -> Found {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let driven = store_kind.runtime().cloned();
    let _inside = driven.as_ref().unwrap_or(runtime.handle()).enter();
    Simulation::new(seed, store_kind).run()
}

struct Simulation<'a> {
    world: Rc<RunWorld>,
    stage: Stage<'a>,
}

impl<'a> Simulation<'a> {
    fn new(seed: u64, store_kind: &'a mut dyn StoreKind) -> Self {
        let rng = Seeded::new(seed);
        let faults = Arc::new(Faults::new(rng.child(), *rng.pick(&[0, 10, 50, 150]), *rng.pick(&[0, 1, 3])));
        let world = Rc::new(RunWorld::new(START, faults, rng.child()));
        let stage = Stage::new(Rc::clone(&world.nodes), store_kind, rng);
        Self { world, stage }
    }

    fn run(mut self) -> Found {
        let (world, stage) = (&self.world, &mut self.stage);
        for _ in 0..stage.rng.between(1, 2) {
            stage.scheduler.spawn(starter(Rc::clone(world), stage.rng.child()));
            stage.scheduler.spawn(worker(Rc::clone(world), stage.rng.child()));
            stage.scheduler.spawn(sweeper(Rc::clone(world), stage.rng.child()));
        }
        stage.scheduler.spawn(worker(Rc::clone(world), stage.rng.child()));
        stage.scheduler.spawn(signaller(Rc::clone(world), stage.rng.child()));
        stage.scheduler.spawn(redriver(Rc::clone(world), stage.rng.child()));
        stage.play(stage.rng.between(200, 1_500));
        stage.close();
        let finished = self.finish();
        let mut violations = check::violations(&self.world, &**self.stage.store());
        if !finished {
            violations.push(format!("stuck: not at its end after {MOST_ROUNDS} rounds"));
        }
        let tally = self.world.tally.borrow().clone();
        (violations, tally)
    }

    /// An honest worker brings everything to its end; whether it got there.
    fn finish(&mut self) -> bool {
        let (world, rng) = (Rc::clone(&self.world), self.stage.rng.child());
        let ended = Rc::new(std::cell::Cell::new(false));
        let answer = Rc::clone(&ended);
        self.stage.scheduler.spawn(async move {
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
        while !self.stage.scheduler.is_empty() {
            self.stage.step();
        }
        ended.get()
    }
}

fn prove_on(seeds: u64, mut kind: impl FnMut() -> Box<dyn StoreKind>) {
    let always = ["starts", "notes", "cancels", "redrives", "reports", "restarts", "nodes lost", "standstills"];
    prove(seeds, ("REDRIVE_SIM_RUN_SEED", "runs::"), &always, |seed| simulate(seed, &mut *kind()));
}

#[test]
fn runs_come_to_their_end_on_the_store_in_memory() {
    prove_on(SEEDS, || Box::new(InMemory::default()));
}

#[test]
fn runs_come_to_their_end_on_the_embedded_store_over_power_cuts() {
    prove_on(SEEDS / 3, || Box::new(OnDisk::default()));
}

#[test]
fn runs_come_to_their_end_on_postgresql_over_restarts() {
    prove_on(SEEDS_IN_DATABASE, || Box::new(InDatabase::default()));
}

#[test]
fn every_flaw_of_runs_is_seen() {
    for flaw in Flaw::ALL {
        let mut store_kind = FlawedRuns::new(flaw);
        let seen = first_found(MOST_BROKEN, |seed| simulate(seed, &mut store_kind));
        let (seed, violation) = seen.unwrap_or_else(|| panic!("nobody noticed {flaw:?}"));
        eprintln!(
            "{flaw:?}: seen after {} simulations: {}",
            seed + 1,
            violation.split(": ").next().unwrap_or_default()
        );
    }
}
