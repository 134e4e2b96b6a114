//! §15: the conformance table, as far as a pure policy can show it. RET-11 to RET-15 are about
//! queues, reservations and stored errors, and belong to the engine.

use super::common::{
    again, assert_field_accepts, assert_field_refuses, assert_refused, assert_same, assert_story, delays, largest_draw,
    steps,
};
use super::{OJS, runs, timeout};
use serde_json::{Value, json};

#[test]
fn ret_01_max_attempts_is_an_exact_upper_bound() {
    for max_attempts in [1, 2, 3, 7, 25, 99] {
        assert_eq!(runs(&json!({"max_attempts": max_attempts})), max_attempts);
    }
}

#[test]
fn ret_02_durations_are_parsed_as_iso_8601() {
    let policy =
        json!({"initial_interval": "PT1M30.5S", "max_interval": "P1DT1H", "jitter": false, "max_attempts": 99});
    let delays = delays(OJS, &policy, timeout(), 30, 0.5);
    assert_eq!((delays[0], delays[29]), (90_500.0, 90_000_000.0));
}

#[test]
fn ret_03_a_coefficient_below_1_is_refused() {
    assert_field_refuses(OJS, "/backoff_coefficient", &[json!(0.999_999_999), json!(0.0), json!(-3)]);
}

#[test]
fn ret_04_the_computed_delay_is_capped_at_max_interval() {
    let policy = json!({"max_attempts": 2000, "max_interval": "PT7S", "jitter": false, "backoff_coefficient": 10});
    assert_eq!(delays(OJS, &policy, timeout(), 1500, 0.5)[1..], [7000.0; 1499]);
}

#[test]
fn ret_05_jitter_multiplies_by_half_to_one_and_a_half() {
    let policy = json!({"initial_interval": "PT2S", "jitter": true});
    for (draw, ms) in [(0.0, 1000.0), (0.5, 2000.0), (0.75, 2500.0)] {
        assert_eq!(delays(OJS, &policy, timeout(), 1, draw), [ms]);
    }
    assert!(delays(OJS, &policy, timeout(), 1, largest_draw())[0] < 3000.0);
}

#[test]
fn ret_06_the_cap_is_applied_after_jitter() {
    let policy = json!({"initial_interval": "PT2S", "max_interval": "PT2.5S"});
    for (draw, ms) in [(0.0, 1000.0), (0.75, 2500.0), (largest_draw(), 2500.0)] {
        assert_eq!(delays(OJS, &policy, timeout(), 1, draw), [ms]);
    }
}

#[test]
fn ret_07_a_non_retryable_error_is_never_retried() {
    let policy = json!({"max_attempts": 100, "non_retryable_errors": ["a.b", "c.*"]});
    for type_name in ["a.b", "c.d", "c.d.e"] {
        assert_story(OJS, &policy, &[json!({"type": type_name})], &["non_retryable discard"]);
        assert_story(OJS, &policy, &[timeout(), json!({"type": type_name})], &["500..1500", "non_retryable discard"]);
    }
}

#[test]
fn ret_08_handler_codes_are_respected() {
    for (code, expected) in
        [("DISCARD", "handler discard"), ("DEAD_LETTER", "handler dead_letter"), ("FAIL", "handler discard")]
    {
        let failure = json!({"type": "a.b", "code": code});
        assert_story(OJS, &json!({"max_attempts": 100}), &again(failure.clone(), 2), &[expected]);
        assert_story(OJS, &json!({"non_retryable_errors": ["a.b"]}), &[failure], &[expected]);
    }
}

fn default_policy() -> Value {
    json!({
        "max_attempts": 3, "initial_interval": "PT1S", "backoff_coefficient": 2.0, "max_interval": "PT5M",
        "jitter": true, "non_retryable_errors": [], "on_exhaustion": "discard"
    })
}

#[test]
fn ret_09_an_empty_policy_is_the_default_policy() {
    assert_same(OJS, &json!({}), &default_policy());
    assert_eq!(runs(&json!({})), 3);
}

#[test]
fn ret_10_partial_policies_are_merged_with_the_defaults() {
    let changed = json!({
        "max_attempts": 9, "initial_interval": "PT2S", "backoff_coefficient": 3.0, "max_interval": "PT6M",
        "jitter": false, "non_retryable_errors": ["a"], "on_exhaustion": "dead_letter"
    });
    let (mut partial, mut full) = (json!({}), default_policy());
    for (key, value) in changed.as_object().expect("an object") {
        partial[key] = value.clone();
        full[key] = value.clone();
        assert_same(OJS, &partial, &full);
    }
}

#[test]
fn ret_14_the_attempt_count_is_tracked() {
    let steps = steps(OJS, &json!({"max_attempts": 5}), &again(timeout(), 5), 0.5);
    assert!(steps.iter().map(|step| step.verdict.attempt).eq(1..=5));
}

#[test]
fn ret_16_a_policy_is_validated_before_anything_runs() {
    let document = json!({"max_attempts": -1, "initial_interval": "PT0S"});
    assert_refused(OJS, &document, &["/max_attempts", "/initial_interval"]);
}

#[test]
fn ret_17_both_dispositions_are_supported() {
    for disposition in ["discard", "dead_letter"] {
        let policy = json!({"max_attempts": 1, "on_exhaustion": disposition});
        assert_story(OJS, &policy, &[timeout()], &[&format!("max_attempts {disposition}")]);
    }
}

#[test]
fn ret_18_non_retryable_errors_match_exactly() {
    let policy = json!({"non_retryable_errors": ["auth.token", "*", "pay*"], "jitter": false});
    for (type_name, matches) in [
        ("auth.token", true),
        ("auth.token.expired", false),
        ("auth.toke", false),
        ("Auth.token", false),
        ("auth.token ", false),
        // §6.2 knows the wildcard after a dot only; elsewhere an asterisk stands for itself.
        ("*", true),
        ("pay*", true),
        ("payment.declined", false),
    ] {
        let expected = if matches { "non_retryable discard" } else { "1000" };
        assert_story(OJS, &policy, &[json!({"type": type_name})], &[expected]);
    }
}

#[test]
fn ret_19_invalid_durations_are_refused() {
    assert_field_refuses(OJS, "/initial_interval", &[json!("1s"), json!("PT"), json!("PT1"), json!(1000)]);
    assert_field_refuses(OJS, "/max_interval", &[json!("5 minutes"), json!("P"), json!("PT5M;"), json!(300)]);
}

#[test]
fn ret_20_a_policy_obeys_the_schema() {
    assert_field_refuses(OJS, "/unknown", &[json!(1)]);
    assert_field_refuses(OJS, "/jitter", &[json!("true")]);
    assert_refused(OJS, &json!({"non_retryable_errors": [""]}), &["/non_retryable_errors/0"]);
    assert_field_accepts(OJS, "/max_attempts", &[json!(0)]);
}
