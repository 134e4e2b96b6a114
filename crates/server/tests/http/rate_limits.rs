//! Limits: those that jobs bring, and those that operators set.

use crate::common::Harness;
use serde_json::{Value, json};

async fn enqueue(harness: &Harness, limit: Value) {
    let body = json!({ "type": "a.b", "args": [], "options": { "rate_limit": limit } });
    harness.post("/jobs", body).await.expect(201);
}

async fn fetched(harness: &Harness, count: usize) -> Vec<Value> {
    let body = harness.post("/workers/fetch", json!({ "queues": ["default"], "count": count })).await.expect(200);
    body["jobs"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn a_limit_of_concurrency_is_inspected_and_makes_room() {
    let harness = Harness::new();
    for _ in 0..3 {
        enqueue(&harness, json!({ "key": "stripe-api", "concurrency": 2 })).await;
    }
    let jobs = fetched(&harness, 9).await;
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0]["rate_limit"], json!({ "key": "stripe-api", "concurrency": 2 }), "it is returned");
    let standing = harness.get("/rate-limits/stripe-api").await.expect(200);
    assert_eq!(standing["concurrency"], json!({ "limit": 2, "active": 2, "available": 0 }));
    assert_eq!(standing["waiting_count"], 1);
    harness.post("/workers/ack", json!({ "job_id": jobs[0]["id"] })).await.expect(200);
    assert_eq!(fetched(&harness, 9).await.len(), 1);
    let all = harness.get("/rate-limits").await.expect(200);
    assert_eq!((&all["items"][0]["key"], &all["items"][0]["scope"]), (&json!("stripe-api"), &json!("key")));
    harness.get("/rate-limits/other").await.expect(404);
}

#[tokio::test]
async fn a_limit_without_a_key_is_that_of_the_queue() {
    let harness = Harness::new();
    for _ in 0..2 {
        enqueue(&harness, json!({ "max_per_second": 1 })).await;
    }
    assert_eq!((fetched(&harness, 9).await.len(), fetched(&harness, 9).await.len()), (1, 0));
    let standing = harness.get("/rate-limits/queue:default").await.expect(200);
    assert_eq!((&standing["rate"]["limit"], &standing["rate"]["current_count"]), (&json!(1), &json!(1)));
    harness.advance_ms(1_000.0).await;
    assert_eq!(fetched(&harness, 9).await.len(), 1);
}

#[tokio::test]
async fn a_limit_is_overridden_for_a_time() {
    let harness = Harness::new();
    enqueue(&harness, json!({ "key": "api", "concurrency": 5 })).await;
    let held = json!({ "concurrency": 0, "expires_at": "2099-01-01T00:00:00Z" });
    let standing = harness.call("PUT", "/ojs/v1/rate-limits/api", &held).await.expect(200);
    assert_eq!(standing["concurrency"]["limit"], 0);
    assert_eq!(fetched(&harness, 9).await.len(), 0);
    harness.call_text("DELETE", "/ojs/v1/rate-limits/api", "").await.expect(200);
    assert_eq!(fetched(&harness, 9).await.len(), 1);
}

#[tokio::test]
async fn a_queue_is_configured_and_its_limit_holds() {
    let harness = Harness::new();
    let config = json!({ "concurrency": 1, "rate_limit": { "limit": 100, "period": "PT1M" } });
    let path = "/ojs/v1/admin/queues/default/config";
    let answer = harness.call("PUT", path, &config).await.expect(200);
    assert_eq!(answer["configuration"]["concurrency"], 1);
    harness.enqueue_with(json!({})).await;
    harness.enqueue_with(json!({})).await;
    assert_eq!((fetched(&harness, 9).await.len(), fetched(&harness, 9).await.len()), (1, 0));
    let read = harness.get("/queues/default/config").await.expect(200);
    assert_eq!(read["configuration"]["rate_limit"], json!({ "limit": 100, "period": "PT60S" }));
    harness.call("PUT", path, &json!({})).await.expect(200);
    assert_eq!(fetched(&harness, 9).await.len(), 1, "without a limit");
}

#[tokio::test]
async fn the_limit_of_a_type_applies_to_jobs_from_then_on() {
    let harness = Harness::new();
    let path = "/ojs/v1/admin/types/a.b/rate-limit";
    harness.call("PUT", path, &json!({ "concurrency": 1 })).await.expect(200);
    for _ in 0..2 {
        harness.post("/jobs", json!({ "type": "a.b", "args": [] })).await.expect(201);
        harness.post("/jobs", json!({ "type": "c.d", "args": [] })).await.expect(201);
    }
    assert_eq!(fetched(&harness, 9).await.len(), 3);
    let standing = harness.call_text("GET", path, "").await.expect(200);
    assert_eq!((&standing["scope"], &standing["waiting_count"]), (&json!("type"), &json!(1)));
}

