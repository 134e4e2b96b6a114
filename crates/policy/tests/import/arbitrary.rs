//! Any JSON at all is read or refused.

use crate::{bounds_s, check};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};
use redrive_policy::Span;
use redrive_policy::import::Source;
use serde_json::{Value, json};
use std::cell::RefCell;

fn any_scalar() -> impl Strategy<Value = Value> {
    let edges = [-1.0, 0.0, 0.5, 1.0, 600.0, 1e9, 4_294_967_295.0, 1e300];
    let words = ["fixed", "exponential", "Exception", "TemporalTimeout:Heartbeat", "custom", ""];
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        3 => (-2_i64..40).prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => prop::sample::select(edges.to_vec()).prop_map(Value::from),
        2 => prop::sample::select(vec!["0s", "1s", "1m40s", "90s"]).prop_map(Value::from),
        2 => prop::sample::select(words.to_vec()).prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    any_scalar().prop_recursive(3, 24, 5, |inner| {
        let fields = prop::collection::vec((any_key(), inner.clone()), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

const KNOWN: [&[&str]; 6] = [
    &["initialInterval", "initial_interval", "backoffCoefficient", "maximumInterval", "maximumAttempts"],
    &["retry", "retry_for", "retry_queue", "dead", "max_retries", "dead_max_jobs", "queue"],
    &["max_retries", "default_retry_delay", "autoretry_for", "retry_backoff", "retry_backoff_max", "retry_kwargs"],
    &["attempts", "backoff", "removeOnFail", "delay"],
    &["retry", "jid"],
    &["max_attempts", "queue"],
];

/// The fields of objects inside of others.
const INNER: [&str; 8] = ["type", "delay", "jitter", "countdown", "eta", "max_retries", "count", "age"];

fn any_key() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(INNER.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

/// Mostly an object with a few fields that one of the systems knows.
fn any_document() -> impl Strategy<Value = Value> {
    let field = |group: usize| (prop::sample::select(KNOWN[group].to_vec()), prop_oneof![any_scalar(), any_json()]);
    let known = (0..KNOWN.len()).prop_flat_map(move |group| prop::collection::vec(field(group), 1..4));
    let object = known.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
    prop_oneof![6 => object.prop_map(Value::Object), 1 => any_json()]
}

#[test]
fn any_json_is_read_or_refused() {
    let config = ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(20_260),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let accepted = RefCell::new([0_u32; Source::ALL.len()]);
    let outcome = TestRunner::new(config).run(&any_document(), |value| {
        for (index, source) in Source::ALL.into_iter().enumerate() {
            match source.read(&value) {
                Ok(import) => {
                    accepted.borrow_mut()[index] += u32::from(value != json!({}));
                    check(&value, &import);
                    for n in [1, 2, 25, u32::MAX] {
                        let (low, high) = bounds_s(&import.policy, n);
                        prop_assert!(low <= high && high <= Span::MAX.secs(), "{source}: {low} to {high}");
                    }
                }
                Err(problems) => {
                    prop_assert!(!problems.0.is_empty());
                    for problem in problems.0 {
                        let points = value.pointer(&problem.path).is_some() || problem.message.starts_with("missing");
                        prop_assert!(points, "{source}: {}", problem.path);
                    }
                }
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let accepted = accepted.into_inner();
    assert!(accepted.iter().all(|count| *count > 30), "too few documents are valid to mean anything: {accepted:?}");
}
