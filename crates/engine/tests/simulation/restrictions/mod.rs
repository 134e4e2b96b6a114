//! Unique jobs and limits in a simulation from a seed, on two nodes over one store that fails. Nodes are lost, the
//! server dies, the clock leaps and steps back. An observer at the store checks every single step: no job is stored
//! or redriven beside one that it must not stand beside, no limit is exceeded; and in the end no job waits for ever.

mod actors;
mod flaws;
mod limits;
mod unique;
mod watch;

use crate::common::Seeded;
use crate::common::wrapped::in_place;
use crate::faults::Faults;
use crate::nodes::{Nodes, Setup};
use crate::postgres::InDatabase;
use crate::stage::{Found, START, Stage, first_found, prove};
use crate::store_kind::{InMemory, OnDisk, StoreKind};
use actors::{end, operator, producer, request, sweeper, worker};
use flaws::{Flaw, FlawedRestrictions};
use redrive_engine::{ClaimRequest, Ending, Engine, ManualClock};
use redrive_policy::Span;
use redrive_store::{Bounds, Group, OnLimit, OwnLimit, Rate, Setting, Store, StoreError};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use watch::{Watch, Watched};

/// How many seeds are tried, and on PostgreSQL.
const SEEDS: u64 = 1_000;
const SEEDS_IN_DATABASE: u64 = 25;
/// How many rounds there are before a job counts as one that waits for ever.
const MOST_ROUNDS: usize = 3_000;
/// How many simulations on a store with a flaw may pass before it is seen.
const MOST_BROKEN: u64 = 200;

const QUEUES: [&str; 2] = ["calm", "busy"];
/// The keys of limits: by concurrency, by rate, evenly spaced, and both of the first.
const KEYS: [&str; 4] = ["few", "seldom", "even", "both"];
/// The jobs of keys below this one demand all that there is; those of the others differ in states and periods.
const STRICT_KEYS: u8 = 2;

/// The limit that a job with this key brings. Jobs of one key differ in how many, and not in the time.
fn own_limit(key: &str, rng: &Seeded) -> OwnLimit {
    let most = rng.between(1, 3) as u32;
    let concurrency = (key == "few" || key == "both").then_some(most);
    let rate = (key == "seldom" || key == "both").then(|| Rate { limit: most, period: Span::from_secs(8) });
    let throttle = (key == "even").then(|| Rate { limit: 2, period: Span::from_secs(6) });
    OwnLimit { key: key.into(), bounds: Bounds { concurrency, rate, throttle }, on_limit: OnLimit::Wait }
}

/// The limit of the second queue, to which operators add a number of jobs at once.
fn queue_limit() -> Bounds {
    let rate = Some(Rate { limit: 4, period: Span::from_secs(10) });
    Bounds { rate, ..Bounds::default() }
}

fn simulate(seed: u64, store_kind: &mut dyn StoreKind) -> Found {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let driven = store_kind.runtime().cloned();
    let _inside = driven.as_ref().unwrap_or(runtime.handle()).enter();
    let rng = Seeded::new(seed);
    let faults = Arc::new(Faults::new(rng.child(), *rng.pick(&[0, 10, 50, 150]), *rng.pick(&[0, 1, 3])));
    let watch = Watch::default();
    let nodes = Nodes::new(Arc::new(ManualClock::at(START)), faults, setup(&watch), rng.child());
    let stage = Stage::new(Rc::new(nodes), store_kind, rng);
    run(stage, &watch)
}

/// Nodes that know which types are limited from their first request on.
fn setup(watch: &Watch) -> Setup {
    let watch = watch.clone();
    Setup {
        between: Box::new(move |inner| {
            let watched = Watched { inner, watch: watch.clone() };
            if watched.watch.seen().settings.is_empty() {
                let concurrency = Some(2);
                let kind = (Group::Kind("report".into()), Bounds { concurrency, ..Bounds::default() });
                for (group, bounds) in [kind, (Group::Queue(QUEUES[1].into()), queue_limit())] {
                    let setting = Setting { bounds, ..Setting::default() };
                    in_place(Store::set_limit(&watched, group, Some(setting), START)).expect("the store works");
                }
            }
            Arc::new(watched)
        }),
        equip: Box::new(|engine| {
            while in_place(Box::pin(recall(&engine))).is_err() {}
            engine
        }),
    }
}

