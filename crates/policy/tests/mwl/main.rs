//! MWL's Retry provider: every constraint of its parameter schema, its rules, and the rows of the
//! project's semantics for it.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
mod rules;
mod schema;
mod semantics;

use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

const MWL: Dialect = Dialect::Mwl;

fn one(matcher: Value, attempts: u32, backoff: Value) -> Value {
    json!({"policies": [{"match": matcher, "attempts": attempts, "backoff": backoff}]})
}

fn any(attempts: u32, backoff: Value) -> Value {
    one(json!({"codes": ["*"]}), attempts, backoff)
}

fn coded(code: &str) -> Value {
    json!({"code": code})
}
