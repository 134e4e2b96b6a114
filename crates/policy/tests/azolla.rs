//! Azolla, section by section, and the rows of the project's semantics for it.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{
    again, assert_field_accepts, assert_field_refuses, assert_refused, assert_same, assert_story, delays, largest_draw,
    set, story, warnings,
};
use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Moment, Outcome, Reason, Seeded, decide};
use serde_json::{Value, json};

const AZOLLA: Dialect = Dialect::Azolla;

/// The one error that the defaults retry.
fn value_error() -> Value {
    json!({"type": "ValueError"})
}

fn at(elapsed_ms: f64) -> Value {
    json!({"type": "ValueError", "elapsed_ms": elapsed_ms})
}

fn section_5_defaults() -> Value {
    json!({
        "version": 1,
        "stop": {"max_attempts": 5},
        "wait": {"strategy": "exponential_jitter", "initial_delay": 1, "multiplier": 2, "max_delay": 300},
        "retry": {"include_errors": ["ValueError"]}
    })
}

#[test]
fn azolla_1_every_part_is_optional() {
    for key in ["version", "stop", "wait", "retry"] {
        assert_same(AZOLLA, &common::without(&section_5_defaults(), &format!("/{key}")), &section_5_defaults());
    }
    assert_same(AZOLLA, &json!({}), &section_5_defaults());
}

#[test]
fn azolla_1_every_part_is_an_object_of_its_own() {
    for key in ["/stop", "/wait", "/retry"] {
        assert_field_refuses(AZOLLA, key, &[json!(null), json!(5), json!([]), json!("x"), json!(true)]);
        assert_field_accepts(AZOLLA, key, &[json!({})]);
    }
    for document in [json!(null), json!([]), json!("x"), json!(1)] {
        assert_refused(AZOLLA, &document, &[""]);
    }
}

#[test]
fn azolla_2_max_attempts_counts_total_attempts() {
    for (max_attempts, expected) in [(1, 1), (2, 2), (5, 5), (9, 9)] {
        let story = story(AZOLLA, &json!({"stop": {"max_attempts": max_attempts}}), &again(value_error(), 20));
        assert_eq!((story.len(), story[expected - 1].as_str()), (expected, "max_attempts fail"));
    }
    assert_same(AZOLLA, &json!({}), &json!({"stop": {"max_attempts": 5}}));
    assert_field_refuses(AZOLLA, "/stop/max_attempts", &[json!(0), json!(-1), json!(1.5), json!("5"), json!(true)]);
    assert_field_accepts(AZOLLA, "/stop/max_attempts", &[json!(1), json!(5.0), json!(null)]);
}

#[test]
fn azolla_2_null_attempts_are_no_cap() {
    let policy = json!({"stop": {"max_attempts": null}, "wait": {"strategy": "fixed"}});
    assert_story(AZOLLA, &policy, &again(value_error(), 500), &["1000"; 500]);
}

#[test]
fn azolla_2_max_delay_is_wall_clock_time_since_creation() {
    assert_field_refuses(AZOLLA, "/stop/max_delay", &[json!(-0.001), json!("60"), json!(false), json!([])]);
    assert_field_accepts(AZOLLA, "/stop/max_delay", &[json!(0), json!(0.5), json!(null)]);
    assert_same(AZOLLA, &json!({}), &json!({"stop": {"max_delay": null}}));
    let policy = json!({"stop": {"max_attempts": null, "max_delay": 3600}, "wait": {"strategy": "fixed"}});
    assert_story(AZOLLA, &policy, &[at(0.0), at(3_598_999.0)], &["1000", "1000"]);
    assert_story(AZOLLA, &policy, &[at(3_600_000.0)], &["max_elapsed fail"]);
}

#[test]
fn azolla_2_whichever_limit_is_reached_first_stops() {
    let policy = json!({"stop": {"max_attempts": 5, "max_delay": 3600}, "wait": {"strategy": "fixed"}});
    let by_attempts = ["1000", "1000", "1000", "1000", "max_attempts fail"];
    assert_story(AZOLLA, &policy, &again(value_error(), 9), &by_attempts);
    assert_story(AZOLLA, &policy, &[at(0.0), at(3_700_000.0)], &["1000", "max_elapsed fail"]);
}

#[test]
fn azolla_2_both_null_may_retry_forever() {
    let policy = common::policy(AZOLLA, &json!({"stop": {"max_attempts": null, "max_delay": null}}));
    assert_eq!((policy.attempts, policy.max_elapsed), (AttemptLimit::Unlimited, None));
    let history = redrive_policy::History::with_failures(Moment::ORIGIN, u32::MAX);
    let failure = redrive_policy::Failure::of_type("ValueError");
    let draw = redrive_policy::Entropy::draw(&mut Seeded::new(1));
    let verdict = decide(&policy, &history, &failure, Moment::from_micros(i64::MAX), draw);
    assert!(matches!(verdict.outcome, Outcome::Retry { .. }), "{verdict:?}");
}

