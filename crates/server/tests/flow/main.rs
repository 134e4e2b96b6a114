//! Flows over HTTP, on the memory store and a clock that stands still until it is moved.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod definitions;
mod history;
mod refusals;
mod runs;
mod world;
