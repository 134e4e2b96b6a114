//! The retry specification of OJS, requirement by requirement (RET-01 to RET-20), through the real
//! router on a clock that stands still: what no case of the public suite covers.

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
