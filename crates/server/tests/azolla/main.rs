//! Azolla's protocol over gRPC, by clients and shepherds that are made of the same definition. Sections are those of
//! the digest of the original's behaviour.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod create;
mod ends;
#[path = "../http/faulty.rs"]
mod faulty;
mod keys;
mod policies;
mod streams;
mod wait;
mod world;
