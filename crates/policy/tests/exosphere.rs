//! Exosphere, parameter by parameter and example by example, and the rows of the project's
//! semantics for it.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{
    again, assert_field_accepts, assert_field_refuses, assert_refused, assert_same, assert_story, delays, largest_draw,
    set, steps, story, warnings,
};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Draw, History, Moment, Span, decide};
use serde_json::{Value, json};

const EXOSPHERE: Dialect = Dialect::Exosphere;

const STRATEGIES: [&str; 9] = [
    "EXPONENTIAL",
    "EXPONENTIAL_FULL_JITTER",
    "EXPONENTIAL_EQUAL_JITTER",
    "LINEAR",
    "LINEAR_FULL_JITTER",
    "LINEAR_EQUAL_JITTER",
    "FIXED",
    "FIXED_FULL_JITTER",
    "FIXED_EQUAL_JITTER",
];

fn story_of(document: &Value, failures: usize) -> Vec<String> {
    story(EXOSPHERE, document, &again(json!({}), failures))
}

/// The three values that the document prints for a strategy, at its defaults.
fn assert_strategy(name: &str, three: [&str; 3]) {
    let document = json!({"strategy": name});
    assert_eq!(story_of(&document, 9), [three.as_slice(), &["max_attempts fail"]].concat(), "{name}");
}

#[test]
fn exosphere_configuration_example() {
    let document = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL", "backoff_factor": 2000, "exponent": 2, "max_delay": 3_600_000
    });
    assert_eq!(story_of(&document, 9), ["2000", "4000", "8000", "max_attempts fail"]);
}

#[test]
fn exosphere_max_retries() {
    assert_same(EXOSPHERE, &json!({}), &json!({"max_retries": 3}));
    assert_field_refuses(EXOSPHERE, "/max_retries", &[json!(-1), json!(1.5), json!("3"), json!(null), json!(true)]);
    assert_field_accepts(EXOSPHERE, "/max_retries", &[json!(0), json!(3.0), json!(1_000_000)]);
    for max_retries in [0, 1, 3, 10] {
        let story = story_of(&json!({"max_retries": max_retries, "strategy": "FIXED"}), 50);
        assert_eq!(story.len(), max_retries + 1, "the retries, and the run before them");
    }
}

#[test]
fn exosphere_strategy() {
    assert_same(EXOSPHERE, &json!({}), &json!({"strategy": "EXPONENTIAL"}));
    assert_field_accepts(EXOSPHERE, "/strategy", &STRATEGIES.map(|name| json!(name)));
    let refused = [json!("exponential"), json!("EXPONENTIAL_JITTER"), json!(""), json!(null), json!(1)];
    assert_field_refuses(EXOSPHERE, "/strategy", &refused);
}

#[test]
fn exosphere_backoff_factor() {
    assert_same(EXOSPHERE, &json!({}), &json!({"backoff_factor": 2000}));
    let refused = [json!(0), json!(-1), json!(1.5), json!("2000"), json!(null), json!(true)];
    assert_field_refuses(EXOSPHERE, "/backoff_factor", &refused);
    assert_field_accepts(EXOSPHERE, "/backoff_factor", &[json!(1), json!(2000.0), json!(u64::MAX)]);
}

#[test]
fn exosphere_exponent() {
    assert_same(EXOSPHERE, &json!({}), &json!({"exponent": 2}));
    let refused = [json!(0), json!(-1), json!(1.5), json!("2"), json!(null), json!(true)];
    assert_field_refuses(EXOSPHERE, "/exponent", &refused);
    assert_field_accepts(EXOSPHERE, "/exponent", &[json!(1), json!(2.0), json!(u64::from(u32::MAX) + 1), json!(1e15)]);
}

#[test]
fn exosphere_max_delay() {
    assert_same(EXOSPHERE, &json!({}), &json!({"max_delay": null}));
    let refused = [json!(0), json!(-1), json!(1.5), json!("1"), json!(true), json!([])];
    assert_field_refuses(EXOSPHERE, "/max_delay", &refused);
    assert_field_accepts(EXOSPHERE, "/max_delay", &[json!(1), json!(3_600_000), json!(null)]);
    assert_eq!(story_of(&json!({"max_delay": 3_600_000, "max_retries": 20}), 20)[11..], ["3600000"; 9]);
}

