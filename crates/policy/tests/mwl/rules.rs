//! What the descriptions in the provider document say: matching, budgets, backoff, the failure.

use super::common::{again, assert_story, delays, set, story};
use super::{MWL, any, coded, one};
use serde_json::{Value, json};

#[test]
fn mwl_codes_prefix_code_prefix_star_or_star() {
    for (pattern, code, matches) in [
        ("Provider.Call.Http.Timeout", "Provider.Call.Http.Timeout", true),
        ("Provider.Call.Http.Timeout", "Provider.Call.Http.TimeoutX", false),
        ("Provider.Call.Http.Timeout", "provider.call.http.timeout", false),
        ("Provider.Call.*", "Provider.Call.Http.Timeout", true),
        ("Provider.Call.*", "Provider.Call.X", true),
        ("Provider.Call.*", "Provider.Call", false),
        ("Provider.Call.*", "Provider.Callback.X", false),
        ("Provider.Call.*", "X.Provider.Call.Y", false),
        ("Provider*", "Provider.Call", false),
        ("*.Call", "Provider.Call", false),
        ("*", "anything", true),
        ("*", "", true),
    ] {
        let policy = one(json!({"codes": [pattern]}), 2, json!({"initial": "PT1S"}));
        let expected = if matches { "1000" } else { "unmatched fail" };
        assert_story(MWL, &policy, &[coded(code)], &[expected]);
    }
    let several = one(json!({"codes": ["A.B", "C.*"]}), 2, json!({"initial": "PT1S"}));
    for (code, expected) in [("A.B", "1000"), ("C.D", "1000"), ("A.C", "unmatched fail")] {
        assert_story(MWL, &several, &[coded(code)], &[expected]);
    }
}

#[test]
fn mwl_types_match_any_of_them() {
    let policy = one(json!({"types": ["timeout", "cancelled"]}), 2, json!({"initial": "PT1S"}));
    for (type_name, expected) in
        [("timeout", "1000"), ("cancelled", "1000"), ("error", "unmatched fail"), ("Timeout", "unmatched fail")]
    {
        assert_story(MWL, &policy, &[json!({"code": "X", "type": type_name})], &[expected]);
    }
    assert_story(MWL, &one(json!({"types": ["error"]}), 2, json!({"initial": "PT1S"})), &[coded("X")], &["1000"]);
}

#[test]
fn mwl_retryable_matches_only_the_same_explicit_value() {
    for wanted in [true, false] {
        let policy = one(json!({"retryable": wanted}), 2, json!({"initial": "PT1S"}));
        for (asserted, matches) in [(json!(true), wanted), (json!(false), !wanted), (json!(null), false)] {
            let expected = if matches { "1000" } else { "unmatched fail" };
            assert_story(MWL, &policy, &[json!({"code": "X", "retryable": asserted})], &[expected]);
        }
        assert_story(MWL, &policy, &[coded("X")], &["unmatched fail"]);
    }
}

#[test]
fn mwl_every_member_present_must_match() {
    let policy = one(json!({"codes": ["A.*"], "types": ["timeout"], "retryable": true}), 9, json!({"initial": "PT1S"}));
    let fitting = json!({"code": "A.B", "type": "timeout", "retryable": true});
    assert_story(MWL, &policy, &again(fitting.clone(), 1), &["1000"]);
    for (member, other) in [("/code", json!("B.B")), ("/type", json!("error")), ("/retryable", json!(false))] {
        assert_story(MWL, &policy, &[set(&fitting, member, other)], &["unmatched fail"]);
    }
}

#[test]
fn mwl_attempts_count_the_first_run() {
    for attempts in [1, 2, 5] {
        let told = story(MWL, &any(attempts, json!({"initial": "PT1S"})), &again(coded("X"), 20));
        assert_eq!(told.len(), attempts as usize);
        assert_eq!(told.last().map(String::as_str), Some("max_attempts fail"));
    }
}

#[test]
fn mwl_backoff_absent_retries_are_immediate() {
    let policy = json!({"policies": [{"match": {"codes": ["*"]}, "attempts": 4}]});
    assert_story(MWL, &policy, &again(coded("X"), 9), &["0", "0", "0", "max_attempts fail"]);
}

#[test]
fn mwl_backoff_initial_rate_and_max() {
    let flat = any(5, json!({"initial": "PT2S"}));
    assert_eq!(delays(MWL, &flat, coded("X"), 4, 0.5), [2000.0; 4], "the default rate is 1");
    let growing = any(6, json!({"initial": "PT2S", "rate": 1.5}));
    assert_eq!(delays(MWL, &growing, coded("X"), 4, 0.5), [2000.0, 3000.0, 4500.0, 6750.0]);
    let capped = any(7, json!({"initial": "PT30S", "rate": 2, "max": "PT90S"}));
    assert_eq!(delays(MWL, &capped, coded("X"), 5, 0.5), [30_000.0, 60_000.0, 90_000.0, 90_000.0, 90_000.0]);
}

#[test]
fn mwl_on_failure_delay_is_a_duration_or_null() {
    let read = |delay: Value| {
        let failure = json!({"code": "X", "delay": delay});
        MWL.read_failure("", &failure)
            .map(|read| read.failure.delay.map(|span| span.ms()))
            .map_err(|p| p.0[0].path.clone())
    };
    assert_eq!(read(json!("PT7S")), Ok(Some(7000.0)));
    assert_eq!(read(json!("-PT7S")), Ok(Some(0.0)), "a wait that is over already");
    assert_eq!(read(json!(null)), Ok(None));
    for refused in [json!(7), json!("7s"), json!(true), json!([])] {
        assert_eq!(read(refused), Err("/delay".to_owned()));
    }
}

#[test]
fn mwl_a_failure_needs_a_code_and_is_no_success() {
    for (failure, path) in
        [(json!({}), "/code"), (json!({"code": 1}), "/code"), (json!({"code": "X", "type": "success"}), "/type")]
    {
        assert_eq!(MWL.read_failure("", &failure).expect_err("refused").0[0].path, path);
    }
}
