//! Warnings: each code has a policy that draws it, and one beside it that does not.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::panic)]

use redrive_policy::dialect::{Dialect, Warning};
use redrive_policy::lab::lint::lint;
use serde_json::{Value, json};

fn warnings(dialect: Dialect, policy: &Value) -> Vec<Warning> {
    lint(Some(dialect), &dialect.read(policy).unwrap_or_else(|problems| panic!("{policy}: {problems}")))
}

fn find(dialect: Dialect, policy: &Value, code: &str) -> Option<Warning> {
    warnings(dialect, policy).into_iter().find(|warning| warning.code == code)
}

/// (code, dialect, a policy that draws it, the path, a word of the message, one that does not).
fn cases() -> Vec<(&'static str, Dialect, Value, &'static str, &'static str, Value)> {
    use Dialect::{Azolla, Exosphere, Mwl, Ojs, TaskHarbor};
    let mwl = |policies: Value| json!({ "policies": policies });
    vec![
        (
            "jitter-collapses-at-cap",
            Ojs,
            json!({"max_attempts": 12}),
            "/max_interval",
            "50 %",
            json!({"max_attempts": 5}),
        ),
        (
            "jitter-collapses-at-cap",
            TaskHarbor,
            json!({}),
            "/policy/max_delay",
            "50 %",
            json!({"policy": {"max_delay": "1000h", "max_attempts": 9}}),
        ),
        (
            "jitter-collapses-at-cap",
            Exosphere,
            json!({"strategy": "EXPONENTIAL_EQUAL_JITTER", "max_retries": 9, "max_delay": 9000}),
            "/max_delay",
            "100 %",
            json!({"strategy": "EXPONENTIAL_EQUAL_JITTER"}),
        ),
        (
            "jitter-collapses-at-cap",
            Mwl,
            mwl(
                json!([{"match": {"codes": ["*"]}, "attempts": 9, "backoff": {"initial": "PT1S", "max": "PT9S", "jitter": "decorrelated"}}]),
            ),
            "/policies/0/backoff/max",
            "one instant",
            mwl(
                json!([{"match": {"codes": ["*"]}, "attempts": 9, "backoff": {"initial": "PT1S", "rate": 2, "max": "PT9S", "jitter": "full"}}]),
            ),
        ),
        ("no-jitter", Ojs, json!({"jitter": false}), "/jitter", "no jitter", json!({})),
        ("no-jitter", Azolla, json!({"wait": {"strategy": "exponential"}}), "/wait/strategy", "no jitter", json!({})),
        ("no-jitter", Exosphere, json!({}), "/strategy", "no jitter", json!({"strategy": "LINEAR_FULL_JITTER"})),
        (
            "exhausts-quickly",
            Ojs,
            json!({}),
            "/max_attempts",
            "shortest 1.5 s, mean 3 s, longest 4.5 s",
            json!({"max_attempts": 9}),
        ),
        ("exhausts-late", Exosphere, json!({"max_retries": 25}), "/max_retries", "2 y 47 d", json!({})),
        (
            "coefficient-suggests-polynomial",
            Ojs,
            json!({"backoff_coefficient": 3.0}),
            "/backoff_coefficient",
            "exponential",
            json!({"backoff_coefficient": 2.9}),
        ),
        (
            "coefficient-suggests-polynomial",
            Ojs,
            json!({"backoff_coefficient": 4}),
            "/backoff_coefficient",
            "exponential",
            json!({"backoff_coefficient": 4, "backoff_strategy": "exponential"}),
        ),
        (
            "default-attempts-end-first",
            Azolla,
            json!({"stop": {"max_delay": 1800}}),
            "/stop/max_delay",
            "default of 5",
            json!({"stop": {"max_delay": 1800, "max_attempts": null}}),
        ),
        (
            "elapsed-limit-unreachable",
            Azolla,
            json!({"stop": {"max_delay": 1800, "max_attempts": 3}}),
            "/stop/max_delay",
            "30 min",
            json!({"stop": {"max_delay": 2, "max_attempts": 3}}),
        ),
        (
            "attempt-limit-unreachable",
            Azolla,
            json!({"stop": {"max_delay": 60, "max_attempts": 50}, "wait": {"strategy": "fixed", "delay": 10}}),
            "/stop/max_attempts",
            "before retry 6",
            json!({"stop": {"max_delay": 60, "max_attempts": 5}, "wait": {"strategy": "fixed", "delay": 10}}),
        ),
        (
            "no-effect",
            Azolla,
            json!({"wait": {"delay": 3}}),
            "/wait/delay",
            "does not read delay",
            json!({"wait": {"delay": 3, "strategy": "fixed"}}),
        ),
        (
            "no-effect",
            Azolla,
            json!({"wait": {"strategy": "fixed", "max_delay": 3}}),
            "/wait/max_delay",
            "does not read",
            json!({"wait": {"max_delay": 3}}),
        ),
        (
            "no-effect",
            Exosphere,
            json!({"strategy": "FIXED", "exponent": 2}),
            "/exponent",
            "does not read",
            json!({"exponent": 2}),
        ),
        (
            "no-effect",
            Ojs,
            json!({"backoff_strategy": "linear", "backoff_coefficient": 2}),
            "/backoff_coefficient",
            "do not read",
            json!({"backoff_coefficient": 2}),
        ),
        (
            "no-effect",
            Mwl,
            mwl(
                json!([{"match": {"codes": ["*"]}, "attempts": 2, "backoff": {"initial": "PT1S", "rate": 2, "jitter": "decorrelated"}}]),
            ),
            "/policies/0/backoff/rate",
            "does not read",
            mwl(json!([{"match": {"codes": ["*"]}, "attempts": 2, "backoff": {"initial": "PT1S", "rate": 2}}])),
        ),
        (
            "default-include-list",
            Azolla,
            json!({}),
            "/retry/include_errors",
            "ValueError",
            json!({"retry": {"include_errors": ["ValueError"]}}),
        ),
        (
            "never-retries",
            Azolla,
            json!({"retry": {"include_errors": []}}),
            "/retry/include_errors",
            "no error",
            json!({"retry": {"include_errors": ["A"]}}),
        ),
        (
            "shadowed-rule",
            Mwl,
            mwl(
                json!([{"match": {"codes": ["A.*"]}, "attempts": 2}, {"match": {"codes": ["A.B"], "retryable": true}, "attempts": 2}]),
            ),
            "/policies/1/match",
            "policy 0",
            mwl(json!([{"match": {"codes": ["A.B"]}, "attempts": 2}, {"match": {"codes": ["A.*"]}, "attempts": 2}])),
        ),
        (
            "no-cap-many-attempts",
            Exosphere,
            json!({"max_retries": 25}),
            "/max_delay",
            "1 y 23 d",
            json!({"max_retries": 25, "max_delay": 3_600_000}),
        ),
        (
            "no-cap-many-attempts",
            Mwl,
            mwl(json!([{"match": {"codes": ["*"]}, "attempts": 40, "backoff": {"initial": "PT1S", "rate": 2}}])),
            "/policies/0/backoff/max",
            "39 retries",
            mwl(json!([{"match": {"codes": ["*"]}, "attempts": 40, "backoff": {"initial": "PT1S"}}])),
        ),
        (
            "calendar-duration",
            Ojs,
            json!({"max_interval": "P1M"}),
            "/max_interval",
            "30 d",
            json!({"max_interval": "P30D"}),
        ),
        (
            "calendar-duration",
            Ojs,
            json!({"max_interval": "P1Y"}),
            "/max_interval",
            "1 y",
            json!({"max_interval": "P365D"}),
        ),
        (
            "retries-forever",
            Azolla,
            json!({"stop": {"max_attempts": null}}),
            "/stop/max_attempts",
            "forever",
            json!({"stop": {"max_attempts": null, "max_delay": 60}}),
        ),
        (
            "immediate-retries",
            Mwl,
            mwl(json!([{"match": {"codes": ["*"]}, "attempts": 2}])),
            "/policies/0/backoff/initial",
            "at once",
            mwl(json!([{"match": {"codes": ["*"]}, "attempts": 2, "backoff": {"initial": "PT1S"}}])),
        ),
        (
            "cap-below-first-delay",
            Azolla,
            json!({"wait": {"initial_delay": 10, "max_delay": 5}}),
            "/wait/max_delay",
            "5 s",
            json!({"wait": {"initial_delay": 5, "max_delay": 5}}),
        ),
        (
            "limit-capped",
            TaskHarbor,
            json!({"job": {"max_attempts": 30}}),
            "/job/max_attempts",
            "25",
            json!({"job": {"max_attempts": 20}}),
        ),
    ]
}

