//! The commands of the engine, each alone and in their order: on the store in memory, with a clock
//! that is moved by hand and randomness from a seed. Names of tests start with the rule of Open Job Spec that
//! they check.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod admission;
mod attempts;
mod cancel;
mod clock;
mod clock_steps;
mod deliver;
mod dialects;
mod discards;
mod due;
mod errors;
mod expiry;
mod harness;
mod jobs;
mod layers;
mod leases;
mod limits;
mod long_poll;
mod rate_limits;
mod record;
mod redrive;
mod release;
mod run_limits;
mod runs;
mod submit;
mod sweep;
mod sweeper;
mod taskharbor;
mod throttle;