#[test]
fn azolla_3_field_table() {
    for (field, default) in [
        ("/wait/strategy", json!("exponential_jitter")),
        ("/wait/initial_delay", json!(1)),
        ("/wait/multiplier", json!(2)),
        ("/wait/max_delay", json!(300)),
    ] {
        assert_same(AZOLLA, &json!({}), &set(&json!({}), field, default));
    }
    assert_same(AZOLLA, &json!({"wait": {"strategy": "fixed"}}), &json!({"wait": {"strategy": "fixed", "delay": 1}}));
    for field in ["/wait/delay", "/wait/initial_delay", "/wait/max_delay"] {
        assert_field_refuses(AZOLLA, field, &[json!(-1), json!(-0.1), json!("1"), json!(null), json!(true), json!([])]);
        assert_field_accepts(AZOLLA, field, &[json!(0), json!(0.25), json!(1e30)]);
    }
    assert_field_refuses(AZOLLA, "/wait/multiplier", &[json!(0.99), json!(0), json!(-2), json!("2"), json!(null)]);
    assert_field_accepts(AZOLLA, "/wait/multiplier", &[json!(1), json!(1.5), json!(1e300)]);
    assert_field_refuses(AZOLLA, "/wait/strategy", &[json!("linear"), json!("Fixed"), json!(null), json!(1)]);
}

#[test]
fn azolla_3_fixed() {
    for (delay, ms) in [(0.0, 0.0), (0.25, 250.0), (1.0, 1000.0), (10.0, 10_000.0)] {
        let policy = json!({"wait": {"strategy": "fixed", "delay": delay}});
        assert_eq!(delays(AZOLLA, &policy, value_error(), 4, 0.9), [ms; 4]);
    }
}

#[test]
fn azolla_3_exponential() {
    let policy = json!({
        "stop": {"max_attempts": 99},
        "wait": {"strategy": "exponential", "initial_delay": 1.5, "multiplier": 2, "max_delay": 20}
    });
    let expected = [1500.0, 3000.0, 6000.0, 12_000.0, 20_000.0, 20_000.0];
    assert_eq!(delays(AZOLLA, &policy, value_error(), 6, 0.9), expected);
}

#[test]
fn azolla_3_exponential_jitter_is_full_jitter_over_the_capped_delay() {
    let policy = json!({"stop": {"max_attempts": 99}, "wait": {"max_delay": 5}});
    let bounds = ["0..1000", "0..2000", "0..4000", "0..5000", "0..5000"];
    assert_story(AZOLLA, &policy, &again(value_error(), 5), &bounds);
    for (draw, last_ms) in [(0.0, 0.0), (0.5, 2500.0), (1.0, 5000.0)] {
        assert_eq!(delays(AZOLLA, &policy, value_error(), 5, draw)[4], last_ms);
    }
    assert!(delays(AZOLLA, &policy, value_error(), 5, largest_draw())[4] <= 5000.0);
}

#[test]
fn azolla_3_the_first_retry_is_attempt_1() {
    let policy = json!({"wait": {"strategy": "exponential", "initial_delay": 7, "multiplier": 3}});
    assert_eq!(delays(AZOLLA, &policy, value_error(), 2, 0.5), [7000.0, 21_000.0], "initial_delay × 3^(attempt - 1)");
}

#[test]
fn azolla_4_include_errors() {
    let policy = json!({"retry": {"include_errors": ["A", "B"]}, "wait": {"strategy": "fixed"}});
    for (type_name, expected) in [("A", "1000"), ("B", "1000"), ("C", "non_retryable fail"), ("", "non_retryable fail")]
    {
        assert_story(AZOLLA, &policy, &[json!({"type": type_name})], &[expected]);
    }
    let nothing = json!({"retry": {"include_errors": []}});
    for type_name in ["ValueError", "A", ""] {
        assert_story(AZOLLA, &nothing, &[json!({"type": type_name})], &["non_retryable fail"]);
    }
}

#[test]
fn azolla_4_exclude_errors_win_over_include_errors() {
    let policy =
        json!({"retry": {"include_errors": ["A", "B"], "exclude_errors": ["B", "C"]}, "wait": {"strategy": "fixed"}});
    for (type_name, expected) in [("A", "1000"), ("B", "non_retryable fail"), ("C", "non_retryable fail")] {
        assert_story(AZOLLA, &policy, &[json!({"type": type_name})], &[expected]);
    }
    assert_same(AZOLLA, &json!({}), &json!({"retry": {"exclude_errors": []}}));
}

