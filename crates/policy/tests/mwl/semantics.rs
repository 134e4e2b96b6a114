//! The rows of the project's semantics for this dialect.

use super::common::{again, assert_story, delays, largest_draw, steps, warnings};
use super::{MWL, any, coded, one};
use redrive_policy::{Disposition, Outcome, Reason};
use serde_json::json;

#[test]
fn semantics_mwl_each_policy_counts_the_failures_that_it_handled() {
    let policy = json!({"policies": [
        {"match": {"codes": ["A"]}, "attempts": 3, "backoff": {"initial": "PT1S", "rate": 2}},
        {"match": {"codes": ["B"]}, "attempts": 2, "backoff": {"initial": "PT5S", "rate": 2}}
    ]});
    let (a, b) = (coded("A"), coded("B"));
    let failures = [a.clone(), b.clone(), a.clone(), a.clone()];
    assert_story(MWL, &policy, &failures, &["1000", "5000", "2000", "max_attempts fail"]);
    assert_story(MWL, &policy, &[a.clone(), b.clone(), a, b], &["1000", "5000", "2000", "max_attempts fail"]);
}

#[test]
fn semantics_mwl_the_first_match_handles_the_failure_even_when_spent() {
    let policy = json!({"policies": [
        {"match": {"codes": ["A.*"]}, "attempts": 2, "backoff": {"initial": "PT1S"}},
        {"match": {"codes": ["*"]}, "attempts": 9, "backoff": {"initial": "PT2S"}}
    ]});
    let failures = [coded("A.X"), coded("B"), coded("A.X")];
    let steps = steps(MWL, &policy, &failures, 0.5);
    let rules: Vec<Option<usize>> = steps.iter().map(|step| step.verdict.rule).collect();
    assert_eq!(rules, [Some(0), Some(1), Some(0)]);
    assert_story(MWL, &policy, &failures, &["1000", "2000", "max_attempts fail"]);
}

#[test]
fn semantics_mwl_backoff_counts_the_policys_own_retries() {
    let policy = json!({"policies": [
        {"match": {"codes": ["A"]}, "attempts": 9, "backoff": {"initial": "PT1S", "rate": 10}},
        {"match": {"codes": ["B"]}, "attempts": 9}
    ]});
    let failures = [coded("A"), coded("B"), coded("B"), coded("B"), coded("A"), coded("B"), coded("A")];
    assert_story(MWL, &policy, &failures, &["1000", "0", "0", "0", "10000", "0", "100000"]);
}

#[test]
fn semantics_mwl_full_and_equal_jitter_over_the_capped_delay() {
    for (jitter, bounds, middle_ms) in [
        ("full", ["0..2000", "0..4000", "0..8000", "0..10000"], 5000.0),
        ("equal", ["1000..2000", "2000..4000", "4000..8000", "5000..10000"], 7500.0),
    ] {
        let policy = any(9, json!({"initial": "PT2S", "rate": 2, "max": "PT10S", "jitter": jitter}));
        assert_story(MWL, &policy, &again(coded("X"), 4), &bounds);
        assert_eq!(delays(MWL, &policy, coded("X"), 4, 0.5)[3], middle_ms, "{jitter}");
    }
}

#[test]
fn semantics_mwl_decorrelated_bounds() {
    let policy = any(9, json!({"initial": "PT2S", "max": "PT20S", "jitter": "decorrelated"}));
    assert_story(MWL, &policy, &again(coded("X"), 4), &["2000..6000", "2000..18000", "2000..20000", "2000..20000"]);
    let uncapped = any(9, json!({"initial": "PT2S", "jitter": "decorrelated"}));
    assert_story(MWL, &uncapped, &again(coded("X"), 4), &["2000..6000", "2000..18000", "2000..54000", "2000..162000"]);
}

#[test]
fn semantics_mwl_decorrelated_follows_the_last_scheduled_delay() {
    let policy = any(9, json!({"initial": "PT2S", "max": "PT20S", "jitter": "decorrelated"}));
    assert_eq!(delays(MWL, &policy, coded("X"), 3, 0.0), [2000.0; 3]);
    // The middle of [2, 6] is 4, of [2, 12] is 7, of [2, 21] is 11.5.
    assert_eq!(delays(MWL, &policy, coded("X"), 3, 0.5), [4000.0, 7000.0, 11_500.0]);
    assert_eq!(delays(MWL, &policy, coded("X"), 4, 1.0), [6000.0, 18_000.0, 20_000.0, 20_000.0]);
    assert!(delays(MWL, &policy, coded("X"), 8, largest_draw()).iter().all(|ms| *ms <= 20_000.0));
}

