//! Workers as operators see them, and what they are told.

use crate::common::{Harness, Parts, text};
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

/// The answer to a heartbeat of a worker.
async fn heartbeat(harness: &Harness, worker: &str, more: Value) -> Value {
    let mut body = json!({ "worker_id": worker });
    more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
    harness.post("/workers/heartbeat", body).await.expect(200)
}

async fn workers(harness: &Harness) -> Value {
    harness.get("/admin/workers").await.expect(200)
}

#[tokio::test]
async fn workers_are_known_from_fetches_heartbeats_and_leases() {
    let harness = Harness::new();
    harness.enqueue_with(json!({})).await;
    let job = harness.fetch_as("fetcher").await.unwrap();
    let description = json!({
        "hostname": "host-1", "pid": 4711, "queues": ["mail", "default"], "concurrency": 10, "labels": ["canary"],
        "version": "1.2.0", "started_at": "2026-02-13T09:00:00Z", "state": "running", "anything": 1,
    });
    heartbeat(&harness, "described", description).await;
    harness.advance_clock_ms(5_000.0);
    heartbeat(&harness, "described", json!({ "active_jobs": [] })).await;
    let body = workers(&harness).await;
    assert_eq!(body["summary"], json!({ "total": 2, "running": 2, "quiet": 0, "draining": 0, "stale": 0 }));
    assert_eq!((&body["pagination"]["total"], &body["pagination"]["page"]), (&json!(2), &json!(1)));
    let expected = json!({
        "id": "described", "state": "running", "stale": false, "queues": ["mail", "default"], "active_jobs": 0,
        "first_seen_at": "2026-02-13T10:00:00.000000Z", "last_seen_at": "2026-02-13T10:00:05.000000Z",
        "hostname": "host-1", "version": "1.2.0", "pid": 4711, "concurrency": 10,
        "started_at": "2026-02-13T09:00:00.000000Z", "last_heartbeat_at": "2026-02-13T10:00:05.000000Z",
        "labels": ["canary"],
    });
    assert_eq!(body["items"][0], expected, "what a heartbeat does not say stays");
    let fetcher = &body["items"][1];
    assert_eq!((&fetcher["queues"], &fetcher["active_jobs"]), (&json!(["default"]), &json!(1)));
    let shown = harness.get("/admin/workers/fetcher").await.expect(200);
    assert_eq!((&shown["jobs"][0]["job_id"], &shown["active_jobs"]), (&job["id"], &json!(1)));
    harness.get("/admin/workers/nobody").await.expect(404);
    let second = harness.get("/admin/workers?per_page=1&page=2").await.expect(200);
    assert_eq!((&second["items"][0]["id"], &second["summary"]["total"]), (&json!("fetcher"), &json!(2)));
}

#[tokio::test]
async fn workers_of_other_nodes_are_known_by_their_leases() {
    let store = Arc::new(Memory::new());
    let node = || Harness::with(Parts { store: Arc::clone(&store) as _, ..Parts::default() });
    let (here, there) = (node(), node());
    here.enqueue_with(json!({})).await;
    there.fetch_as("far").await.unwrap();
    let body = workers(&here).await;
    assert_eq!((&body["items"][0]["id"], &body["items"][0]["active_jobs"]), (&json!("far"), &json!(1)));
    assert_eq!(here.get("/admin/workers/far").await.expect(200)["active_jobs"], 1);
    here.post("/admin/workers/far/quiet", json!({})).await.expect(404);
}

#[tokio::test]
async fn a_silent_worker_is_stale_and_forgotten_later() {
    let harness = Harness::new();
    heartbeat(&harness, "w", json!({})).await;
    assert_eq!(harness.get("/workers/w/health").await.expect(200)["status"], "ok");
    harness.advance_clock_ms(60_001.0);
    assert_eq!(workers(&harness).await["summary"]["stale"], 1);
    assert_eq!(harness.get("/workers/w/health").await.expect(503)["status"], "stale");
    harness.advance_clock_ms(3_600_000.0);
    assert_eq!(workers(&harness).await["summary"]["total"], 0);
    harness.get("/workers/w/health").await.expect(404);
}