#[tokio::test]
async fn a_worker_that_was_refused_elsewhere_holds_the_key_of_its_job() {
    let harness = Harness::new();
    for _ in 0..2 {
        enqueue(&harness, json!({ "key": "api", "concurrency": 5 })).await;
    }
    let jobs = fetched(&harness, 1).await;
    enqueue(&harness, json!({ "key": "other", "concurrency": 5 })).await;
    let error = json!({ "type": "RateLimitExceeded", "message": "429", "rate_limit_until": "2026-02-13T10:05:00Z" });
    let failure = json!({ "job_id": jobs[0]["id"], "error": error, "retry_after": 0 });
    harness.post("/workers/nack", failure.clone()).await.expect(200);
    harness.advance_ms(1_000.0).await;
    let others = fetched(&harness, 9).await;
    assert_eq!(others.len(), 1, "only the job of the other key: {others:?}");
    assert_eq!(others[0]["rate_limit"]["key"], "other");
    let standing = harness.get("/rate-limits/api").await.expect(200);
    assert_eq!(
        (&standing["held_until"], &standing["waiting_count"]),
        (&json!("2026-02-13T10:05:00.000000Z"), &json!(2))
    );
    let told = harness.get("/events?types=rate_limit.*").await.expect(200);
    let data = json!({ "key": "api", "until": "2026-02-13T10:05:00.000000Z", "reason": "RateLimitExceeded" });
    assert_eq!(told["events"][0]["data"], data, "{told}");
    harness.advance_ms(298_999.0).await;
    assert_eq!(fetched(&harness, 9).await.len(), 0, "just before that time");
    harness.advance_ms(1.0).await;
    assert_eq!(fetched(&harness, 1).await.len(), 1, "at that time");
}

#[tokio::test]
async fn a_key_is_held_for_a_day_at_most_and_operators_lift_it() {
    let harness = Harness::new();
    for _ in 0..2 {
        enqueue(&harness, json!({ "key": "api", "concurrency": 5 })).await;
    }
    let jobs = fetched(&harness, 1).await;
    let error = json!({ "message": "429", "rate_limit_until": "2099-01-01T00:00:00Z" });
    harness.post("/workers/nack", json!({ "job_id": jobs[0]["id"], "error": error })).await.expect(200);
    let standing = harness.get("/rate-limits/api").await.expect(200);
    assert_eq!(standing["held_until"], "2026-02-14T10:00:00.000000Z");
    assert_eq!(fetched(&harness, 1).await.len(), 0);
    harness.delete("/rate-limits/api").await.expect(200);
    let jobs = fetched(&harness, 1).await;
    assert_eq!(jobs.len(), 1);
    let error = json!({ "message": "429", "rate_limit_until": "soon" });
    let refused = harness.post("/workers/nack", json!({ "job_id": jobs[0]["id"], "error": error })).await.expect(400);
    assert_eq!(refused["error"]["details"]["problems"][0]["path"], "/error/rate_limit_until", "{refused}");
}

#[tokio::test]
async fn what_is_wrong_with_a_limit_is_listed() {
    let harness = Harness::new();
    let wrong = [
        (json!({ "key": "-a" }), "/options/rate_limit/key"),
        (json!({ "key": "a", "concurrency": -1 }), "/options/rate_limit/concurrency"),
        (json!({ "key": "a", "rate": { "limit": 0, "period": "PT1M" } }), "/options/rate_limit/rate/limit"),
        (json!({ "key": "a", "rate": { "limit": 1 } }), "/options/rate_limit/rate/period"),
        (json!({ "key": "a", "throttle": { "limit": 1, "period": "1m" } }), "/options/rate_limit/throttle/period"),
        (json!({ "key": "a", "on_limit": "drop" }), "/options/rate_limit/on_limit"),
        (json!({ "key": "a", "concurency": 1 }), "/options/rate_limit/concurency"),
        (
            json!({ "max_per_second": 1, "rate": { "limit": 1, "period": "PT1S" } }),
            "/options/rate_limit/max_per_second",
        ),
    ];
    for (limit, path) in wrong {
        let body = json!({ "type": "a.b", "args": [], "options": { "rate_limit": limit } });
        let refused = harness.post("/jobs", body).await.expect(400);
        assert_eq!(refused["error"]["details"]["problems"][0]["path"], path, "{refused}");
    }
    let elsewhere = json!({ "default_timeout": 5, "concurency": 1 });
    let refused = harness.call("PUT", "/ojs/v1/admin/queues/default/config", &elsewhere).await.expect(400);
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("default_timeout") && message.contains("concurency"), "{message}");
}

#[tokio::test]
async fn the_job_of_the_guide_is_limited_as_the_guide_says() {
    const GUIDE: &str = include_str!("../../../../docs/guides/limits.md");
    let (_, rest) = GUIDE.split_once("```json\n").expect("the guide has a job");
    let (body, _) = rest.split_once("```").expect("it ends");
    let harness = Harness::new();
    for _ in 0..7 {
        harness.call_text("POST", "/ojs/v1/jobs", body).await.expect(201);
    }
    let mut active = 0;
    loop {
        let fetched = harness.post("/workers/fetch", json!({ "queues": ["payments"], "count": 9 })).await.expect(200);
        match fetched["jobs"].as_array().map_or(0, Vec::len) {
            0 => break,
            jobs => active += jobs,
        }
        harness.advance_ms(100.0).await;
    }
    assert_eq!(active, 5, "five at once");
}
