//! RET-14, RET-15 and RET-17: what can be read afterwards.

use crate::common::{Bench, Parts, START, text};
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

#[tokio::test]
async fn ret_14_the_state_of_retries_can_be_read() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let bench = Bench::with(parts());
    let id = bench.enqueue(json!({ "max_attempts": 3, "initial_interval": "PT10S", "jitter": false })).await;
    let quiet = |job: &Value| job.get("next_retry_at").is_none() && job.get("next_attempt_at").is_none();
    assert!(quiet(&bench.job(&id).await));
    bench.fetch().await.unwrap();
    assert!(quiet(&bench.job(&id).await));
    let reply = bench.fail_with(&id, json!({ "type": "First", "message": "1", "details": { "k": 1 } })).await;
    let job = bench.job(&id).await;
    assert_eq!(job["state"], "retryable");
    assert_eq!(text(&job["next_retry_at"]), "2026-02-13T10:00:10.000000Z");
    for key in ["next_retry_at", "next_attempt_at", "retry_delay_ms"] {
        assert_eq!(job[key], reply[key], "{key}");
    }
    bench.run_again(&reply).await;
    bench.fail_with(&id, json!({ "type": "Second", "message": "2" })).await;
    drop(bench);

    let bench = Bench::at(parts(), START + 11_000_000);
    let job = bench.job(&id).await;
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
    let bench = Bench::new();
    let id = bench.enqueue(json!({ "max_attempts": 3 })).await;
    bench.fetch().await.unwrap();
    let reply = bench.fail(&id).await;
    bench.run_again(&reply).await;
    bench.post("/workers/ack", json!({ "job_id": id, "result": { "ok": true } })).await.expect(200);
    let job = bench.job(&id).await;
    assert_eq!(job["state"], "completed");
    assert!(job.get("error").is_none());
    assert_eq!(job["errors"].as_array().unwrap().len(), 1);
    assert_eq!(job["result"], json!({ "ok": true }));
}

#[tokio::test]
async fn ret_15_at_least_ten_errors_are_kept_newest_last() {
    let bench = Bench::new();
    let id = bench.enqueue(json!({ "max_attempts": 40, "jitter": false, "backoff_coefficient": 1.0 })).await;
    bench.fetch().await.unwrap();
    for attempt in 1..=30 {
        let reply = bench.fail_with(&id, json!({ "message": format!("failure {attempt}") })).await;
        if attempt == 12 {
            assert_eq!(bench.job(&id).await["errors"].as_array().unwrap().len(), 12);
        }
        bench.run_again(&reply).await;
    }
    let job = bench.job(&id).await;
    let errors = job["errors"].as_array().unwrap();
    assert!(errors.len() >= 10, "{}", errors.len());
    assert_eq!(errors.last().unwrap()["message"], "failure 30");
    assert!(errors.windows(2).all(|pair| pair[0]["attempt"].as_u64() < pair[1]["attempt"].as_u64()));
}

#[tokio::test]
async fn ret_17_only_dead_letters_are_among_the_dead_letters() {
    let bench = Bench::new();
    let discarded = bench.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "discard" })).await;
    let dead = bench.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" })).await;
    let default = bench.enqueue(json!({ "max_attempts": 1 })).await;
    // Enqueued at the same moment, they come in the order of their names.
    for _ in 0..3 {
        bench.fetch().await.unwrap();
    }
    for id in [&discarded, &dead, &default] {
        let reply = bench.fail(id).await;
        assert_eq!(reply["state"], "discarded");
        assert_eq!(reply["dead_letter"], *id == dead);
    }
    assert_eq!(bench.dead().await, [dead]);
    assert_eq!(bench.job(&discarded).await["state"], "discarded", "it can still be looked up");
    bench.get(&format!("/dead-letter/{discarded}")).await.expect(404);
}