#[tokio::test]
async fn what_an_operator_says_reaches_the_worker_with_its_next_heartbeat() {
    let harness = Harness::new();
    harness.enqueue_with(json!({})).await;
    heartbeat(&harness, "w1", json!({})).await;
    for (path, state) in [("quiet", "quiet"), ("terminate", "terminate")] {
        let told = harness.post(&format!("/admin/workers/w1/{path}"), json!({})).await.expect(200);
        assert_eq!(told["directive"], state);
        assert_eq!(heartbeat(&harness, "w1", json!({ "state": "running" })).await["state"], state);
        assert!(harness.fetch().await.is_none(), "it gets no jobs");
    }
    assert_eq!(workers(&harness).await["items"][0]["directive"], "terminate");
    assert!(harness.fetch_as("w2").await.is_some(), "others do");
    harness.call_text("POST", "/ojs/v1/admin/workers/w1/resume", "").await.expect(200);
    assert_eq!(heartbeat(&harness, "w1", json!({})).await["state"], "running");
    harness.post("/admin/workers/w1/quiet", json!({ "now": true })).await.expect(400);
    harness.post("/admin/workers/w9/quiet", json!({})).await.expect(404);
}

#[tokio::test]
async fn another_process_of_the_same_name_is_not_told_what_the_one_before_was() {
    let harness = Harness::new();
    heartbeat(&harness, "w1", json!({ "pid": 1 })).await;
    harness.post("/admin/workers/w1/terminate", json!({})).await.expect(200);
    assert_eq!(heartbeat(&harness, "w1", json!({ "pid": 1 })).await["state"], "terminate");
    assert_eq!(heartbeat(&harness, "w1", json!({ "pid": 2 })).await["state"], "running");
}

#[tokio::test]
async fn a_worker_that_drains_gets_no_jobs() {
    let harness = Harness::new();
    harness.enqueue_with(json!({})).await;
    let beat = json!({ "worker_id": "w1", "state": "drain", "active_jobs": 2 });
    let answer = harness.post("/workers/beat", beat).await.expect(200);
    assert_eq!((&answer["acknowledged"], &answer["state"]), (&json!(true), &json!("drain")));
    assert!(harness.fetch().await.is_none());
    let health = harness.get("/workers/w1/health").await.expect(503);
    assert_eq!((&health["state"], &health["status"]), (&json!("drain"), &json!("draining")));
    let shutdown = json!({ "worker_id": "w2", "shutdown": true, "active_jobs": 0 });
    assert_eq!(harness.post("/workers/beat", shutdown).await.expect(200)["state"], "drain");
    assert_eq!(workers(&harness).await["summary"]["draining"], 2);
    harness.advance_clock_ms(60_001.0);
    assert!(harness.fetch().await.is_some(), "without heartbeats it is another process of this name");
    for wrong in [
        json!({ "worker_id": "w1", "state": "sleepy" }),
        json!({ "worker_id": "w1", "sate": "drain" }),
        json!({ "state": "drain" }),
    ] {
        harness.post("/workers/beat", wrong).await.expect(400);
    }
    harness.post("/workers/heartbeat", json!({ "worker_id": "w1", "state": "sleepy" })).await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn a_fetch_that_waits_ends_when_its_worker_is_told_to_be_quiet() {
    let harness = Harness::new();
    let wait = json!({ "queues": ["default"], "worker_id": "w1", "wait_ms": 60_000 });
    let fetch = harness.post("/workers/fetch", wait.clone());
    let tell = async {
        while harness.server.waiting_fetches() == 0 || harness.engine.worker("w1").is_none() {
            tokio::task::yield_now().await;
        }
        harness.post("/admin/workers/w1/quiet", json!({})).await.expect(200);
        tokio::time::Instant::now()
    };
    let (fetched, told) = tokio::join!(fetch, tell);
    assert_eq!(fetched.expect(200)["jobs"], json!([]));
    assert_eq!(told.elapsed().as_secs(), 0, "it does not wait any longer");
    harness.enqueue_with(json!({})).await;
    let start = tokio::time::Instant::now();
    assert_eq!(harness.post("/workers/fetch", wait).await.expect(200)["jobs"], json!([]));
    assert_eq!(start.elapsed().as_secs(), 60, "a worker that asks again and again is not answered at once");
}

#[tokio::test]
async fn only_a_stale_worker_is_removed_and_its_runs_fail() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 2, "initial_interval": "PT10S", "jitter": false });
    let id = harness.enqueue(retry).await;
    harness.fetch().await.unwrap();
    let refused = harness.delete("/admin/workers/w1").await.expect(409);
    assert_eq!(refused["error"]["details"]["reason"], "worker_alive");
    assert!(text(&refused["error"]["message"]).contains("60 s"), "{refused}");
    harness.advance_clock_ms(61_000.0);
    let removed = harness.delete("/admin/workers/w1").await.expect(200);
    assert_eq!(removed, json!({ "deleted": true, "id": "w1", "rescheduled_jobs": 1 }));
    let job = harness.job(&id).await;
    assert_eq!((&job["state"], &job["attempt"]), (&json!("retryable"), &json!(1)), "the attempt counts");
    assert_eq!(job["errors"][0]["type"], "worker_removed");
    harness.delete("/admin/workers/w1").await.expect(404);
}
