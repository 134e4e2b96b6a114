//! §6 to §8, §10: which errors are retried, what the handler can ask for, defaults, the count kept.

use super::common::{again, assert_same, assert_story, set, steps};
use super::{OJS, story_of, timeout};
use redrive_policy::{Disposition, Signal};
use serde_json::{Value, json};

#[test]
fn ojs_6_1_the_example_types_are_ordinary_errors() {
    for type_name in [
        "validation.payload_invalid",
        "auth.token_expired",
        "external.stripe.card_declined",
        "resource.not_found",
        "rate_limit.exceeded",
    ] {
        assert_story(OJS, &json!({}), &[json!({"type": type_name})], &["500..1500"]);
        let listed = json!({"non_retryable_errors": [type_name]});
        assert_story(OJS, &listed, &[json!({"type": type_name})], &["non_retryable discard"]);
    }
}

#[test]
fn ojs_6_2_matching_table() {
    let policy = json!({"non_retryable_errors": ["validation.payload_invalid", "auth.*"], "jitter": false});
    for (type_name, matches) in [
        ("validation.payload_invalid", true),
        ("validation.schema_error", false),
        ("auth.token_expired", true),
        ("auth.forbidden", true),
        ("auth", false),
        ("external.auth.failure", false),
    ] {
        let expected = if matches { "non_retryable discard" } else { "1000" };
        assert_story(OJS, &policy, &[json!({"type": type_name})], &[expected]);
    }
}

#[test]
fn ojs_6_3_a_match_stops_whatever_attempts_remain() {
    let policy = json!({"max_attempts": 1000, "non_retryable_errors": ["auth.*"], "jitter": false});
    let failures = [timeout(), json!({"type": "auth.denied"}), timeout()];
    assert_story(OJS, &policy, &failures, &["1000", "non_retryable discard"]);
}

#[test]
fn ojs_6_3_a_match_ends_as_on_exhaustion_says() {
    for disposition in ["discard", "dead_letter"] {
        let policy = json!({"non_retryable_errors": ["auth.*"], "on_exhaustion": disposition});
        let expected = format!("non_retryable {disposition}");
        assert_story(OJS, &policy, &[json!({"type": "auth.denied"})], &[&expected]);
    }
}

#[test]
fn ojs_7_1_response_code_table() {
    let policy = json!({"jitter": false});
    for (code, expected) in [
        (json!("RETRY"), "1000"),
        (json!("DISCARD"), "handler discard"),
        (json!("DEAD_LETTER"), "handler dead_letter"),
        (json!("FAIL"), "handler discard"),
    ] {
        assert_story(OJS, &policy, &[json!({"type": "a.b", "code": code})], &[expected]);
    }
}

#[test]
fn ojs_7_2_codes_come_before_max_attempts_and_on_exhaustion() {
    for max_attempts in [0, 1, 5] {
        for on_exhaustion in ["discard", "dead_letter"] {
            let policy = json!({"max_attempts": max_attempts, "on_exhaustion": on_exhaustion});
            for (code, expected) in
                [("DISCARD", "handler discard"), ("DEAD_LETTER", "handler dead_letter"), ("FAIL", "handler discard")]
            {
                assert_story(OJS, &policy, &[json!({"type": "a.b", "code": code})], &[expected]);
            }
        }
    }
}

#[test]
fn ojs_7_2_retry_or_no_code_checks_the_list_then_attempts_then_computes_backoff() {
    let policy = json!({"max_attempts": 2, "non_retryable_errors": ["auth.*"], "jitter": false});
    for code in [Some("RETRY"), None] {
        let failure = |type_name: &str| match code {
            Some(code) => json!({"type": type_name, "code": code}),
            None => json!({"type": type_name}),
        };
        assert_story(OJS, &policy, &[failure("auth.denied")], &["non_retryable discard"]);
        assert_story(OJS, &policy, &again(failure("a.b"), 3), &["1000", "max_attempts discard"]);
        // On the last attempt the list is still what is checked first.
        let last = [failure("a.b"), failure("auth.denied")];
        assert_story(OJS, &policy, &last, &["1000", "non_retryable discard"]);
    }
}

#[test]
fn ojs_7_3_error_response_format() {
    let error = json!({
        "type": "external.stripe.card_declined",
        "message": "Card ending in 4242 was declined: insufficient funds",
        "code": "DISCARD",
        "details": {}
    });
    let read = OJS.read_failure("", &error).expect("the example of the section");
    assert_eq!(read.failure.type_name, "external.stripe.card_declined");
    assert_eq!(read.failure.signal, Signal::Stop(Disposition::Discard));
    let no_code = json!({"type": "a.b", "message": "m"});
    let read = OJS.read_failure("", &no_code).expect("code is optional");
    assert_eq!(read.failure.signal, Signal::None, "defaults to RETRY");
    let problems = OJS.read_failure("", &json!({"message": "m"})).expect_err("type is required").0;
    assert_eq!(problems[0].path, "/type");
}

fn effective(max_attempts: u32, on_exhaustion: &str) -> Value {
    json!({
        "max_attempts": max_attempts,
        "initial_interval": "PT1S",
        "backoff_coefficient": 2.0,
        "max_interval": "PT5M",
        "jitter": true,
        "non_retryable_errors": [],
        "on_exhaustion": on_exhaustion
    })
}

#[test]
fn ojs_8_default_policy() {
    assert_same(OJS, &json!({}), &effective(3, "discard"));
    assert_eq!(story_of(&json!({}), 9), ["500..1500", "1000..3000", "max_attempts discard"]);
}

#[test]
fn ojs_8_1_partial_policies_are_merged_with_the_defaults() {
    assert_same(OJS, &json!({"max_attempts": 10, "on_exhaustion": "dead_letter"}), &effective(10, "dead_letter"));
    for (field, value) in [
        ("/max_attempts", json!(5)),
        ("/initial_interval", json!("PT9S")),
        ("/backoff_coefficient", json!(3.5)),
        ("/max_interval", json!("PT1H")),
        ("/jitter", json!(false)),
        ("/non_retryable_errors", json!(["a.*"])),
        ("/on_exhaustion", json!("dead_letter")),
    ] {
        let alone = set(&json!({}), field, value.clone());
        assert_same(OJS, &alone, &set(&effective(3, "discard"), field, value));
    }
}

#[test]
fn ojs_10_attempts_are_counted_from_1() {
    let steps = steps(OJS, &json!({"max_attempts": 4}), &again(timeout(), 9), 0.5);
    let attempts: Vec<u32> = steps.iter().map(|step| step.verdict.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4]);
}
