//! The admin API: numbers, queues, jobs, dead letters, and many jobs at once.

use crate::common::{Harness, Parts, text};
use redrive_server::ApiKeys;
use serde_json::{Value, json};

async fn dead_letter(harness: &Harness, queue: &str) -> String {
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let id = harness.enqueue_with(json!({ "queue": queue, "retry": retry })).await;
    harness.post("/workers/fetch", json!({ "queues": [queue] })).await.expect(200);
    harness.fail(&id).await;
    id
}

async fn send(harness: &Harness, method: &str, path: &str, body: Value) -> crate::common::Reply {
    harness.call(method, &format!("/ojs/v1/admin{path}"), &body).await
}

#[tokio::test]
async fn numbers_come_from_counters_and_recent_events() {
    let harness = Harness::new();
    for queue in ["a", "b"] {
        dead_letter(&harness, queue).await;
        harness.enqueue_with(json!({ "queue": queue })).await;
    }
    let done = harness.enqueue_with(json!({})).await;
    harness.fetch().await.unwrap();
    harness.post("/workers/ack", json!({ "job_id": done })).await.expect(200);
    harness.advance_clock_ms(2_000.0);
    let stats = harness.get("/admin/stats").await.expect(200);
    assert_eq!((&stats["queues"], &stats["workers"], &stats["uptime_seconds"]), (&json!(3), &json!(1), &json!(2)));
    let jobs = &stats["jobs"];
    let counts = [&jobs["available"], &jobs["active"], &jobs["completed"], &jobs["discarded"]];
    assert_eq!(counts, [&json!(2), &json!(0), &json!(1), &json!(2)]);
    assert_eq!(stats["throughput"], json!({ "processed_per_minute": 1.0, "failed_per_minute": 2.0 }));
    harness.advance_clock_ms(60_000.0);
    let stats = harness.get("/admin/stats").await.expect(200);
    assert_eq!(stats["throughput"], json!({ "processed_per_minute": 0.0, "failed_per_minute": 0.0 }));
}

#[tokio::test]
async fn queues_are_listed_paused_and_resumed() {
    let harness = Harness::new();
    for queue in ["a", "b", "c"] {
        harness.enqueue_with(json!({ "queue": queue })).await;
    }
    let listed = harness.get("/admin/queues?per_page=2&page=2").await.expect(200);
    assert_eq!((&listed["items"][0]["name"], &listed["pagination"]["total"]), (&json!("c"), &json!(3)));
    let paused = send(&harness, "POST", "/queues/a/pause", json!({})).await.expect(200);
    assert_eq!((&paused["name"], &paused["paused"]), (&json!("a"), &json!(true)));
    assert!(paused["paused_at"].is_string());
    let queue = harness.get("/admin/queues/a").await.expect(200);
    assert_eq!((&queue["state"], &queue["counts"]["available"]), (&json!("paused"), &json!(1)));
    assert_eq!(queue["configuration"]["retention"]["completed"], "PT86400S");
    let resumed = harness.call_text("POST", "/ojs/v1/admin/queues/a/resume", "").await.expect(200);
    assert!(resumed["resumed_at"].is_string() && resumed["paused"] == false, "{resumed}");
    harness.get("/admin/queues/nothing").await.expect(404);
    send(&harness, "POST", "/queues/a/pause", json!({ "forever": true })).await.expect(400);
}

#[tokio::test]
async fn a_job_is_shown_with_its_policy_errors_and_times() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 3 })).await;
    let new = harness.get(&format!("/admin/jobs/{id}")).await.expect(200);
    assert_eq!((&new["errors"], &new["metadata"]["started_at"]), (&json!([]), &Value::Null));
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    let shown = harness.get(&format!("/admin/jobs/{id}")).await.expect(200);
    assert_eq!((&shown["id"], shown.get("job")), (&json!(id), None));
    assert_eq!((&shown["retry_policy"]["max_attempts"], &shown["retry_policy"]), (&json!(3), &shown["retry"]));
    assert_eq!(shown["errors"].as_array().map(Vec::len), Some(1));
    let times = shown["metadata"].as_object().unwrap();
    assert_eq!(times.len(), 7);
    assert_eq!((&times["created_at"], &times["completed_at"]), (&json!("2026-02-13T10:00:00.000000Z"), &Value::Null));
    let cancelled = harness.call_text("POST", &format!("/ojs/v1/admin/jobs/{id}/cancel"), "").await.expect(200);
    assert_eq!((&cancelled["state"], &cancelled["previous_state"]), (&json!("cancelled"), &json!("retryable")));
    harness.call_text("POST", &format!("/ojs/v1/admin/jobs/{id}/cancel"), "").await.expect(409);
    send(&harness, "POST", &format!("/jobs/{id}/cancel"), json!({ "force": true })).await.expect(400);
    harness.get("/admin/jobs/nothing").await.expect(404);
}

