//! The rows of the project's semantics for this dialect.

use super::common::{
    again, assert_field_accepts, assert_field_refuses, assert_refused, assert_same, assert_story, set,
};
use super::common::{delays, largest_draw, warnings};
use super::{OJS, first_delays, runs, story_of, timeout};
use serde_json::json;

#[test]
fn semantics_ojs_which_strategy_applies() {
    for (name, second_ms) in
        [("none", 1000.0), ("constant", 1000.0), ("linear", 2000.0), ("exponential", 3000.0), ("polynomial", 8000.0)]
    {
        for field in ["/backoff_strategy", "/backoff_type"] {
            let policy = set(&json!({"backoff_coefficient": 3.0, "jitter": false}), field, json!(name));
            assert_eq!(first_delays(&policy, 2), [1000.0, second_ms], "{field} {name}");
        }
    }
    assert_field_refuses(OJS, "/backoff_strategy", &[json!("cubic"), json!("Linear"), json!(null), json!(1)]);
    let agreeing = json!({"backoff_strategy": "constant", "backoff_type": "none"});
    assert_same(OJS, &agreeing, &json!({"backoff_strategy": "none"}));
    assert_refused(OJS, &json!({"backoff_strategy": "linear", "backoff_type": "none"}), &["/backoff_type"]);
}

#[test]
fn semantics_ojs_nothing_is_inferred_from_the_coefficient() {
    for coefficient in [1.0, 2.0, 3.0, 4.0, 10.0] {
        let unnamed = json!({"backoff_coefficient": coefficient});
        assert_same(OJS, &unnamed, &set(&unnamed, "/backoff_strategy", json!("exponential")));
        let expected: &[&str] = if coefficient >= 3.0 { &["coefficient-suggests-polynomial"] } else { &[] };
        let codes: Vec<&str> = warnings(OJS, &unnamed).into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, expected, "{coefficient}");
    }
}

#[test]
fn semantics_ojs_other_unknown_fields_are_refused() {
    assert_refused(OJS, &json!({"backoff": "linear", "timeout": "PT1M"}), &["/backoff", "/timeout"]);
}

#[test]
fn semantics_ojs_max_attempts_0_and_1_are_the_same_at_run_time() {
    for max_attempts in [0, 1] {
        let policy = json!({"max_attempts": max_attempts, "on_exhaustion": "dead_letter"});
        assert_eq!(story_of(&policy, 3), ["max_attempts dead_letter"]);
        assert_eq!(runs(&policy), 1);
    }
}

#[test]
fn semantics_ojs_a_partial_policy_is_merged_first_and_validated_after() {
    assert_refused(OJS, &json!({"initial_interval": "PT10M"}), &["/initial_interval"]);
    assert_refused(OJS, &json!({"max_interval": "PT0.5S"}), &["/max_interval"]);
    for document in [json!({"initial_interval": "PT10M"}), json!({"max_interval": "PT0.5S"})] {
        let problems = OJS.read(&document).expect_err("collides with a default").0;
        assert!(problems[0].message.contains("default"), "{}", problems[0].message);
    }
    assert_field_accepts(OJS, "/initial_interval", &[json!("PT5M")]);
}

#[test]
fn semantics_ojs_durations() {
    const DAY: f64 = 86_400_000.0;
    for (text, ms, warned) in [
        ("P1D", DAY, false),
        ("P1M", 30.0 * DAY, true),
        ("P1Y", 365.0 * DAY, true),
        ("PT1M", 60_000.0, false),
        ("P1Y1M1DT1S", 396.0 * DAY + 1000.0, true),
    ] {
        let policy = json!({"initial_interval": text, "max_interval": "PT99999H", "jitter": false});
        assert_eq!(first_delays(&policy, 1), [ms], "{text}");
        let expected = if warned { vec![("calendar-duration", "/initial_interval".to_owned())] } else { vec![] };
        assert_eq!(warnings(OJS, &policy), expected, "{text}");
    }
    let refused = ["P1W", "-PT1S", "+PT1S", "pt1s", "PT1.5H", "PT1.5M", "P1.5D", " PT1S", "PT1S ", "PT1S\n", "\tPT1S"];
    let refused: Vec<_> = refused.iter().map(|text| json!(text)).collect();
    assert_field_refuses(OJS, "/max_interval", &refused);
}

#[test]
fn semantics_ojs_cap_then_jitter_then_cap() {
    let policy = json!({"initial_interval": "PT4S", "max_interval": "PT5S", "max_attempts": 9});
    let of = |draw| delays(OJS, &policy, timeout(), 3, draw);
    assert_eq!(of(0.0), [2000.0, 2500.0, 2500.0]);
    assert_eq!(of(0.5), [4000.0, 5000.0, 5000.0]);
    assert_eq!(of(largest_draw()), [5000.0, 5000.0, 5000.0]);
}

#[test]
fn semantics_ojs_prefix_match() {
    let policy = json!({"non_retryable_errors": ["auth.*"], "jitter": false});
    for (type_name, matches) in [
        ("auth.x", true),
        ("auth.x.y", true),
        ("auth.", true),
        ("auth", false),
        ("authx.y", false),
        ("x.auth.y", false),
    ] {
        let expected = if matches { "non_retryable discard" } else { "1000" };
        assert_story(OJS, &policy, &[json!({"type": type_name})], &[expected]);
    }
}

#[test]
fn semantics_ojs_handler_codes_come_before_any_other_check() {
    let policy = json!({"max_attempts": 1, "non_retryable_errors": ["a.*"], "on_exhaustion": "discard"});
    for (code, expected) in [
        ("DISCARD", "handler discard"),
        ("FAIL", "handler discard"),
        ("DEAD_LETTER", "handler dead_letter"),
        ("RETRY", "non_retryable discard"),
    ] {
        assert_story(OJS, &policy, &again(json!({"type": "a.b", "code": code}), 2), &[expected]);
    }
}