#[test]
fn every_warning_has_its_code_its_path_and_what_to_write_instead() {
    for (code, dialect, drawing, path, word, innocent) in cases() {
        let warning = find(dialect, &drawing, code).unwrap_or_else(|| panic!("{code} is not drawn by {drawing}"));
        assert_eq!(warning.path, path, "{code}: {drawing}");
        assert!(warning.message.contains(word), "{code}: \"{}\" lacks \"{word}\"", warning.message);
        assert!(!warning.instead.is_empty(), "{code}");
        assert_eq!(find(dialect, &innocent, code), None, "{code} is drawn by {innocent}");
    }
}

/// Azolla §6a looks as if it ran for 30 minutes.
#[test]
fn azolla_6a_is_warned_of_once() {
    let policy = json!({"version": 1, "stop": {"max_delay": 1800}, "wait": {"strategy": "fixed", "delay": 10},
        "retry": {"include_errors": ["ConnectionError", "TimeoutError", "NetworkError"]}});
    let codes: Vec<_> = warnings(Dialect::Azolla, &policy).iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["default-attempts-end-first", "no-jitter", "exhausts-quickly"]);
}

/// A policy with nothing to say against it draws no warning at all.
#[test]
fn a_sound_policy_draws_no_warning() {
    for (dialect, policy) in [
        (Dialect::Ojs, json!({"max_attempts": 8, "max_interval": "PT15M", "on_exhaustion": "dead_letter"})),
        (Dialect::Azolla, json!({"stop": {"max_attempts": 12}, "retry": {"include_errors": ["TimeoutError"]}})),
        (Dialect::Exosphere, json!({"max_retries": 8, "strategy": "EXPONENTIAL_FULL_JITTER", "max_delay": 3_600_000})),
        (Dialect::TaskHarbor, json!({"policy": {"base_delay": "1s", "max_delay": "1h", "max_attempts": 10}})),
    ] {
        assert_eq!(warnings(dialect, &policy), vec![], "{policy}");
    }
}

#[test]
fn a_billion_attempts_are_linted_without_a_hang() {
    let policy = json!({"max_attempts": 1_000_000_000, "max_interval": "P365000D", "backoff_strategy": "linear"});
    assert!(find(Dialect::Ojs, &policy, "exhausts-late").is_some());
}