#[test]
fn exosphere_strategy_exponential() {
    assert_strategy("EXPONENTIAL", ["2000", "4000", "8000"]);
}

#[test]
fn exosphere_strategy_exponential_full_jitter() {
    assert_strategy("EXPONENTIAL_FULL_JITTER", ["0..2000", "0..4000", "0..8000"]);
}

#[test]
fn exosphere_strategy_exponential_equal_jitter() {
    assert_strategy("EXPONENTIAL_EQUAL_JITTER", ["1000..2000", "2000..4000", "4000..8000"]);
}

#[test]
fn exosphere_strategy_linear() {
    assert_strategy("LINEAR", ["2000", "4000", "6000"]);
}

#[test]
fn exosphere_strategy_linear_full_jitter() {
    assert_strategy("LINEAR_FULL_JITTER", ["0..2000", "0..4000", "0..6000"]);
}

#[test]
fn exosphere_strategy_linear_equal_jitter() {
    assert_strategy("LINEAR_EQUAL_JITTER", ["1000..2000", "2000..4000", "3000..6000"]);
}

#[test]
fn exosphere_strategy_fixed() {
    assert_strategy("FIXED", ["2000", "2000", "2000"]);
}

#[test]
fn exosphere_strategy_fixed_full_jitter() {
    assert_strategy("FIXED_FULL_JITTER", ["0..2000", "0..2000", "0..2000"]);
}

#[test]
fn exosphere_strategy_fixed_equal_jitter() {
    assert_strategy("FIXED_EQUAL_JITTER", ["1000..2000", "1000..2000", "1000..2000"]);
}

#[test]
fn exosphere_delay_capping_example() {
    let document = json!({"backoff_factor": 2000, "exponent": 2, "max_delay": 10000, "max_retries": 4});
    assert_eq!(story_of(&document, 9), ["2000", "4000", "8000", "10000", "max_attempts fail"]);
}

#[test]
fn exosphere_delay_capping_null_caps_nothing() {
    let document = json!({"max_delay": null, "max_retries": 25});
    assert_eq!(story_of(&document, 25)[24], "33554432000", "retry 25 at the defaults: 388 days");
}

#[test]
fn exosphere_delay_capping_comes_after_all_strategy_calculations() {
    for (name, middle_ms) in [("FIXED_FULL_JITTER", 1000.0), ("FIXED_EQUAL_JITTER", 1400.0), ("FIXED", 1400.0)] {
        let document = json!({"strategy": name, "max_delay": 1400});
        assert_eq!(delays(EXOSPHERE, &document, json!({}), 1, 0.5), [middle_ms], "{name}");
        assert_eq!(delays(EXOSPHERE, &document, json!({}), 1, largest_draw()), [1400.0], "{name}");
    }
}

#[test]
fn exosphere_usage_basic_exponential() {
    let document = json!({"max_retries": 3, "strategy": "EXPONENTIAL", "backoff_factor": 1000, "exponent": 2});
    assert_eq!(story_of(&document, 9), ["1000", "2000", "4000", "max_attempts fail"]);
}

#[test]
fn exosphere_usage_aggressive_with_jitter() {
    let document =
        json!({"max_retries": 5, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 500, "exponent": 3});
    let expected = ["0..500", "0..1500", "0..4500", "0..13500", "0..40500", "max_attempts fail"];
    assert_eq!(story_of(&document, 9), expected);
}

#[test]
fn exosphere_usage_conservative_linear() {
    let document = json!({"max_retries": 2, "strategy": "LINEAR", "backoff_factor": 5000});
    assert_eq!(story_of(&document, 9), ["5000", "10000", "max_attempts fail"]);
}

