//! The store on a real PostgreSQL: the suite, and what only a database can do to a store.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "the helpers of tests fail as tests do")]

mod blocks;
#[allow(dead_code, reason = "the tests of the servers use more of it")]
mod cluster;
mod conformance;
mod deadlock;
#[path = "../common/description.rs"]
mod description;
mod ended;
mod faults;
mod frozen;
mod held;
mod inbox;
mod large;
mod limited_nodes;
mod migrations;
mod model;
mod nodes;
mod pooler;
mod privileges;
mod retries;
mod rollbacks;
mod runs;
#[path = "../common/scratch.rs"]
mod scratch;
mod subject;
mod tls;
mod transfer;
mod trigger;
mod unreadable;
mod unreadable_runs;
mod versions;
mod views;
mod work;