#[test]
fn azolla_4_both_lists_are_arrays_of_strings() {
    for field in ["/retry/include_errors", "/retry/exclude_errors"] {
        assert_field_refuses(AZOLLA, field, &[json!(null), json!("A"), json!({}), json!(1)]);
        let mixed = set(&json!({}), field, json!(["A", 1, null]));
        assert_refused(AZOLLA, &mixed, &[&format!("{field}/1"), &format!("{field}/2")]);
    }
}

#[test]
fn azolla_5_defaults() {
    assert_same(AZOLLA, &json!({}), &section_5_defaults());
    let five_attempts = ["0..1000", "0..2000", "0..4000", "0..8000", "max_attempts fail"];
    assert_story(AZOLLA, &json!({}), &again(value_error(), 9), &five_attempts);
    let unlimited = json!({"stop": {"max_attempts": null}});
    let story = story(AZOLLA, &unlimited, &again(value_error(), 12));
    assert_eq!(story[8..], ["0..256000", "0..300000", "0..300000", "0..300000"], "capped at five minutes");
}

#[test]
fn azolla_6a_fixed_delay_network_errors_only() {
    let policy = json!({
        "version": 1,
        "stop": {"max_delay": 1800},
        "wait": {"strategy": "fixed", "delay": 10},
        "retry": {"include_errors": ["ConnectionError", "TimeoutError", "NetworkError"]}
    });
    for type_name in ["ConnectionError", "TimeoutError", "NetworkError"] {
        let failures = again(json!({"type": type_name}), 9);
        assert_story(AZOLLA, &policy, &failures, &["10000", "10000", "10000", "10000", "max_attempts fail"]);
    }
    assert_story(AZOLLA, &policy, &[value_error()], &["non_retryable fail"]);
    assert_story(AZOLLA, &policy, &[json!({"type": "TimeoutError", "elapsed_ms": 1_800_000})], &["max_elapsed fail"]);
}

#[test]
fn azolla_6b_infinite_retries_with_cubic_backoff() {
    let policy = json!({
        "version": 1,
        "stop": {"max_attempts": null, "max_delay": null},
        "wait": {"strategy": "exponential", "initial_delay": 2, "multiplier": 3, "max_delay": 600}
    });
    let expected = [2.0, 6.0, 18.0, 54.0, 162.0, 486.0, 600.0, 600.0].map(|s| s * 1000.0);
    assert_eq!(delays(AZOLLA, &policy, value_error(), 8, 0.1), expected);
    assert_eq!(story(AZOLLA, &policy, &again(value_error(), 2000)).len(), 2000);
}

#[test]
fn azolla_7_unknown_keys_are_ignored_at_the_top_and_refused_inside() {
    assert_same(AZOLLA, &json!({"comment": "x", "priority": {"a": 1}, "Stop": 3}), &json!({}));
    for field in ["/stop/max_attemps", "/wait/jitter", "/retry/include", "/wait/a~1b"] {
        let (section, key) = field[1..].split_once('/').expect("two parts");
        let mut document = json!({});
        document[section][key.replace("~1", "/")] = json!(1);
        assert_refused(AZOLLA, &document, &[field]);
    }
}

#[test]
fn semantics_azolla_retry_n_waits_initial_times_multiplier_to_the_n_minus_1() {
    let policy = json!({"stop": {"max_attempts": null}, "wait": {"strategy": "exponential", "initial_delay": 2}});
    let expected: Vec<f64> = (0..7).map(|n| 2000.0 * f64::from(1 << n)).collect();
    assert_eq!(delays(AZOLLA, &policy, value_error(), 7, 0.5), expected);
}

#[test]
fn semantics_azolla_the_default_include_list_is_value_error_and_is_warned_of() {
    let default = ("default-include-list", "/retry/include_errors".to_owned());
    assert_eq!(warnings(AZOLLA, &json!({})), [default]);
    assert_eq!(warnings(AZOLLA, &json!({"retry": {"include_errors": ["ValueError"]}})), []);
    assert_story(AZOLLA, &json!({}), &[json!({"type": "KeyError"})], &["non_retryable fail"]);
}

