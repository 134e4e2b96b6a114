//! The server as callers meet it: headers, errors, limits, keys, workers, dead letters, and a real
//! socket.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod about;
mod admin;
mod backpressure;
mod batches;
mod connections;
mod cron;
mod dead;
mod discards;
mod envelope;
mod events;
mod faults;
mod faulty;
mod headers;
mod hosts;
mod keys;
mod limits;
mod lists;
mod local;
mod maintenance;
mod metrics;
mod progress;
mod queues;
mod rate_limits;
mod ready;
mod receiver;
mod redrive;
mod repeats;
mod runs_admin;
mod scopes;
#[path = "../../../store/tests/common/scratch.rs"]
mod scratch;
mod socket;
mod stored_keys;
mod streams;
mod traces;
mod typos;
mod unique;
mod values;
mod webhooks;
mod workers;
mod workers_admin;
mod workflows;
mod workflows_redriven;
mod workflows_results;
