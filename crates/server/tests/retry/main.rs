//! The retry specification of OJS, requirement by requirement (RET-01 to RET-20), through the real
//! router with a manual clock: everything that the public suite does not cover.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod backoff;
mod bound;
mod durations;
mod errors;
mod history;
mod leases;
mod policies;
mod taskharbor;