#[tokio::test]
async fn many_jobs_are_cancelled_by_a_filter_and_with_confirmation() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for options in [json!({ "queue": "a" }), json!({ "queue": "a", "scheduled_at": "+PT1H" }), json!({ "queue": "b" })]
    {
        ids.push(harness.enqueue_with(options).await);
        harness.advance_clock_ms(1_000.0);
    }
    let done = dead_letter(&harness, "z").await;
    let cancel = |body: Value| send(&harness, "POST", "/jobs/bulk/cancel", body);
    for (wrong, expected) in [
        (json!({ "confirm": true }), "\"all\": true"),
        (json!({ "filter": { "queue": "a" } }), "would cancel 2 jobs"),
        (json!({ "filter": { "state": "completed" }, "confirm": true }), "have not ended"),
        (json!({ "filter": { "error_type": "Boom" }, "confirm": true }), "unknown field"),
        (json!({ "filter": { "qeue": "a" }, "confirm": true }), "did you mean \"queue\"?"),
        (json!({ "filter": { "queue": "a" }, "confirm": true, "really": 1 }), "unknown field"),
    ] {
        let error = cancel(wrong.clone()).await.expect(400);
        assert!(text(&error["error"]["message"]).contains(expected), "{wrong}: {error}");
    }
    let counted = cancel(json!({ "filter": { "since": "2026-02-13T10:00:01Z" }, "dry_run": true })).await.expect(200);
    assert_eq!(counted["matched"], 2, "by when they were enqueued");
    let one = cancel(json!({ "filter": { "queue": "a", "state": "scheduled" }, "confirm": true })).await.expect(200);
    assert_eq!((&one["action"], &one["matched"], &one["succeeded"]), (&json!("cancel"), &json!(1), &json!(1)));
    assert_eq!(harness.job(&ids[1]).await["state"], "cancelled");
    let rest = cancel(json!({ "all": true, "confirm": true })).await.expect(200);
    assert_eq!((&rest["matched"], &rest["failed"]), (&json!(2), &json!(0)));
    assert_eq!(harness.job(&done).await["state"], "discarded", "what has ended stays");
}

#[tokio::test]
async fn dead_letters_have_numbered_pages_and_are_deleted_by_age() {
    let harness = Harness::new();
    let old = dead_letter(&harness, "a").await;
    harness.advance_clock_ms(60_000.0);
    let (new, other) = (dead_letter(&harness, "b").await, dead_letter(&harness, "c").await);
    let page = harness.get("/admin/dead-letter?per_page=2&page=2").await.expect(200);
    assert_eq!((&page["items"][0]["id"], &page["pagination"]["page"]), (&json!(old), &json!(2)));
    assert_eq!(harness.get("/admin/dead-letter/stats").await.expect(200)["total"], 3);
    assert_eq!(harness.get(&format!("/admin/dead-letter/{new}")).await.expect(200)["id"], json!(new));
    send(&harness, "POST", &format!("/dead-letter/{other}/retry"), json!({})).await.expect(200);
    for (wrong, expected) in [
        (json!({ "older_than": "2026-02-13T10:00:30Z" }), "would delete 1 dead letters"),
        (json!({ "older_than": "yesterday", "confirm": true }), "a timestamp"),
        (json!({ "older_than": "2026-02-13T10:00:30Z", "filter": {}, "confirm": true }), "unknown field"),
        (json!({ "confirm": true }), "\"all\": true"),
        (json!({ "filter": {}, "confirm": true }), "\"all\": true"),
        (json!({ "older_than": null, "confirm": true }), "a timestamp"),
    ] {
        let error = send(&harness, "DELETE", "/dead-letter", wrong.clone()).await.expect(400);
        assert!(text(&error["error"]["message"]).contains(expected), "{wrong}: {error}");
    }
    let deleted = json!({ "older_than": "2026-02-13T10:00:30Z", "confirm": true });
    assert_eq!(send(&harness, "DELETE", "/dead-letter", deleted).await.expect(200)["succeeded"], 1);
    assert_eq!(harness.dead().await, std::slice::from_ref(&new));
    assert_eq!(harness.delete(&format!("/admin/dead-letter/{new}")).await.expect(204), Value::Null);
    harness.delete(&format!("/admin/dead-letter/{new}")).await.expect(404);
}

#[tokio::test]
async fn a_queue_is_purged_of_jobs_that_have_ended() {
    let harness = Harness::new();
    dead_letter(&harness, "a").await;
    let cancelled = harness.enqueue_with(json!({ "queue": "a" })).await;
    harness.delete(&format!("/jobs/{cancelled}")).await.expect(200);
    let waiting = harness.enqueue_with(json!({ "queue": "a" })).await;
    dead_letter(&harness, "b").await;
    for wrong in [
        json!({ "confirm": true }),
        json!({ "states": [], "confirm": true }),
        json!({ "states": ["available"], "confirm": true }),
        json!({ "states": ["cancelled"] }),
        json!({ "states": ["cancelled"], "older": "2026-02-13T10:00:30Z", "confirm": true }),
    ] {
        send(&harness, "DELETE", "/queues/a/jobs", wrong).await.expect(400);
    }
    let early = json!({ "states": ["cancelled"], "older_than": "2026-02-13T09:00:00Z", "confirm": true });
    assert_eq!(send(&harness, "DELETE", "/queues/a/jobs", early).await.expect(200)["purged_count"], 0);
    let purge = json!({ "states": ["discarded", "cancelled"], "confirm": true });
    let purged = send(&harness, "DELETE", "/queues/a/jobs", purge).await.expect(200);
    assert_eq!((&purged["purged_count"], &purged["states"]), (&json!(2), &json!(["cancelled", "discarded"])));
    assert_eq!(harness.job(&waiting).await["state"], "available");
    assert_eq!(harness.dead().await.len(), 1);
}

#[tokio::test]
async fn the_configuration_is_shown_without_secrets() {
    let key = "0123456789abcdef0123456789abcdef";
    let harness = Harness::with(Parts { keys: ApiKeys::read(key).unwrap(), ..Parts::default() });
    let request =
        axum::http::Request::get("/ojs/v1/admin/system/config").header("authorization", format!("Bearer {key}"));
    let config = harness.send(request.body(axum::body::Body::empty()).unwrap()).await.expect(200);
    assert_eq!((&config["backend"], &config["api_key_required"]), (&json!("memory"), &json!(true)));
    assert_eq!((&config["limits"]["streams"], &config["lease_seconds"]), (&json!(100), &json!(1800.0)));
    assert!(!config.to_string().contains(key));
    harness.get("/admin/system/config").await.expect(401);
}