#[test]
fn semantics_azolla_lists_compare_exactly() {
    let policy = json!({"retry": {"include_errors": ["Value.*", "*", "Key"]}, "wait": {"strategy": "fixed"}});
    for (type_name, retried) in
        [("Value.*", true), ("*", true), ("Key", true), ("Value.X", false), ("key", false), ("KeyError", false)]
    {
        let expected = if retried { "1000" } else { "non_retryable fail" };
        assert_story(AZOLLA, &policy, &[json!({"type": type_name})], &[expected]);
    }
}

#[test]
fn semantics_azolla_an_explicit_time_limit_with_default_attempts_is_warned_of() {
    let codes = |stop: Value| -> Vec<&str> {
        let document = json!({"stop": stop, "retry": {"include_errors": ["A"]}});
        warnings(AZOLLA, &document).into_iter().map(|(code, _)| code).collect()
    };
    assert_eq!(codes(json!({"max_delay": 1800})), ["default-attempts-end-first"]);
    assert_eq!(codes(json!({"max_delay": 1800, "max_attempts": null})), [""; 0]);
    assert_eq!(codes(json!({"max_delay": 1800, "max_attempts": 5})), [""; 0]);
    assert_eq!(codes(json!({"max_delay": null})), [""; 0]);
}

#[test]
fn semantics_azolla_stop_max_delay_at_past_or_reached_by_the_next_attempt() {
    let policy = json!({"stop": {"max_attempts": null, "max_delay": 60}, "wait": {"strategy": "fixed", "delay": 10}});
    for (elapsed_ms, expected) in [
        (0.0, "10000"),
        (49_999.0, "10000"),
        (50_000.0, "max_elapsed fail"),
        (60_000.0, "max_elapsed fail"),
        (1e12, "max_elapsed fail"),
    ] {
        assert_story(AZOLLA, &policy, &[at(elapsed_ms)], &[expected]);
    }
    let at_once = json!({"stop": {"max_attempts": null, "max_delay": 0}});
    assert_story(AZOLLA, &at_once, &[at(0.0)], &["max_elapsed fail"]);
}

#[test]
fn semantics_azolla_a_time_stop_says_which_wait_led_past_the_limit() {
    let policy = json!({"stop": {"max_attempts": null, "max_delay": 60}, "wait": {"strategy": "fixed", "delay": 10}});
    let reason = |elapsed_ms| match common::steps(AZOLLA, &policy, &[at(elapsed_ms)], 0.5)[0].verdict.outcome {
        Outcome::Stop { reason: Reason::MaxElapsed { limit, elapsed, delay }, .. } => {
            (limit.ms(), elapsed.ms(), delay.map(|delay| delay.ms()))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(55_000.0), (60_000.0, 55_000.0, Some(10_000.0)));
    assert_eq!(reason(60_000.0), (60_000.0, 60_000.0, None), "reached already");
    assert_eq!(reason(61_000.0), (60_000.0, 61_000.0, None));
}

#[test]
fn semantics_azolla_wait_max_delay_caps_the_exponential_strategies_only() {
    let wait =
        |strategy: &str| json!({"wait": {"strategy": strategy, "delay": 400, "initial_delay": 400, "max_delay": 300}});
    assert_story(AZOLLA, &wait("fixed"), &[value_error()], &["400000"]);
    assert_story(AZOLLA, &wait("exponential"), &[value_error()], &["300000"]);
    assert_story(AZOLLA, &wait("exponential_jitter"), &[value_error()], &["0..300000"]);
}

#[test]
fn semantics_azolla_version_is_absent_or_1() {
    assert_field_accepts(AZOLLA, "/version", &[json!(1), json!(1.0)]);
    assert_field_refuses(AZOLLA, "/version", &[json!(2), json!(0), json!("1"), json!(null), json!(true), json!(1.5)]);
}

#[test]
fn semantics_azolla_the_retriable_flag_is_kept_and_does_not_decide() {
    let policy = json!({"wait": {"strategy": "fixed"}});
    assert_story(AZOLLA, &policy, &[json!({"type": "ValueError", "retriable": false})], &["1000"]);
    assert_story(AZOLLA, &policy, &[json!({"type": "KeyError", "retriable": true})], &["non_retryable fail"]);
    let failure = json!({"type": "KeyError", "retriable": true});
    assert_eq!(AZOLLA.read_failure("", &failure).expect("a failure").failure.retryable, Some(true));
}

#[test]
fn semantics_azolla_the_disposition_is_fail() {
    assert_story(AZOLLA, &json!({"stop": {"max_attempts": 1}}), &[value_error()], &["max_attempts fail"]);
    assert_story(AZOLLA, &json!({"stop": {"max_delay": 0}}), &[value_error()], &["max_elapsed fail"]);
    assert_story(AZOLLA, &json!({}), &[json!({"type": "KeyError"})], &["non_retryable fail"]);
}
