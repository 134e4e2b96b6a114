//! The whole engine in a simulation from a seed: producers, workers, operators and the sweeper on one
//! thread, over a clock that is moved by hand and a store that fails: the one in memory, the embedded one, or
//! PostgreSQL, whose answers are awaited in place, so that a seed decides everything. Workers crash, stall, come back
//! late, report twice and forge tokens; the clock leaps and steps back; the server dies and comes back.
//! Afterwards the checker verifies from the outside that every promise was kept.
//!
//! `REDRIVE_SIM_RUNS` sets how many seeds are tried, `REDRIVE_SIM_FIRST` the first of them, and
//! `REDRIVE_SIM_SEED` runs a single one and tells everything about it.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod actors;
mod campaign;
mod checker;
#[path = "../../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "the tests of the store use more of it")]
mod cluster;
mod conditions;
mod expectation;
mod faults;
mod flaw;
mod flawed;
mod ledger;
mod nodes;
mod planned_job;
mod plans;
mod postgres;
mod ram;
mod restrictions;
mod run;
mod runs;
mod scheduler;
mod server_policies;
mod stage;
mod store_kind;
mod tally;
mod world;
