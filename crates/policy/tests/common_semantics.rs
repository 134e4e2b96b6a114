//! The rows of the project's semantics that hold for every dialect, and those on layers.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{assert_refused, policy, set, steps};
use redrive_policy::dialect::Dialect;
use redrive_policy::lab::replay::replay;
use redrive_policy::{
    AttemptLimit, Draw, Failure, History, Mismatch, Moment, Origin, Outcome, Reason, Seeded, Span, decide,
};
use serde_json::{Value, json};

/// For each dialect, the steepest policies that it can say, and the delay at which they end.
fn steepest() -> Vec<(Dialect, Value, Span)> {
    let cap = Span::from_secs(300);
    let mwl =
        |backoff: Value| json!({"policies": [{"match": {"codes": ["*"]}, "attempts": u32::MAX, "backoff": backoff}]});
    vec![
        (Dialect::Ojs, json!({"max_attempts": u32::MAX, "backoff_coefficient": 1e308, "jitter": false}), cap),
        (
            Dialect::Ojs,
            json!({
                "max_attempts": u32::MAX, "backoff_coefficient": 1e308, "jitter": false,
                "backoff_strategy": "polynomial", "max_interval": "P9999999999Y"
            }),
            Span::MAX,
        ),
        (
            Dialect::Azolla,
            json!({
                "stop": {"max_attempts": null}, "retry": {"include_errors": ["error"]},
                "wait": {"strategy": "exponential", "initial_delay": 1e308, "multiplier": 1e308, "max_delay": 1e308}
            }),
            Span::MAX,
        ),
        (
            Dialect::TaskHarbor,
            json!({"policy": {"multiplier": 1e308, "jitter": 0, "max_attempts": u32::MAX, "max_delay": "300s"}}),
            cap,
        ),
        (
            Dialect::Exosphere,
            json!({"max_retries": u32::MAX - 1, "backoff_factor": u64::MAX, "exponent": u64::MAX}),
            Span::MAX,
        ),
        (Dialect::Mwl, mwl(json!({"initial": "PT1S", "rate": 1e308, "max": "PT5M"})), cap),
        (Dialect::Mwl, mwl(json!({"initial": "P99999999999Y", "rate": 1e308})), Span::MAX),
    ]
}

#[test]
fn semantics_all_huge_attempt_numbers_saturate_at_the_cap_or_the_longest_span() {
    for (dialect, document, end) in steepest() {
        let policy = policy(dialect, &document);
        for failures in [36, 1_100, 1_000_000, u32::MAX - 2] {
            let history = History::with_failures(Moment::ORIGIN, failures);
            let verdict = decide(&policy, &history, &Failure::default(), Moment::ORIGIN, Draw::LOWEST);
            assert_eq!(verdict.delay(), Some(end), "{dialect} after {failures} failures: {document}");
        }
    }
}

#[test]
fn semantics_all_the_same_seed_gives_the_same_delays() {
    let failure = json!({"type": "external.timeout"});
    let failures: Vec<_> = (0..20).map(|_| Dialect::Ojs.read_failure("", &failure).expect("a failure")).collect();
    let policy = policy(Dialect::Ojs, &json!({"max_attempts": 99}));
    let with_seed = |seed| replay(&policy, &failures, &mut Seeded::new(seed));
    assert_eq!(with_seed(42), with_seed(42));
    assert_ne!(with_seed(42), with_seed(43));
}

#[test]
fn semantics_all_a_rejection_lists_every_problem() {
    for (dialect, document, paths) in [
        (Dialect::Ojs, json!({"jitter": 1, "x": 1, "max_attempts": -1}), vec!["/x", "/max_attempts", "/jitter"]),
        (
            Dialect::Azolla,
            json!({"version": 9, "stop": {"max_attempts": 0, "x": 1}, "wait": {"delay": -1}, "retry": 3}),
            vec!["/version", "/stop/x", "/stop/max_attempts", "/wait/delay", "/retry"],
        ),
        (
            Dialect::TaskHarbor,
            json!({"policy": {"jitter": 2, "base_delay": 1}, "job": {"x": 1}}),
            vec!["/policy/base_delay", "/policy/jitter", "/job/x"],
        ),
        (Dialect::Exosphere, json!({"exponent": 0, "max_delay": "1"}), vec!["/exponent", "/max_delay"]),
        (
            Dialect::Mwl,
            json!({"policies": [{"match": {}, "attempts": 0}], "x": 1}),
            vec!["/x", "/policies/0/match", "/policies/0/attempts"],
        ),
    ] {
        assert_refused(dialect, &document, &paths);
    }
}

