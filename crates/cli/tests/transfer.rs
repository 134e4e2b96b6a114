//! Stores on their way between folders and databases, and jobs on their way out of applications' transactions,
//! through the real binary.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod harness;

#[path = "../../store/tests/postgres/cluster.rs"]
#[allow(dead_code, reason = "these tests do not stop their database")]
mod cluster;

#[path = "transfer/app.rs"]
mod app;
#[path = "transfer/copy.rs"]
mod copy;
#[path = "transfer/dump.rs"]
mod dump;
#[path = "transfer/inbox.rs"]
mod inbox;
#[path = "transfer/upgrade.rs"]
mod upgrade;
