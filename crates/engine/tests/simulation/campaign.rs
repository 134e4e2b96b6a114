//! Many simulations, the seeds that failed once, and the flaws that must be seen.

use super::flaw::Flaw;
use super::flawed::FlawedKind;
use super::ledger::Violation;
use super::postgres::InDatabase;
use super::run::{Outcome, simulate};
use super::store_kind::{InMemory, OnDisk, StoreKind};
use super::tally::Tally;
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many seeds are tried where nobody says: twenty to thirty seconds on two cores.
const RUNS: u64 = 12_000;
/// How many simulations on a store with a flaw may pass before the checker sees it.
const MOST_BROKEN: u64 = 400;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is \"{text}\"; allowed is a whole number")))
}

/// The list of seeds that failed once, one in each line; `#` begins a remark.
fn kept_path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/simulation/seeds.txt")
}

fn kept_seeds() -> Vec<u64> {
    let list = std::fs::read_to_string(kept_path()).unwrap_or_default();
    let seeds = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    seeds.map(|seed| seed.parse().unwrap_or_else(|_| panic!("\"{seed}\" in the list of seeds is no number"))).collect()
}

/// Puts a seed on the list of those that are tried first.
fn keep(seed: u64) {
    if !kept_seeds().contains(&seed) {
        let list = std::fs::read_to_string(kept_path()).unwrap_or_default();
        std::fs::write(kept_path(), format!("{list}{seed}\n")).expect("the list of seeds can be written");
    }
}

/// What all simulations of a campaign did.
#[derive(Default)]
struct Sum {
    runs: u64,
    steps: u64,
    events: u64,
    tally: Tally,
    failed: Vec<String>,
}

impl Sum {
    fn add(&mut self, seed: u64, outcome: std::thread::Result<Outcome>) {
        self.runs += 1;
        let message = match &outcome {
            Ok(outcome) => {
                self.steps += outcome.steps;
                self.events += outcome.events;
                self.tally.merge(&outcome.tally);
                (!outcome.violations.is_empty()).then(|| described(outcome))
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                Some(format!("  panicked: {}\n", text.unwrap_or("without a word")))
            }
        };
        if let Some(message) = message {
            let again = format!("REDRIVE_SIM_SEED={seed} cargo test -p redrive-engine --test simulation");
            self.failed.push(format!("seed {seed}, to be had again with {again}\n{message}"));
            keep(seed);
        }
    }
}

/// What went wrong, for people.
fn described(outcome: &Outcome) -> String {
    let mut text = String::new();
    for violation in outcome.violations.iter().take(5) {
        let _ = writeln!(text, "  [{}] job {:?}: {}", violation.check, violation.account, violation.message);
    }
    for story in &outcome.stories {
        let _ = writeln!(text, "{story}");
    }
    text
}

/// One simulation; a panic in it is an outcome too, so that its seed is known.
fn attempt(seed: u64, run: impl Fn(u64) -> Outcome) -> std::thread::Result<Outcome> {
    catch_unwind(AssertUnwindSafe(|| run(seed)))
}