#[test]
fn semantics_all_a_message_names_what_was_found_and_what_is_allowed() {
    let problems = Dialect::Exosphere.read(&json!({"strategy": "QUADRATIC"})).expect_err("unknown").0;
    assert!(problems[0].message.contains("QUADRATIC"), "{}", problems[0].message);
    assert!(problems[0].message.contains("EXPONENTIAL_FULL_JITTER"), "{}", problems[0].message);
}

#[test]
fn semantics_all_true_is_not_1_and_a_string_is_not_a_number_and_null_is_not_absent() {
    let mwl = json!({"policies": [{"match": {"codes": ["*"]}, "attempts": 2, "backoff": {"initial": "PT1S"}}]});
    for (dialect, base, field) in [
        (Dialect::Ojs, json!({}), "/max_attempts"),
        (Dialect::Ojs, json!({}), "/backoff_coefficient"),
        (Dialect::Azolla, json!({}), "/wait/multiplier"),
        (Dialect::Azolla, json!({}), "/wait/initial_delay"),
        (Dialect::TaskHarbor, json!({}), "/policy/multiplier"),
        (Dialect::TaskHarbor, json!({}), "/policy/max_attempts"),
        (Dialect::Exosphere, json!({}), "/max_retries"),
        (Dialect::Exosphere, json!({}), "/backoff_factor"),
        (Dialect::Mwl, mwl.clone(), "/policies/0/attempts"),
        (Dialect::Mwl, mwl.clone(), "/policies/0/backoff/rate"),
    ] {
        common::reading(dialect, &set(&base, field, json!(3)));
        for wrong in [json!(true), json!("3"), json!(null)] {
            assert_refused(dialect, &set(&base, field, wrong), &[field]);
        }
    }
}

#[test]
fn semantics_all_a_retry_explains_raw_capped_and_jittered() {
    let document = json!({"max_attempts": 9, "max_interval": "PT3S"});
    let steps = steps(Dialect::Ojs, &document, &vec![json!({"type": "a.b"}); 3], 0.25);
    let computed = |step: usize| match steps[step].verdict.outcome {
        Outcome::Retry { origin: Origin::Backoff(computed), .. } => {
            (computed.retry, computed.raw.ms(), computed.capped_at.map(Span::ms), computed.delay.ms())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(computed(0), (1, 1000.0, None, 750.0));
    assert_eq!(computed(2), (3, 4000.0, Some(3000.0), 2250.0));
    assert!(steps.iter().all(|step| step.verdict.rule == Some(0)), "which rule matched");
}

#[test]
fn semantics_all_a_stop_explains_which_limit_or_list_stopped_it() {
    let document = json!({"max_attempts": 2, "non_retryable_errors": ["a", "b.*"]});
    let reason = |types: &[&str]| {
        let failures: Vec<Value> = types.iter().map(|type_name| json!({"type": type_name})).collect();
        match steps(Dialect::Ojs, &document, &failures, 0.5).last().expect("a step").verdict.outcome {
            Outcome::Stop { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason(&["x", "x"]), Reason::MaxAttempts { limit: 2 });
    assert_eq!(reason(&["x", "b.c"]), Reason::NonRetryable(Mismatch::Excluded { entry: 1 }));
}

#[test]
fn semantics_layers_limits_only_ever_tighten() {
    use AttemptLimit::{AtMost, Disabled, Unlimited};
    for (own, operators, effective) in [
        (AtMost(5), AtMost(3), AtMost(3)),
        (AtMost(3), AtMost(5), AtMost(3)),
        (AtMost(3), Unlimited, AtMost(3)),
        (Unlimited, AtMost(3), AtMost(3)),
        (Unlimited, Unlimited, Unlimited),
        (Disabled, AtMost(3), Disabled),
        (Unlimited, Disabled, Disabled),
    ] {
        assert_eq!(own.tightened(operators), effective, "{own:?} under {operators:?}");
        assert_eq!(operators.tightened(own), effective, "the order does not matter");
    }
    let limited = policy(Dialect::Azolla, &json!({"stop": {"max_delay": 60}}));
    for (operators_s, effective_s) in [(30, 30), (90, 60)] {
        let tightened = limited.clone().tightened(Unlimited, Some(Span::from_secs(operators_s)));
        assert_eq!(tightened.max_elapsed, Some(Span::from_secs(effective_s)));
        assert_eq!(tightened.attempts, AtMost(5), "what the operator leaves open stays");
    }
    assert_eq!(limited.clone().tightened(Unlimited, None), limited);
}
