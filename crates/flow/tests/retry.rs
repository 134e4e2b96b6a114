//! The sentences of the document of the Retry middleware about which failures it handles, and how often. Each test
//! quotes the one that it is about; `retry_gap.rs` has the others.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

use harness::{EXHAUSTED, MOCK, around, done, failing_with, flow, policy, retry};
use serde_json::{Value, json};

/// "Re-runs its inner scope on matching failures."
#[test]
fn it_re_runs_its_inner_scope_on_matching_failures() {
    let ran = failing_with(&["A.B", "A.C"], json!([policy(&["A.*"], 3)])).run();
    assert_eq!(ran.value(), "xx");
    let ran = failing_with(&["B.A"], json!([policy(&["A.*"], 3)])).run();
    assert_eq!((ran.code(), ran.result.get("previous")), ("B.A", None), "no match: unchanged");
}

/// "Policies are captured at first entry", "evaluates and captures the retry policies".
#[test]
fn policies_are_captured_at_first_entry() {
    let policies = json!("{{ [{'match': {'codes': ['*']}, 'attempts': vars.limit}] }}");
    let entry = retry(policies, json!({ "assign": { "limit": 100, "tries": "{{ vars.tries + 'x' }}" } }));
    let ran =
        around(json!([entry]), json!({ "failure": { "code": "A.B" } })).vars(json!({ "limit": 3, "tries": "" })).run();
    assert_eq!(ran.result["details"], json!({ "attempts": 3, "policy": 0 }), "the carry changed the variable only");
}

/// "each rising failure runs the onFailure phase"
#[test]
fn each_rising_failure_runs_on_failure() {
    let entry =
        retry(json!([policy(&["*"], 4)]), json!({ "assign": { "seen": "{{ vars.seen + [failure == null] }}" } }));
    let steps = json!({
        "first": {
            "action": "Call", "middleware": [entry], "next": "done", "call": { "provider": MOCK, "with": { "failure": { "code": "A.B" } } },
            "catch": [{ "match": { "codes": ["*"] }, "output": "{{ vars.seen }}", "next": "done" }],
        },
        "done": done(),
    });
    let ran = flow(steps).vars(json!({ "seen": [] })).run();
    assert_eq!(ran.value(), &json!([true, true, true, true]), "three gaps and the emission");
}

/// "matches it against the policies in order", "Scanned in array order; the first policy whose match matches a rising
/// failure handles it."
#[test]
fn the_first_policy_that_matches_handles_the_failure() {
    let ran = failing_with(&["A.B"; 9], json!([policy(&["B.*"], 1), policy(&["A.*"], 2), policy(&["*"], 7)])).run();
    assert_eq!(ran.result["details"], json!({ "attempts": 2, "policy": 1 }));
}

/// No fall-through: the first policy that matches stops, even where a later one would go on.
#[test]
fn a_spent_policy_does_not_leave_the_failure_to_a_later_one() {
    let ran = failing_with(&["A.B"; 9], json!([policy(&["A.B"], 1), policy(&["*"], 5)])).run();
    assert_eq!((ran.code(), &ran.result["details"]), (EXHAUSTED, &json!({ "attempts": 1, "policy": 0 })));
}

/// "Each policy counts its attempts independently."
#[test]
fn each_policy_counts_for_itself() {
    let policies = json!([policy(&["A.*"], 2), policy(&["B.*"], 3)]);
    let ran = failing_with(&["A.B", "B.A", "B.A"], policies.clone()).run();
    assert_eq!(ran.value(), "xxx", "three failures, none of which exhausts a policy");
    let ran = failing_with(&["A.B", "B.A", "A.B"], policies).run();
    assert_eq!(ran.result["details"], json!({ "attempts": 3, "policy": 0 }), "attempts are all runs");
}

/// "re-enters the inner scope while the matching policy's budget lasts", "The policy's attempt budget, counting the
/// first run."
#[test]
fn the_budget_counts_the_first_run() {
    for attempts in 1..5_u32 {
        let failures = vec!["A.B"; attempts as usize - 1];
        assert_eq!(
            failing_with(&failures, json!([policy(&["*"], attempts)])).run().value(),
            &"x".repeat(attempts as usize - 1)
        );
        let failures = vec!["A.B"; attempts as usize];
        let ran = failing_with(&failures, json!([policy(&["*"], attempts)])).run();
        assert_eq!(ran.result["details"]["attempts"], attempts);
    }
}

/// "every member present must match"
#[test]
fn members_of_a_match_are_conjoined() {
    let failure = json!({ "code": "A.B", "type": "timeout", "retryable": true });
    let matches = |member: Value| {
        let policies = json!([{ "match": member, "attempts": 1 }]);
        around(json!([retry(policies, json!({}))]), json!({ "failure": failure })).run().code() == EXHAUSTED
    };
    assert!(matches(json!({ "codes": ["A.B"], "types": ["timeout"], "retryable": true })));
    assert!(!matches(json!({ "codes": ["B.A"], "types": ["timeout"], "retryable": true })));
    assert!(!matches(json!({ "codes": ["A.B"], "types": ["error"], "retryable": true })));
    assert!(!matches(json!({ "codes": ["A.B"], "types": ["timeout"], "retryable": false })));
}

/// "Failure-code patterns: Prefix.Code, Prefix.*, or *. Matches when the failure's code matches any pattern."
#[test]
fn patterns_of_codes() {
    let matches = |code: &str, codes: &[&str]| {
        let policies = json!([{ "match": { "codes": codes }, "attempts": 1 }]);
        around(json!([retry(policies, json!({}))]), json!({ "failure": { "code": code } })).run().code() == EXHAUSTED
    };
    for (code, patterns, fits) in [
        ("Net.Down", vec!["Net.Down"], true),
        ("Net.Down", vec!["net.down"], false),
        ("Net.Down", vec!["Net.*"], true),
        ("Net.a.b", vec!["Net.*"], true),
        ("Network.X", vec!["Net.*"], false),
        ("Net", vec!["Net.*"], false),
        ("Anything", vec!["*"], true),
        ("Net.Down", vec!["A.B", "C.*", "Net.Down"], true),
        ("Net.Down", vec!["A.B", "C.*"], false),
    ] {
        assert_eq!(matches(code, &patterns), fits, "{code} {patterns:?}");
    }
}

/// "Non-success Result type names. Matches when the failure's type is any of them."
#[test]
fn types_match_any_of_them() {
    for (kind, fits) in [("timeout", true), ("Custom", true), ("error", false), ("Timeout", false)] {
        let policies = json!([{ "match": { "types": ["timeout", "Custom"] }, "attempts": 1 }]);
        let with = json!({ "failure": { "code": "A.B", "type": kind } });
        let ran = around(json!([retry(policies, json!({}))]), with).run();
        assert_eq!(ran.code() == EXHAUSTED, fits, "{kind}");
    }
}

/// "Matches only a failure asserting the same explicit retryable value; an unset signal matches neither."
#[test]
fn retryable_has_three_values() {
    for (asserted, wanted, fits) in [
        (json!(true), true, true),
        (json!(false), true, false),
        (json!(null), true, false),
        (json!(true), false, false),
        (json!(false), false, true),
        (json!(null), false, false),
    ] {
        let policies = json!([{ "match": { "retryable": wanted }, "attempts": 1 }]);
        let with = json!({ "failure": { "code": "A.B", "retryable": asserted } });
        let ran = around(json!([retry(policies, json!({}))]), with).run();
        assert_eq!(ran.code() == EXHAUSTED, fits, "{asserted} {wanted}");
    }
}
