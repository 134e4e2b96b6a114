//! RET-07, RET-08 and RET-18: errors that end a job, and codes with which handlers speak.

use crate::common::{Harness, text};
use serde_json::{Value, json};

fn policy(on_exhaustion: &str, patterns: &[&str]) -> Value {
    json!({ "max_attempts": 5, "on_exhaustion": on_exhaustion, "non_retryable_errors": patterns, "jitter": false })
}

#[tokio::test]
async fn ret_07_a_listed_error_ends_the_job_even_if_the_worker_would_retry() {
    for error in [
        json!({ "type": "FatalError", "message": "m", "retryable": true }),
        json!({ "code": "FatalError", "message": "m", "retryable": true }),
        json!({ "code": "handler_error", "message": "m", "retryable": true, "details": { "error_class": "FatalError" } }),
        json!({ "code": "handler_error", "message": "m", "retryable": true, "details": { "error_type": "FatalError" } }),
        json!({ "type": "Other", "message": "m", "details": { "error_class": "FatalError" } }),
    ] {
        let harness = Harness::new();
        let id = harness.enqueue(policy("dead_letter", &["FatalError"])).await;
        harness.fetch().await.unwrap();
        let reply = harness.fail_with(&id, error.clone()).await;
        assert_eq!((&reply["state"], &reply["attempt"]), (&json!("discarded"), &json!(1)), "{error}");
        let job = harness.job(&id).await;
        assert_eq!(job["errors"].as_array().unwrap().len(), 1, "recorded");
        let verdict = &job["redrive"]["failures"][0]["verdict"];
        assert_eq!(verdict["reason"]["name"], "non_retryable", "and explained");
        assert_eq!(harness.dead().await, [id], "on_exhaustion applies");
    }
}

#[tokio::test]
async fn ret_07_a_worker_that_says_not_retryable_is_obeyed() {
    let harness = Harness::new();
    let id = harness.enqueue(policy("discard", &[])).await;
    harness.fetch().await.unwrap();
    let reply = harness.fail_with(&id, json!({ "message": "m", "retryable": false })).await;
    assert_eq!(reply["state"], "discarded");
    assert!(harness.dead().await.is_empty());
}

#[tokio::test]
async fn ret_08_control_codes_come_before_everything() {
    for on_exhaustion in ["discard", "dead_letter"] {
        for max_attempts in [1, 5] {
            for (code, state, dead) in [
                ("DISCARD", "discarded", false),
                ("FAIL", "discarded", false),
                ("DEAD_LETTER", "discarded", true),
                ("RETRY", if max_attempts == 1 { "discarded" } else { "retryable" }, on_exhaustion == "dead_letter"),
            ] {
                let harness = Harness::new();
                let retry = json!({ "max_attempts": max_attempts, "on_exhaustion": on_exhaustion });
                let id = harness.enqueue(retry).await;
                harness.fetch().await.unwrap();
                let error = json!({ "code": code, "message": "m", "retryable": true });
                let reply = harness.fail_with(&id, error).await;
                let case = format!("{code} with {on_exhaustion} and {max_attempts} attempts");
                assert_eq!(reply["state"], state, "{case}");
                let expected = if dead && state == "discarded" { vec![id] } else { vec![] };
                assert_eq!(harness.dead().await, expected, "{case}");
            }
        }
    }
}

#[tokio::test]
async fn ret_08_only_the_exact_words_are_control_codes() {
    for code in ["discard", "Dead_Letter", "DEAD-LETTER", "FAILED", "handler_error", "DISCARD "] {
        let harness = Harness::new();
        let id = harness.enqueue(json!({ "max_attempts": 5 })).await;
        harness.fetch().await.unwrap();
        let reply = harness.fail_with(&id, json!({ "code": code, "message": "m" })).await;
        assert_eq!(reply["state"], "retryable", "{code:?} is a label");
    }
}

#[tokio::test]
async fn ret_18_near_misses_do_not_match() {
    for (pattern, error, ends) in [
        ("auth.*", "auth.token", true),
        ("auth.*", "auth.token.expired", true),
        ("auth.*", "auth", false),
        ("auth.*", "authx.y", false),
        ("auth.*", "external.auth.x", false),
        ("auth.*", "Auth.token", false),
        ("auth", "auth", true),
        ("auth", "auth.token", false),
        ("auth", "Auth", false),
        ("*", "anything", false),
        ("FatalError", "FatalError ", false),
    ] {
        let harness = Harness::new();
        let id = harness.enqueue(policy("discard", &[pattern])).await;
        harness.fetch().await.unwrap();
        let reply = harness.fail_with(&id, json!({ "type": error, "message": "m" })).await;
        let expected = if ends { "discarded" } else { "retryable" };
        assert_eq!(text(&reply["state"]), expected, "{pattern} against {error}");
    }
}
