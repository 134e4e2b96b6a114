//! RET-11 to RET-13: waiting, leases and heartbeats.

use crate::common::{Harness, Parts, START, ms, text};
use redrive_store::Memory;
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn ret_11_no_run_starts_before_its_delay_is_over() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let harness = Harness::with(parts());
    let id = harness.enqueue(json!({ "initial_interval": "PT10S" })).await;
    harness.fetch().await.unwrap();
    let delay = ms(&harness.fail(&id).await["retry_delay_ms"]);
    harness.advance_ms(delay * 0.9).await;
    assert_eq!(harness.fetch().await, None, "at 90 %");
    let now = harness.now().micros();
    drop(harness);
    let harness = Harness::at(parts(), now);
    harness.advance_ms(0.0).await;
    assert_eq!(harness.fetch().await, None, "at 90 %, after a restart");
    harness.advance_ms(delay * 0.1 + 1.0).await;
    assert_eq!(harness.fetch().await.unwrap()["attempt"], 2);
}

#[tokio::test]
async fn ret_12_an_expired_lease_is_a_failed_run() {
    let harness = Harness::new();
    let retry =
        json!({ "max_attempts": 2, "on_exhaustion": "dead_letter", "initial_interval": "PT1S", "jitter": false });
    let id = harness.enqueue_with(json!({ "retry": retry, "visibility_timeout_ms": 3_000 })).await;
    harness.fetch().await.unwrap();
    harness.advance_ms(2_999.0).await;
    assert_eq!(harness.job(&id).await["state"], "active");
    harness.advance_ms(1.0).await;
    let job = harness.job(&id).await;
    assert_eq!(
        (&job["state"], &job["attempt"]),
        (&json!("available"), &json!(1)),
        "the wait counts from the last heartbeat"
    );
    let error = &job["errors"][0];
    assert_eq!((&error["type"], &error["code"]), (&json!("visibility_timeout"), &json!("timeout")));
    assert_eq!(error["details"]["timeout_kind"], "stalled");
    assert_eq!(harness.fetch().await.unwrap()["attempt"], 2);
    harness.advance_ms(3_000.0).await;
    assert_eq!(harness.job(&id).await["state"], "discarded", "the attempts are used up");
    assert_eq!(harness.dead().await, [id], "and on_exhaustion applies");
}

#[tokio::test]
async fn ret_12_a_long_backoff_holds_after_an_expiry() {
    let harness = Harness::new();
    let retry = json!({ "initial_interval": "PT60S", "jitter": false });
    let id = harness.enqueue_with(json!({ "retry": retry, "visibility_timeout_ms": 3_000 })).await;
    harness.fetch().await.unwrap();
    harness.advance_ms(3_000.0).await;
    let job = harness.job(&id).await;
    assert_eq!(
        (&job["state"], text(&job["next_retry_at"])),
        (&json!("retryable"), "2026-02-13T10:01:00.000000Z".into())
    );
    harness.advance_ms(56_999.0).await;
    assert_eq!(harness.fetch().await, None);
    harness.advance_ms(1.0).await;
    assert_eq!(harness.fetch().await.unwrap()["attempt"], 2);
}

#[tokio::test]
async fn ret_12_a_timeout_is_a_failed_run_and_is_never_on_a_list() {
    let harness = Harness::new();
    let retry = json!({ "non_retryable_errors": ["timeout", "visibility_timeout", "error"], "jitter": false });
    let id = harness.enqueue_with(json!({ "retry": retry, "timeout_ms": 2_000 })).await;
    harness.fetch().await.unwrap();
    harness.advance_ms(2_000.0).await;
    let job = harness.job(&id).await;
    assert_eq!((&job["state"], &job["error"]["type"]), (&json!("retryable"), &json!("timeout")));
    assert_eq!(job["error"]["details"]["timeout_kind"], "execution");
}

