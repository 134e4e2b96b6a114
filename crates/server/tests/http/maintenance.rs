//! Maintenance mode, and numbers over time.

use crate::common::{Harness, Parts, text};
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;

const PATH: &str = "/admin/system/maintenance";

async fn state(harness: &Harness, id: &str) -> String {
    text(&harness.job(id).await["state"])
}

async fn begin(harness: &Harness) -> Value {
    let body = json!({ "enabled": true, "reason": "a new disk", "estimated_duration": "PT30M" });
    harness.post(PATH, body).await.expect(200)
}

#[tokio::test]
async fn under_maintenance_jobs_are_enqueued_and_none_is_claimed_promoted_or_scheduled() {
    let harness = Harness::new();
    let held = harness.enqueue_with(json!({})).await;
    let job = harness.fetch().await.expect("a job");
    let daily = json!({ "name": "hourly", "cron": "@hourly", "type": "report.make" });
    harness.post("/cron", daily).await.expect(201);
    let begun = begin(&harness).await;
    let expected = json!({
        "maintenance": true, "reason": "a new disk",
        "enabled_at": "2026-02-13T10:00:00.000000Z", "estimated_end": "2026-02-13T10:30:00.000000Z",
    });
    assert_eq!(begun, expected);
    assert_eq!(harness.get(PATH).await.expect(200), expected);
    assert_eq!(harness.get("/health").await.expect(200)["maintenance"], true);
    let available = harness.enqueue_with(json!({})).await;
    let later = harness.enqueue_with(json!({ "scheduled_at": "+PT1S" })).await;
    harness.advance_ms(3_600_000.0 - 1_000.0).await;
    assert_eq!(harness.fetch().await, None);
    assert_eq!(state(&harness, &available).await, "available");
    assert_eq!(state(&harness, &later).await, "scheduled", "it is due for an hour");
    assert_eq!(harness.get("/cron/hourly").await.expect(200)["run_count"], 0);
    let ack = json!({ "job_id": job["id"], "lease_token": job["lease_token"] });
    harness.post("/workers/ack", ack).await.expect(409);
    assert_ne!(state(&harness, &held).await, "active", "leases end as ever");
    assert_eq!(harness.post(PATH, json!({ "enabled": false })).await.expect(200), json!({ "maintenance": false }));
    assert_eq!(harness.get("/health").await.expect(200).get("maintenance"), None);
    harness.advance_ms(2_000.0).await;
    assert_eq!(harness.get("/cron/hourly").await.expect(200)["run_count"], 1);
    assert_eq!(state(&harness, &later).await, "available");
    assert!(harness.fetch().await.is_some());
}

#[tokio::test]
async fn maintenance_is_stored_and_holds_on_other_nodes() {
    let store = Arc::new(Memory::new());
    let node = || Harness::with(Parts { store: Arc::clone(&store) as _, ..Parts::default() });
    let (here, there) = (node(), node());
    here.enqueue_with(json!({})).await;
    begin(&here).await;
    assert_eq!(there.get(PATH).await.expect(200)["reason"], "a new disk");
    assert_eq!(there.fetch().await, None);
    let changed = there.post(PATH, json!({ "enabled": true, "reason": "two disks" })).await.expect(200);
    assert_eq!((&changed["reason"], changed.get("estimated_end")), (&json!("two disks"), None));
    let restarted = node();
    assert_eq!(restarted.get(PATH).await.expect(200), changed, "since when stays");
    there.post(PATH, json!({ "enabled": false })).await.expect(200);
    there.post(PATH, json!({ "enabled": false })).await.expect(200);
    assert_eq!(here.get(PATH).await.expect(200)["maintenance"], false);
    assert!(here.fetch().await.is_some());
}

#[tokio::test]
async fn maintenance_is_asked_for_in_known_words() {
    let harness = Harness::new();
    for (wrong, expected) in [
        (json!({}), "/enabled"),
        (json!({ "enabled": "yes" }), "/enabled"),
        (json!({ "enabled": true, "estimated_duration": "30m" }), "PT30M"),
        (json!({ "enabled": true, "reasn": "x" }), "reason"),
        (json!({ "enabled": true, "reason": "x".repeat(1_001) }), "at most 1000 bytes"),
        (json!({ "enabled": false, "reason": "done" }), "leave them out"),
    ] {
        let refused = harness.post(PATH, wrong.clone()).await.expect(400);
        assert!(text(&refused["error"]["message"]).contains(expected), "{wrong}: {refused}");
    }
    assert_eq!(harness.get(PATH).await.expect(200)["maintenance"], false);
}

