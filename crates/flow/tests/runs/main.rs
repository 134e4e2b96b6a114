//! Flows as runs, interrupted before and after every single write and resumed from what is stored: they end alike.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../harness/mod.rs"]
mod harness;
mod http;
mod jobs;
mod random;
mod suite;
mod world;