#[tokio::test]
async fn ret_13_heartbeats_in_every_form_keep_the_lease() {
    for heartbeat in [
        json!({ "worker_id": "w1", "active_jobs": ["ID"] }),
        json!({ "worker_id": "w1", "active_jobs": 1, "active_job_ids": ["ID"], "state": "running", "pid": 1 }),
        json!({ "worker_id": "w1", "job_id": "ID" }),
        json!({ "active_jobs": ["ID"] }),
        json!({ "active_jobs": [{ "job_id": "ID", "lease_token": "TOKEN" }] }),
    ] {
        let harness = Harness::new();
        let id = harness.enqueue_with(json!({ "visibility_timeout_ms": 3_000 })).await;
        let token = text(&harness.fetch().await.unwrap()["lease_token"]);
        for _ in 0..4 {
            harness.advance_ms(2_000.0).await;
            let text = heartbeat.to_string().replace("ID", &id).replace("TOKEN", &token);
            let body = harness.call_text("POST", "/ojs/v1/workers/heartbeat", &text).await.expect(200);
            assert_eq!((&body["state"], &body["jobs_extended"]), (&json!("running"), &json!([id])), "{heartbeat}");
        }
        assert_eq!(harness.job(&id).await["state"], "active", "{heartbeat}");
        harness.advance_ms(3_000.0).await;
        assert_ne!(harness.job(&id).await["state"], "active", "{heartbeat}");
    }
}

#[tokio::test]
async fn ret_13_a_heartbeat_can_ask_for_more_time() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "visibility_timeout_ms": 3_000 })).await;
    harness.fetch().await.unwrap();
    let heartbeat = json!({ "worker_id": "w1", "active_jobs": [id], "visibility_timeout_ms": 60_000 });
    harness.post("/workers/heartbeat", heartbeat).await.expect(200);
    harness.advance_ms(59_999.0).await;
    assert_eq!(harness.job(&id).await["state"], "active");
    harness.advance_ms(1.0).await;
    assert_ne!(harness.job(&id).await["state"], "active");
}

#[tokio::test]
async fn ret_13_a_heartbeat_of_another_worker_or_after_the_end_extends_nothing() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "visibility_timeout_ms": 3_000 })).await;
    harness.fetch().await.unwrap();
    let heartbeat = |worker: &str| json!({ "worker_id": worker, "active_jobs": [id] });
    harness.advance_ms(2_000.0).await;
    let body = harness.post("/workers/heartbeat", heartbeat("w2")).await.expect(200);
    assert_eq!(body["jobs_extended"], json!([]));
    assert_eq!(body["jobs_refused"][0]["reason"], "other_worker");
    harness.advance_ms(1_000.0).await;
    assert_ne!(harness.job(&id).await["state"], "active", "the other heartbeat did not count");
    let body = harness.post("/workers/heartbeat", heartbeat("w1")).await.expect(200);
    assert_eq!(body["jobs_extended"], json!([]));
    assert_eq!(body["jobs_refused"][0]["reason"], "wrong_state");
}

#[tokio::test]
async fn ret_13_a_lease_survives_a_restart() {
    let store = Arc::new(Memory::new());
    let parts = || Parts { store: Arc::clone(&store) as _, ..Parts::default() };
    let harness = Harness::with(parts());
    let id = harness.enqueue_with(json!({ "visibility_timeout_ms": 3_000 })).await;
    harness.fetch().await.unwrap();
    drop(harness);
    let harness = Harness::at(parts(), START + 2_000_000);
    let heartbeat = json!({ "worker_id": "w1", "active_jobs": [id] });
    assert_eq!(harness.post("/workers/heartbeat", heartbeat).await.expect(200)["jobs_extended"], json!([id]));
    harness.advance_ms(2_999.0).await;
    assert_eq!(harness.job(&id).await["state"], "active");
    harness.post("/workers/ack", json!({ "job_id": id, "worker_id": "w1" })).await.expect(200);
}