#[test]
fn exosphere_usage_fixed_for_rate_limiting() {
    let document = json!({"max_retries": 10, "strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 1000});
    assert_eq!(story_of(&document, 20), [["500..1000"; 10].as_slice(), &["max_attempts fail"]].concat());
}

#[test]
fn exosphere_usage_exponential_with_capping() {
    let document = json!({
        "max_retries": 5, "strategy": "EXPONENTIAL", "backoff_factor": 2000, "exponent": 2, "max_delay": 30000
    });
    assert_eq!(story_of(&document, 9), ["2000", "4000", "8000", "16000", "30000", "max_attempts fail"]);
}

#[test]
fn exosphere_usage_conservative_with_maximum_delay() {
    let document = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 1000, "exponent": 3,
        "max_delay": 60000
    });
    assert_eq!(story_of(&document, 9), ["0..1000", "0..3000", "0..9000", "max_attempts fail"]);
}

#[test]
fn exosphere_when_retries_are_triggered_while_the_count_is_below_max_retries() {
    let policy = common::policy(EXOSPHERE, &json!({"max_retries": 3}));
    for (retry_count, retried) in [(0, true), (2, true), (3, false), (4, false)] {
        let history = History::with_failures(Moment::ORIGIN, retry_count);
        let verdict = decide(&policy, &history, &redrive_policy::Failure::default(), Moment::ORIGIN, Draw::LOWEST);
        assert_eq!(verdict.delay().is_some(), retried, "retry_count {retry_count}");
    }
}

#[test]
fn exosphere_error_handling_an_invalid_policy_is_refused_as_a_whole() {
    let document = json!({"max_retries": -1, "strategy": "NEVER", "backoff_factor": 0, "exponent": 0, "max_delay": 0});
    let paths = ["/max_retries", "/strategy", "/backoff_factor", "/exponent", "/max_delay"];
    assert_refused(EXOSPHERE, &document, &paths);
}

#[test]
fn exosphere_python_model_based_configuration() {
    let document = json!({
        "max_retries": 5, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 1000, "exponent": 2,
        "max_delay": 30000
    });
    let expected = ["0..1000", "0..2000", "0..4000", "0..8000", "0..16000", "max_attempts fail"];
    assert_eq!(story_of(&document, 9), expected);
}

#[test]
fn exosphere_python_high_concurrency_scenario() {
    let document = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 1000, "exponent": 2,
        "max_delay": 30000
    });
    assert_eq!(story_of(&document, 9), ["0..1000", "0..2000", "0..4000", "max_attempts fail"]);
}

#[test]
fn exosphere_python_predictable_timing() {
    let document = json!({"max_retries": 5, "strategy": "LINEAR", "backoff_factor": 2000, "exponent": 1});
    assert_eq!(story_of(&document, 9), ["2000", "4000", "6000", "8000", "10000", "max_attempts fail"]);
    assert_eq!(warnings(EXOSPHERE, &document), [("no-effect", "/exponent".to_owned())], "not used for LINEAR");
}

#[test]
fn exosphere_python_rate_limiting() {
    let document = json!({"max_retries": 10, "strategy": "FIXED", "backoff_factor": 5000, "max_delay": 5000});
    assert_eq!(story_of(&document, 20), [["5000"; 10].as_slice(), &["max_attempts fail"]].concat());
}

#[test]
fn exosphere_signals_prune_stops_retries_immediately() {
    assert_story(EXOSPHERE, &json!({}), &[json!({}), json!({"signal": "prune"})], &["2000", "pruned discard"]);
    assert_story(EXOSPHERE, &json!({"max_retries": 0}), &[json!({"signal": "prune"})], &["pruned discard"]);
}

#[test]
fn exosphere_signals_requeue_carries_the_retry_count_over() {
    let requeue = |delay_ms: u32| json!({"signal": "requeue_after", "delay_ms": delay_ms});
    let failures = [requeue(70), json!({}), requeue(90), requeue(5), json!({}), requeue(1), json!({})];
    let expected = ["70", "2000", "90", "5", "4000", "1", "max_attempts fail"];
    assert_story(EXOSPHERE, &json!({"max_retries": 2}), &failures, &expected);
    assert_story(EXOSPHERE, &json!({"max_retries": 0}), &again(requeue(9), 100), &["9"; 100]);
}