async fn parts(harness: &Harness, query: &str) -> Vec<Value> {
    let history = harness.get(&format!("/admin/stats/history{query}")).await.expect(200);
    history["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn history_counts_by_minute_and_says_since_when() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 1 });
    let done = harness.enqueue_with(json!({ "queue": "a" })).await;
    harness.advance_clock_ms(500.0);
    harness.post("/workers/fetch", json!({ "queues": ["a"] })).await.expect(200);
    harness.post("/workers/ack", json!({ "job_id": done })).await.expect(200);
    harness.advance_clock_ms(119_500.0);
    let failed = harness.enqueue_with(json!({ "queue": "b", "retry": retry })).await;
    harness.post("/workers/fetch", json!({ "queues": ["b"] })).await.expect(200);
    harness.fail(&failed).await;
    let minutes = parts(&harness, "?period=1m").await;
    let first = json!({
        "timestamp": "2026-02-13T10:00:00.000000Z", "processed": 1, "failed": 0, "enqueued": 1,
        "latency_p50_ms": 512, "latency_p99_ms": 512,
    });
    let empty = json!({
        "timestamp": "2026-02-13T10:01:00.000000Z", "processed": 0, "failed": 0, "enqueued": 0,
        "latency_p50_ms": null, "latency_p99_ms": null,
    });
    assert_eq!((&minutes[0], &minutes[1], minutes.len()), (&first, &empty, 3), "from the start of the process on");
    assert_eq!((&minutes[2]["failed"], &minutes[2]["enqueued"]), (&json!(1), &json!(1)));
    let whole = harness.get("/admin/stats/history").await.expect(200);
    assert_eq!((&whole["period"], &whole["counted_since"]), (&json!("5m"), &json!("2026-02-13T10:00:00.000000Z")));
    assert_eq!((&whole["data"][0]["processed"], &whole["data"][0]["failed"]), (&json!(1), &json!(1)));
    assert_eq!(parts(&harness, "?period=1h&queue=b").await[0]["processed"], 0);
    assert_eq!(parts(&harness, "?period=1d").await[0]["enqueued"], 2);
    assert_eq!(parts(&harness, "?period=1m&until=2026-02-13T10:00:30Z").await, [first]);
    let queue = harness.get("/admin/queues/a").await.expect(200);
    assert_eq!(queue["latency_ms"], json!({ "p50": 512, "p95": 512, "p99": 512 }));
    harness.advance_clock_ms(25.0 * 3_600_000.0);
    harness.enqueue_with(json!({ "queue": "a" })).await;
    let later = harness.get("/admin/stats/history?period=1m&since=2026-02-13T10:00:00Z").await.expect(200);
    assert_eq!(later["counted_since"], "2026-02-13T11:03:00.000000Z", "minutes are those of a day");
    assert_eq!(parts(&harness, "?period=1h&since=2026-02-13T10:00:00Z").await[0]["processed"], 1);
    assert_eq!(harness.get("/admin/queues/a").await.expect(200)["latency_ms"]["p50"], Value::Null);
    for wrong in [
        "?period=2m",
        "?since=yesterday",
        "?since=2026-02-15T00:00:00Z&until=2026-02-14T00:00:00Z",
        "?queue=A%20B",
        "?peroid=1m",
    ] {
        harness.get(&format!("/admin/stats/history{wrong}")).await.expect(400);
    }
}

#[tokio::test]
async fn jobs_are_listed_by_when_they_were_created_and_in_one_order() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(harness.enqueue_with(json!({})).await);
        harness.advance_clock_ms(60_000.0);
    }
    let listed = async |query: &str| -> Vec<String> {
        let page = harness.get(&format!("/admin/jobs{query}")).await.expect(200);
        page["items"].as_array().unwrap().iter().map(|job| text(&job["id"])).collect()
    };
    let newest: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(listed("?sort=created_at&order=desc").await, newest);
    assert_eq!(listed("?since=2026-02-13T10:01:00Z").await, newest[..3]);
    assert_eq!(listed("?since=2026-02-13T10:01:00Z&until=2026-02-13T10:03:00Z").await, newest[1..3]);
    let range = "since=2026-02-13T10:00:00Z&until=2026-02-13T10:03:00Z";
    let first = harness.get(&format!("/admin/jobs?{range}&per_page=2")).await.expect(200);
    assert_eq!((&first["items"][0]["id"], &first["pagination"]["has_more"]), (&json!(newest[1]), &json!(true)));
    let cursor = text(&first["pagination"]["next_cursor"]);
    assert_eq!(listed(&format!("?{range}&per_page=2&cursor={cursor}")).await, newest[3..]);
    for wrong in ["?sort=priority", "?sort=scheduled_at", "?order=asc", "?since=x", "?until=x"] {
        let refused = harness.get(&format!("/admin/jobs{wrong}")).await.expect(400);
        assert!(text(&refused["error"]["message"]).contains("found"), "{refused}");
    }
}
