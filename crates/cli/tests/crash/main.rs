//! The real server under load, killed at random moments, again and again; and the check from the
//! outside, by a client with its own ledger: nothing that was acknowledged is lost, no job runs
//! more often than its policy allows, nothing runs early, every acknowledged failure is in the history,
//! a job has one lease at a time, and what has ended stays ended.
//!
//! Once with one server on its own folder, once with three on one PostgreSQL, which crashes too. The same again with
//! workflows and schedules, each step and each slot of which is one job; with unique jobs and limits; with
//! webhooks, whose every event is delivered or dead; and with a thousand flows, each of which ends with its Result.
//!
//! `CRASH_ROUNDS` and `CRASH_SEED` set how often and in which order; `scripts/crash` runs many more.
//! The seed decides the jobs, the workers and the moments of the kills; where in its work a kill meets
//! the server depends on the machine too.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod check;
#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "these tests stop their database, and do not share it")]
mod cluster;
mod embedded;
mod flows;
#[path = "../harness/mod.rs"]
mod harness;
mod ledger;
mod load;
mod nodes;
mod postgres;
mod restrictions;
mod runs;
mod target;
mod webhooks;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// How many rounds to run; `default` unless the environment says otherwise.
fn rounds(default: u64) -> u64 {
    setting("CRASH_ROUNDS", default)
}

/// The seed of everything random.
fn seed() -> u64 {
    setting("CRASH_SEED", 20_261_115)
}
