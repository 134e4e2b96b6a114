//! RET-01: a job runs exactly as often as its policy allows, however its runs end.

use crate::common::{Harness, Parts, START, text};
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

fn policy(max_attempts: u32) -> Value {
    json!({ "max_attempts": max_attempts, "initial_interval": "PT1S", "jitter": false })
}

#[tokio::test]
async fn ret_01_zero_and_one_run_once() {
    for max_attempts in [0, 1] {
        let harness = Harness::new();
        let id = harness.enqueue(policy(max_attempts)).await;
        assert_eq!(harness.job(&id).await["max_attempts"], max_attempts, "echoed as it was said");
        assert_eq!(harness.fetch().await.unwrap()["attempt"], 1);
        let reply = harness.fail(&id).await;
        assert_eq!((&reply["state"], &reply["attempt"]), (&json!("discarded"), &json!(1)));
        harness.advance_ms(1e9).await;
        assert_eq!(harness.fetch().await, None);
    }
}

#[tokio::test]
async fn ret_01_the_bound_holds_across_expiry_and_timeout() {
    let harness = Harness::new();
    let options = json!({ "retry": policy(3), "visibility_timeout_ms": 10_000, "timeout_ms": 60_000 });
    let id = harness.enqueue_with(options).await;
    let mut runs = 0;
    while harness.fetch().await.is_some() {
        runs += 1;
        match runs {
            1 => harness.advance_ms(10_000.0).await,
            2 => {
                // Heartbeats extend the lease, and the timeout of the run still ends it.
                for _ in 0..9 {
                    harness.advance_ms(7_000.0).await;
                    let heartbeat = json!({ "worker_id": "w1", "active_jobs": [id] });
                    harness.post("/workers/heartbeat", heartbeat).await.expect(200);
                }
            }
            _ => {
                harness.fail(&id).await;
            }
        }
        harness.advance_ms(3_600_000.0).await;
    }
    assert_eq!(runs, 3);
    let job = harness.job(&id).await;
    assert_eq!((&job["state"], &job["attempt"]), (&json!("discarded"), &json!(3)));
    let types: Vec<&str> = job["errors"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["visibility_timeout", "timeout", "Boom"]);
}

#[tokio::test]
async fn ret_01_a_released_run_does_not_count_and_releases_are_limited() {
    let harness = Harness::new();
    let id = harness.enqueue(policy(2)).await;
    for _ in 0..100 {
        assert_eq!(harness.fetch().await.unwrap()["attempt"], 1);
        let reply = harness.post("/workers/nack", json!({ "job_id": id, "requeue": true })).await.expect(200);
        assert_eq!((&reply["state"], &reply["attempt"]), (&json!("available"), &json!(1)));
    }
    assert_eq!(harness.fetch().await.unwrap()["attempt"], 1);
    let refused = harness.post("/workers/nack", json!({ "job_id": id, "requeue": true })).await.expect(409);
    assert_eq!(refused["error"]["details"]["reason"], "too_many_releases");
    let reply = harness.fail(&id).await;
    harness.run_again(&reply).await;
    assert_eq!(harness.fail(&id).await["state"], "discarded", "two failed attempts, however many were released");
}

#[tokio::test]
async fn ret_01_the_bound_holds_across_a_restart() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let first = Harness::with(parts());
    let id = first.enqueue(policy(2)).await;
    first.fetch().await.unwrap();
    first.fail(&id).await;
    drop(first);
    let second = Harness::at(parts(), START + 5_000_000);
    second.advance_ms(0.0).await;
    assert_eq!(second.fetch().await.unwrap()["attempt"], 2);
    drop(second);
    // The second run was under way when the server ended: its lease runs out in the third.
    let third = Harness::at(parts(), START + 3_600_000_000);
    third.advance_ms(0.0).await;
    let job = third.job(&id).await;
    assert_eq!((&job["state"], &job["attempt"]), (&json!("discarded"), &json!(2)));
    assert_eq!(third.fetch().await, None);
}

#[tokio::test]
async fn ret_01_two_workers_never_hold_the_same_run() {
    let harness = Harness::new();
    for _ in 0..20 {
        harness.enqueue(policy(1)).await;
    }
    let fetch = |worker: &'static str| harness.fetch_as(worker);
    let mut seen = Vec::new();
    for _ in 0..10 {
        let (one, other) = tokio::join!(fetch("w1"), fetch("w2"));
        seen.extend([one.unwrap(), other.unwrap()].map(|job| text(&job["id"])));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 20);
    assert_eq!(harness.fetch().await, None);
}
