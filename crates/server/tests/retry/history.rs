//! RET-14, RET-15 and RET-17: what can be read afterwards.

use crate::common::{Harness, Parts, START, text};
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn ret_14_the_state_of_retries_can_be_read() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let harness = Harness::with(parts());
    let id = harness.enqueue(json!({ "max_attempts": 3, "initial_interval": "PT10S", "jitter": false })).await;
    let quiet = |job: &Value| job.get("next_retry_at").is_none() && job.get("next_attempt_at").is_none();
    assert!(quiet(&harness.job(&id).await));
    harness.fetch().await.unwrap();
    assert!(quiet(&harness.job(&id).await));
    let reply = harness.fail_with(&id, json!({ "type": "First", "message": "1", "details": { "k": 1 } })).await;
    let job = harness.job(&id).await;
    assert_eq!(job["state"], "retryable");
    assert_eq!(text(&job["next_retry_at"]), "2026-02-13T10:00:10.000000Z");
    for key in ["next_retry_at", "next_attempt_at", "retry_delay_ms"] {
        assert_eq!(job[key], reply[key], "{key}");
    }
    harness.run_again(&reply).await;
    harness.fail_with(&id, json!({ "type": "Second", "message": "2" })).await;
    drop(harness);

    let harness = Harness::at(parts(), START + 11_000_000);
    let job = harness.job(&id).await;
    assert_eq!((&job["attempt"], &job["max_attempts"]), (&json!(2), &json!(3)));
    let errors = job["errors"].as_array().unwrap();
    let shown: Vec<_> = errors.iter().map(|error| (text(&error["type"]), error["attempt"].clone())).collect();
    assert_eq!(shown, [("First".to_owned(), json!(1)), ("Second".to_owned(), json!(2))], "oldest first");
    assert_eq!(errors[0]["details"], json!({ "k": 1 }));
    assert_eq!(errors[0]["timestamp"], errors[0]["occurred_at"]);
    assert_eq!(text(&errors[0]["timestamp"]), "2026-02-13T10:00:00.000000Z");
    assert_eq!(job["error"]["type"], "Second", "the last one");
    let verdict = &job["redrive"]["failures"][1]["verdict"];
    assert_eq!((&verdict["verdict"], &verdict["delay_ms"]), (&json!("retry"), &json!(20_000.0)));
    assert_eq!(job["redrive"]["policy"]["attempts"], json!({ "at_most": 3 }));
}

#[tokio::test]
async fn ret_14_success_clears_the_error_and_keeps_the_history() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 3 })).await;
    harness.fetch().await.unwrap();
    let reply = harness.fail(&id).await;
    harness.run_again(&reply).await;
    harness.post("/workers/ack", json!({ "job_id": id, "result": { "ok": true } })).await.expect(200);
    let job = harness.job(&id).await;
    assert_eq!(job["state"], "completed");
    assert!(job.get("error").is_none());
    assert_eq!(job["errors"].as_array().unwrap().len(), 1);
    assert_eq!(job["result"], json!({ "ok": true }));
}

#[tokio::test]
async fn ret_15_at_least_ten_errors_are_stored_newest_last() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 40, "jitter": false, "backoff_coefficient": 1.0 })).await;
    harness.fetch().await.unwrap();
    for attempt in 1..=30 {
        let reply = harness.fail_with(&id, json!({ "message": format!("failure {attempt}") })).await;
        if attempt == 12 {
            assert_eq!(harness.job(&id).await["errors"].as_array().unwrap().len(), 12);
        }
        harness.run_again(&reply).await;
    }
    let job = harness.job(&id).await;
    let errors = job["errors"].as_array().unwrap();
    assert!(errors.len() >= 10, "{}", errors.len());
    assert_eq!(errors.last().unwrap()["message"], "failure 30");
    assert!(errors.windows(2).all(|pair| pair[0]["attempt"].as_u64() < pair[1]["attempt"].as_u64()));
}

#[tokio::test]
async fn ret_17_only_dead_letters_are_among_the_dead_letters() {
    let harness = Harness::new();
    let discarded = harness.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "discard" })).await;
    let dead = harness.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" })).await;
    let default = harness.enqueue(json!({ "max_attempts": 1 })).await;
    // Enqueued at the same time, they are ordered by their ids.
    for _ in 0..3 {
        harness.fetch().await.unwrap();
    }
    for id in [&discarded, &dead, &default] {
        let reply = harness.fail(id).await;
        assert_eq!(reply["state"], "discarded");
        assert_eq!(reply["dead_letter"], *id == dead);
    }
    assert_eq!(harness.dead().await, [dead]);
    assert_eq!(harness.job(&discarded).await["state"], "discarded", "it can still be looked up");
    harness.get(&format!("/dead-letter/{discarded}")).await.expect(404);
}
