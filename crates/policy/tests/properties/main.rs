//! What holds for every policy, every failure and every draw.
//!
//! The cases are random; a failing one is printed small, and kept beside the file that found it.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod arbitrary;
mod canonical;
mod decisions;
mod delays;
mod documents;
mod readers;
