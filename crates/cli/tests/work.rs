//! `redrive work --exec` through the real binary, against a real server.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

#[path = "work/commands.rs"]
mod commands;
#[path = "work/crash.rs"]
mod crash;
#[path = "work/ends.rs"]
mod ends;
#[path = "work/faults.rs"]
mod faults;
#[path = "work/limits.rs"]
mod limits;
#[path = "work/worker.rs"]
mod worker;