#[test]
fn semantics_mwl_decorrelated_keeps_one_previous_delay_for_each_policy() {
    let backoff = json!({"initial": "PT2S", "jitter": "decorrelated"});
    let policy = json!({"policies": [
        {"match": {"codes": ["A"]}, "attempts": 9, "backoff": backoff},
        {"match": {"codes": ["B"]}, "attempts": 9, "backoff": backoff}
    ]});
    let failures = [coded("A"), coded("B"), coded("A"), coded("B")];
    assert_story(MWL, &policy, &failures, &["2000..6000", "2000..6000", "2000..18000", "2000..18000"]);
}

#[test]
fn semantics_mwl_the_delay_override_is_used_as_it_is() {
    let policy = any(9, json!({"initial": "PT1S", "rate": 2, "max": "PT4S", "jitter": "full"}));
    let overridden = json!({"code": "X", "delay": "PT1H"});
    assert_story(MWL, &policy, &[coded("X"), overridden, coded("X")], &["0..1000", "3600000", "0..4000"]);
    let null = json!({"code": "X", "delay": null});
    assert_story(MWL, &policy, &[null], &["0..1000"]);
}

#[test]
fn semantics_mwl_the_delay_override_is_not_decorrelateds_previous_delay() {
    let policy = any(9, json!({"initial": "PT1S", "jitter": "decorrelated"}));
    let overridden = json!({"code": "X", "delay": "PT1H"});
    let failures = [coded("X"), overridden.clone(), coded("X")];
    assert_story(MWL, &policy, &failures, &["1000..3000", "3600000", "1000..9000"]);
    assert_story(MWL, &policy, &[overridden, coded("X")], &["3600000", "1000..3000"]);
}

#[test]
fn semantics_mwl_the_delay_override_is_unread_on_pass_through_and_exhaustion() {
    let delayed = |code: &str| json!({"code": code, "delay": "PT9S"});
    let policy = one(json!({"codes": ["A"]}), 1, json!({"initial": "PT1S"}));
    assert_story(MWL, &policy, &[delayed("A")], &["max_attempts fail"]);
    assert_story(MWL, &policy, &[delayed("B")], &["unmatched fail"]);
}

#[test]
fn semantics_mwl_an_unmatched_failure_passes_through() {
    let policy = one(json!({"codes": ["A"]}), 5, json!({"initial": "PT1S"}));
    let steps = steps(MWL, &policy, &[coded("A"), coded("B")], 0.5);
    assert_eq!(steps[1].verdict.rule, None);
    assert_eq!(steps[1].verdict.outcome, Outcome::Stop { reason: Reason::Unmatched, disposition: Disposition::Fail });
}

/// What the Exhausted failure carries: the runs so far, and the position of the spent policy.
#[test]
fn semantics_mwl_exhaustion_knows_attempts_and_policy() {
    let policy = json!({"policies": [
        {"match": {"codes": ["A"]}, "attempts": 9},
        {"match": {"codes": ["B"]}, "attempts": 2}
    ]});
    let steps = steps(MWL, &policy, &[coded("A"), coded("B"), coded("A"), coded("B")], 0.5);
    let last = steps[3].verdict;
    assert_eq!((last.attempt, last.rule), (4, Some(1)));
    let exhausted = Outcome::Stop { reason: Reason::MaxAttempts { limit: 2 }, disposition: Disposition::Fail };
    assert_eq!(last.outcome, exhausted);
}

#[test]
fn semantics_mwl_a_rate_that_decorrelated_jitter_does_not_read_is_warned_of() {
    let policy = any(3, json!({"initial": "PT1S", "rate": 2, "jitter": "decorrelated"}));
    assert_eq!(warnings(MWL, &policy), [("no-effect", "/policies/0/backoff/rate".to_owned())]);
}