/// Tries seeds on all cores, each simulation on one thread.
fn campaign(first: u64, runs: u64, run: impl Fn(u64) -> Outcome + Sync) -> Sum {
    let (next, sum) = (AtomicU64::new(first), Mutex::new(Sum::default()));
    let (began, reported) = (Instant::now(), Mutex::new(Instant::now()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed - first >= runs {
                        return;
                    }
                    let outcome = attempt(seed, &run);
                    let mut sum = locked(&sum);
                    sum.add(seed, outcome);
                    let mut reported = locked(&reported);
                    if reported.elapsed() > Duration::from_secs(5) {
                        *reported = Instant::now();
                        progress(&sum, runs, began);
                    }
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    progress(&sum, runs, began);
    sum
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn progress(sum: &Sum, runs: u64, began: Instant) {
    let (steps, events, failed, took) = (sum.steps, sum.events, sum.failed.len(), began.elapsed().as_secs());
    eprintln!("{} of {runs} simulations, {steps} steps, {events} events, {failed} failed, {took} s", sum.runs);
}

/// How many seeds are tried on a store.
struct Share {
    /// Of the seeds that failed once, so many of the latest.
    kept: usize,
    /// Of the others, one in so many.
    one_in: u64,
}

/// First the seeds that failed once, then a share of the others; or the one that was asked for.
fn prove_on(share: &Share, run: impl Fn(u64) -> Outcome + Sync) {
    let mut again = Sum::default();
    let single = setting("REDRIVE_SIM_SEED");
    let seeds = single.map_or_else(kept_seeds, |seed| vec![seed]);
    for seed in seeds.into_iter().rev().take(share.kept) {
        again.add(seed, attempt(seed, &run));
    }
    assert!(again.failed.is_empty(), "failed before, and fails again: {}", again.failed.concat());
    if single.is_some() {
        return eprintln!("{:#?}", again.tally.0);
    }
    let runs = setting("REDRIVE_SIM_RUNS").unwrap_or(RUNS) / share.one_in;
    let sum = campaign(setting("REDRIVE_SIM_FIRST").unwrap_or(0), runs, run);
    eprintln!("{:#?}", sum.tally.0);
    let failed = sum.failed.len();
    assert!(failed == 0, "{failed} of {} simulations failed; the first: {}", sum.runs, sum.failed[0]);
    // A simulation in which something never happens proves nothing about it.
    let never: Vec<_> = sum.tally.0.iter().filter(|(_, count)| **count == 0).collect();
    assert!(runs < 1_000 || never.is_empty(), "in all simulations there were no {never:?}");
}

#[test]
fn every_promise_is_kept_on_the_store_in_memory() {
    prove_on(&Share { kept: usize::MAX, one_in: 1 }, |seed| simulate(seed, &mut InMemory::default()));
}

#[test]
fn every_promise_is_kept_on_the_embedded_store_over_power_cuts() {
    prove_on(&Share { kept: usize::MAX, one_in: 4 }, |seed| simulate(seed, &mut OnDisk::default()));
}

#[test]
fn every_promise_is_kept_on_postgresql_over_restarts_and_the_outcome_is_that_of_the_model() {
    // About a fifth of a second each: with round trips to a database, fewer of them.
    prove_on(&Share { kept: 4, one_in: 200 }, |seed| {
        let mut outcome = simulate(seed, &mut InDatabase::default());
        if let Some(message) = difference(&simulate(seed, &mut InMemory::default()), &outcome) {
            outcome.violations.push(Violation { check: "model", message, account: None });
        }
        outcome
    });
}

/// What is different between two simulations of the same seed.
fn difference(first: &Outcome, other: &Outcome) -> Option<String> {
    let numbers = |outcome: &Outcome| (outcome.steps, outcome.events, outcome.fingerprint);
    if numbers(first) != numbers(other) {
        return Some(format!("steps, events and fingerprint: {:?} and {:?}", numbers(first), numbers(other)));
    }
    let counts = |outcome: &Outcome| outcome.tally.0.clone();
    (counts(first) != counts(other)).then(|| format!("{:?} and {:?}", counts(first), counts(other)))
}

#[test]
fn the_same_seed_gives_the_same_simulation_on_every_store() {
    for seed in 0..100 {
        let first = simulate(seed, &mut InMemory::default());
        let others: [(&str, &mut dyn StoreKind); 2] =
            [("in memory again", &mut InMemory::default()), ("on disk", &mut OnDisk::default())];
        for (name, store_kind) in others {
            let other = simulate(seed, store_kind);
            assert_eq!(difference(&first, &other), None, "seed {seed}, {name}");
        }
    }
}

#[test]
fn every_flaw_is_seen() {
    let mut unseen = Vec::new();
    for flaw in Flaw::ALL {
        let mut store_kind = FlawedKind::new(flaw);
        let seen = (0..MOST_BROKEN).find_map(|seed| {
            let outcome = simulate(seed, &mut store_kind);
            let seen = |check: &&str| outcome.violations.iter().any(|violation| violation.check == *check);
            flaw.seen_by().iter().copied().find(seen).map(|check| (seed, check))
        });
        match seen {
            Some((seed, check)) => eprintln!("{flaw:?}: seen by \"{check}\" after {} simulations", seed + 1),
            None => unseen.push(flaw),
        }
    }
    assert!(unseen.is_empty(), "{MOST_BROKEN} simulations each, and nobody noticed {unseen:?}");
}