#[test]
fn semantics_exosphere_delays_are_whole_milliseconds() {
    for name in STRATEGIES {
        let document = json!({"strategy": name, "backoff_factor": 333, "exponent": 3, "max_delay": 2001});
        for draw in [0.0, 0.1, 0.123_456, 0.5, 0.999, largest_draw()] {
            let delays = delays(EXOSPHERE, &document, json!({}), 3, draw);
            assert!(delays.iter().all(|ms| ms.fract() == 0.0), "{name}, draw {draw}: {delays:?}");
        }
    }
    // Cut down, not rounded: half of 333 is 166.5, and 332.99… is 332.
    let equal = json!({"strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 333});
    assert_eq!(delays(EXOSPHERE, &equal, json!({}), 1, 0.0), [166.0]);
    assert_eq!(delays(EXOSPHERE, &equal, json!({}), 1, largest_draw()), [332.0]);
}

#[test]
fn semantics_exosphere_the_cap_sits_after_the_jitter() {
    let document = json!({"strategy": "FIXED_FULL_JITTER", "backoff_factor": 2000, "max_delay": 500});
    for (draw, ms) in [(0.0, 0.0), (0.125, 250.0), (0.25, 500.0), (0.5, 500.0), (largest_draw(), 500.0)] {
        assert_eq!(delays(EXOSPHERE, &document, json!({}), 1, draw), [ms], "draw {draw}");
    }
}

#[test]
fn semantics_exosphere_max_retries_are_retries_not_attempts() {
    assert_eq!(story_of(&json!({"max_retries": 0}), 5), ["max_attempts fail"]);
    assert_eq!(story_of(&json!({"max_retries": 1}), 5), ["2000", "max_attempts fail"]);
}

#[test]
fn semantics_exosphere_unknown_fields_are_refused() {
    for key in ["max_retry", "jitter", "_cap", "retry_policy"] {
        assert_refused(EXOSPHERE, &set(&json!({}), &format!("/{key}"), json!(1)), &[&format!("/{key}")]);
    }
    for document in [json!(null), json!([]), json!("EXPONENTIAL")] {
        assert_refused(EXOSPHERE, &document, &[""]);
    }
}

#[test]
fn semantics_exosphere_requeue_is_not_a_failure() {
    let failures = [json!({"signal": "requeue_after", "delay_ms": 5}), json!({})];
    let steps = steps(EXOSPHERE, &json!({}), &failures, 0.5);
    assert!(!steps[0].verdict.counted());
    assert_eq!((steps[0].verdict.attempt, steps[1].verdict.attempt), (1, 1), "the run is not counted");
}

#[test]
fn semantics_exosphere_prune_is_not_a_failure() {
    let steps = steps(EXOSPHERE, &json!({}), &[json!({"signal": "prune"})], 0.5);
    let mut history = History::new(Moment::ORIGIN);
    history.record(&steps[0].verdict);
    assert_eq!(history.failures(), 0);
}

#[test]
fn semantics_exosphere_the_run_sees_the_error_and_a_pruned_state_is_discarded() {
    assert_story(EXOSPHERE, &json!({"max_retries": 0}), &[json!({})], &["max_attempts fail"]);
    assert_story(EXOSPHERE, &json!({}), &[json!({"signal": "prune"})], &["pruned discard"]);
}

#[test]
fn semantics_exosphere_without_a_cap_far_retries_saturate() {
    let policy = common::policy(EXOSPHERE, &json!({"max_retries": 100_000, "exponent": 7}));
    let history = History::with_failures(Moment::ORIGIN, 99_999);
    let verdict = decide(&policy, &history, &redrive_policy::Failure::default(), Moment::ORIGIN, Draw::LOWEST);
    assert_eq!(verdict.delay(), Some(Span::MAX));
}
