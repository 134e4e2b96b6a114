//! Flows over HTTP, on the memory store and a clock that stands still until it is moved.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod calls;
#[path = "../common/mod.rs"]
mod common;
mod definitions;
mod guide;
mod history;
#[path = "../http/receiver.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "it is shared with the tests of webhooks")]
mod receiver;
mod refusals;
mod runs;
mod world;
