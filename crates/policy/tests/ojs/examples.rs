//! §12: every example, with the behaviour that it claims.

use super::common::{again, assert_same, assert_story, set, warnings};
use super::{OJS, first_delays, runs, story_of, timeout};
use serde_json::{Value, json};

#[test]
fn ojs_12_1_no_retry() {
    let effective = json!({
        "max_attempts": 1, "initial_interval": "PT1S", "backoff_coefficient": 2.0, "max_interval": "PT5M",
        "jitter": true, "non_retryable_errors": [], "on_exhaustion": "discard"
    });
    assert_same(OJS, &json!({"max_attempts": 1}), &effective);
    assert_eq!(story_of(&json!({"max_attempts": 1}), 5), ["max_attempts discard"]);
}

#[test]
fn ojs_12_2_simple_retry() {
    assert_eq!(first_delays(&json!({"jitter": false}), 2), [1000.0, 2000.0]);
    assert_eq!(runs(&json!({})), 3);
    assert_eq!(story_of(&json!({}), 5)[2], "max_attempts discard");
}

fn aggressive() -> Value {
    json!({
        "max_attempts": 25,
        "initial_interval": "PT15S",
        "backoff_coefficient": 4.0,
        "max_interval": "PT1H",
        "jitter": true,
        "non_retryable_errors": ["payment.card_stolen", "payment.card_expired", "validation.*"],
        "on_exhaustion": "dead_letter"
    })
}

#[test]
fn ojs_12_3_aggressive_retry_attempts_and_errors() {
    let story = story_of(&aggressive(), 40);
    assert_eq!((story.len(), story[24].as_str()), (25, "max_attempts dead_letter"));
    for type_name in ["payment.card_stolen", "payment.card_expired", "validation.schema", "validation.a.b"] {
        assert_story(OJS, &aggressive(), &[json!({"type": type_name})], &["non_retryable dead_letter"]);
    }
}

/// The table of the example holds where the strategy that its text means is named.
#[test]
fn ojs_12_3_schedule_with_the_polynomial_strategy_named() {
    let named = set(&set(&aggressive(), "/backoff_strategy", json!("polynomial")), "/jitter", json!(false));
    assert_eq!(first_delays(&named, 5), [15_000.0, 240_000.0, 1_215_000.0, 3_600_000.0, 3_600_000.0]);
    assert_eq!(warnings(OJS, &named), []);
}

#[test]
fn ojs_12_3_schedule_as_written_is_exponential() {
    let as_written = set(&aggressive(), "/jitter", json!(false));
    assert_eq!(first_delays(&as_written, 5), [15_000.0, 60_000.0, 240_000.0, 960_000.0, 3_600_000.0]);
}

#[test]
fn ojs_12_4_custom_non_retryable_errors() {
    let policy = json!({
        "max_attempts": 5,
        "initial_interval": "PT30S",
        "backoff_coefficient": 2.0,
        "max_interval": "PT15M",
        "jitter": true,
        "non_retryable_errors": [
            "auth.invalid_credentials", "auth.account_suspended", "resource.not_found", "validation.*",
            "external.crm.api_deprecated"
        ],
        "on_exhaustion": "dead_letter"
    });
    for (type_name, expected) in [
        ("auth.invalid_credentials", "non_retryable dead_letter"),
        ("auth.account_suspended", "non_retryable dead_letter"),
        ("resource.not_found", "non_retryable dead_letter"),
        ("validation.anything", "non_retryable dead_letter"),
        ("external.crm.api_deprecated", "non_retryable dead_letter"),
        ("external.crm.service_unavailable", "15000..45000"),
        ("auth.other", "15000..45000"),
    ] {
        assert_story(OJS, &policy, &[json!({"type": type_name})], &[expected]);
    }
    let unavailable = again(json!({"type": "external.crm.service_unavailable"}), 9);
    let story = ["15000..45000", "30000..90000", "60000..180000", "120000..360000", "max_attempts dead_letter"];
    assert_story(OJS, &policy, &unavailable, &story);
}

#[test]
fn ojs_12_5_constant_backoff_for_polling() {
    let policy = json!({
        "max_attempts": 60, "initial_interval": "PT10S", "backoff_coefficient": 1.0, "max_interval": "PT10S",
        "jitter": false, "non_retryable_errors": [], "on_exhaustion": "dead_letter"
    });
    let mut expected = vec!["10000"; 59];
    expected.push("max_attempts dead_letter");
    assert_eq!(story_of(&policy, 80), expected);
    let window: f64 = first_delays(&policy, 59).iter().sum();
    assert!((window - 600_000.0).abs() <= 10_000.0, "about ten minutes: {window}");
}

#[test]
fn ojs_12_6_no_retry_direct_to_dead_letter() {
    let policy = json!({"max_attempts": 1, "on_exhaustion": "dead_letter"});
    assert_eq!(story_of(&policy, 5), ["max_attempts dead_letter"]);
}

#[test]
fn ojs_12_7_handler_override() {
    let policy = json!({"jitter": false});
    for (failure, expected) in [
        (json!({"type": "payment.card_declined", "code": "DISCARD"}), "handler discard"),
        (json!({"type": "payment.card_stolen", "code": "DEAD_LETTER"}), "handler dead_letter"),
        (json!({"type": "external.timeout", "code": "RETRY"}), "1000"),
        (json!({"type": "external.server_error"}), "1000"),
    ] {
        assert_story(OJS, &policy, &[failure], &[expected]);
    }
    let after_a_timeout = [timeout(), json!({"type": "payment.card_stolen", "code": "DEAD_LETTER"})];
    assert_story(OJS, &policy, &after_a_timeout, &["1000", "handler dead_letter"]);
}