async fn recall(engine: &Engine) -> Result<(), StoreError> {
    engine.recall_limits().await.map_err(|error| StoreError::Unavailable(error.to_string()))
}

fn run(mut stage: Stage<'_>, watch: &Watch) -> Found {
    for _ in 0..stage.rng.between(1, 2) {
        stage.scheduler.spawn(producer(Rc::clone(&stage.nodes), watch.clone(), stage.rng.child()));
        stage.scheduler.spawn(worker(Rc::clone(&stage.nodes), stage.rng.child()));
        stage.scheduler.spawn(operator(Rc::clone(&stage.nodes), stage.rng.child()));
    }
    stage.scheduler.spawn(worker(Rc::clone(&stage.nodes), stage.rng.child()));
    stage.scheduler.spawn(sweeper(Rc::clone(&stage.nodes), stage.rng.child()));
    stage.play(stage.rng.between(200, 1_500));
    stage.close();
    let finished = finish(&mut stage, watch);
    let mut seen = watch.seen();
    if !finished {
        let waiting: Vec<_> = seen.jobs.values().filter(|job| !job.state.is_terminal()).map(|job| job.id).collect();
        seen.wrong(format!("stuck: {waiting:?} have not ended after {MOST_ROUNDS} rounds"));
    }
    let mut tally = stage.nodes.tally.borrow().clone();
    tally.insert("full", seen.full);
    (std::mem::take(&mut seen.violations), tally)
}

/// Workers that wait for jobs, and are called when there is one, bring everything to its end; whether they got there.
fn finish(stage: &mut Stage<'_>, watch: &Watch) -> bool {
    const NODE: usize = 0;
    for _ in 0..2 {
        let nodes = Rc::clone(&stage.nodes);
        stage.scheduler.spawn(async move {
            loop {
                let request = ClaimRequest { wait: Duration::from_secs(3_600), ..request() };
                let claimed = nodes.ask_node(NODE, |engine| async move { engine.claim(&request).await }).await;
                for job in claimed.and_then(Result::ok).unwrap_or_default() {
                    end(&nodes, Some(NODE), &job, Ending::Done(None)).await;
                }
            }
        });
    }
    let ended = |watch: &Watch| watch.seen().jobs.values().all(|job| job.state.is_terminal());
    for _ in 0..MOST_ROUNDS {
        while stage.scheduler.step() {}
        let nodes = Rc::clone(&stage.nodes);
        stage.scheduler.spawn(async move {
            let _ = nodes.ask_node(NODE, |engine| async move { engine.sweep().await }).await;
        });
        while stage.scheduler.step() {}
        if ended(watch) {
            return true;
        }
        stage.nodes.advance(Span::from_millis(500));
    }
    ended(watch)
}

fn prove_on(seeds: u64, mut kind: impl FnMut() -> Box<dyn StoreKind>) {
    let unique = ["created", "replaced", "ignored", "rejected", "irreplaceable", "redrives", "refused redrives"];
    let others = ["reports", "full", "limits set", "holds", "restarts", "nodes lost", "steps back"];
    let always = [&unique[..], &others[..]].concat();
    prove(seeds, ("REDRIVE_SIM_RESTRICTED_SEED", "restrictions::"), &always, |seed| simulate(seed, &mut *kind()));
}

#[test]
fn restrictions_hold_on_the_store_in_memory() {
    prove_on(SEEDS, || Box::new(InMemory::default()));
}

#[test]
fn restrictions_hold_on_the_embedded_store_over_power_cuts() {
    prove_on(SEEDS / 3, || Box::new(OnDisk::default()));
}

#[test]
fn restrictions_hold_on_postgresql_over_restarts() {
    prove_on(SEEDS_IN_DATABASE, || Box::new(InDatabase::default()));
}

#[test]
fn every_flaw_of_restrictions_is_seen() {
    for flaw in Flaw::ALL {
        let mut store_kind = FlawedRestrictions::new(flaw);
        let seen = first_found(MOST_BROKEN, |seed| simulate(seed, &mut store_kind));
        let (seed, violation) = seen.unwrap_or_else(|| panic!("nobody noticed {flaw:?}"));
        let check = violation.split(": ").next().unwrap_or_default();
        assert!(flaw.seen_by().contains(&check), "{flaw:?} is seen as {violation}");
        eprintln!("{flaw:?}: seen after {} simulations: {check}", seed + 1);
    }
}
