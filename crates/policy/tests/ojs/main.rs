//! Open Job Spec, section by section. The names of the tests are the numbers of its sections, the
//! identifiers of its conformance table, and the rows of the project's semantics.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod errors;
mod examples;
mod growth;
mod rules;
mod semantics;
mod validation;

use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

const OJS: Dialect = Dialect::Ojs;

/// An ordinary failure.
fn timeout() -> Value {
    json!({"type": "external.timeout"})
}

/// A job that fails with ordinary failures until it stops, or so many times.
fn story_of(policy: &Value, failures: usize) -> Vec<String> {
    common::story(OJS, policy, &common::again(timeout(), failures))
}

/// The number of runs that ordinary failures lead to.
fn runs(policy: &Value) -> usize {
    let story = story_of(policy, 100);
    assert!(story.last().is_some_and(|last| last.starts_with("max_attempts")), "{policy} never stops");
    story.len()
}

/// The delays before the first retries, with the limit on attempts out of the way.
fn first_delays(policy: &Value, count: usize) -> Vec<f64> {
    let policy = common::set(policy, "/max_attempts", json!(1000));
    common::delays(OJS, &policy, timeout(), count, 0.5)
}
