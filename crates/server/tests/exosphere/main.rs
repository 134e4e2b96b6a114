//! Exosphere's API, on the memory store and a clock that stands still until it is moved.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod document;
mod graphs;
mod operators;
mod refusals;
mod reports;
mod retries;
mod secrets;
mod stuck;
mod triggers;
mod unites;
mod world;
