//! Backpressure: the rules of the specification's page, by their ids.

use crate::common::Harness;
use serde_json::{Value, json};

const CONFIG: &str = "/ojs/v1/admin/queues/mail/config";

/// A server on which this many jobs may wait in the queue `mail`.
async fn bounded(depth: u64) -> Harness {
    let harness = Harness::new();
    let config = json!({ "backpressure": { "max_depth": depth, "strategy": "reject" } });
    harness.call("PUT", CONFIG, &config).await.expect(200);
    harness
}

fn mail() -> Value {
    json!({ "type": "mail.send", "args": [], "options": { "queue": "mail" } })
}

async fn depth(harness: &Harness) -> Value {
    harness.get("/queues/mail/stats").await.expect(200)["stats"]["depth"].clone()
}

#[tokio::test]
async fn bp_001_bp_002_bp_005_a_full_queue_is_429_with_when_to_retry_and_how_full_it_is() {
    let harness = bounded(2).await;
    for _ in 0..2 {
        harness.post("/jobs", mail()).await.expect(201);
    }
    let refused = harness.post("/jobs", mail()).await;
    let header = |name: &str| refused.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let headers = ["retry-after", "x-ojs-queue-depth", "x-ojs-queue-bound"].map(header);
    assert_eq!(headers, ["5", "2", "2"].map(|text| Some(text.to_owned())));
    let error = refused.expect(429)["error"].clone();
    assert_eq!(error["code"], "QUEUE_FULL");
    assert_eq!(error["retryable"], true);
    let shown = ["queue", "depth", "bound", "strategy"].map(|key| error[key].clone());
    assert_eq!(shown, [json!("mail"), json!(2), json!(2), json!("reject")]);
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("\"mail\"") && message.contains("at most 2"), "{message}");
    assert_eq!(depth(&harness).await, 2, "it was not stored");
    harness.post("/jobs", json!({ "type": "a.b", "args": [] })).await.expect(201);
    harness.post("/workers/fetch", json!({ "queues": ["mail"] })).await.expect(200);
    harness.post("/jobs", mail()).await.expect(201);
}

#[tokio::test]
async fn bp_003_bounds_are_configured_and_read_back() {
    let harness = bounded(7).await;
    let configured = json!({ "backpressure": { "max_depth": 7, "strategy": "reject" } });
    assert_eq!(harness.call_text("GET", CONFIG, "").await.expect(200)["configuration"], configured);
    // The page about queues has other names.
    let config = json!({ "max_size": 1, "overflow_policy": "reject", "concurrency": 3 });
    let answer = harness.call("PUT", CONFIG, &config).await.expect(200);
    assert_eq!(answer["configuration"]["backpressure"]["max_depth"], 1);
    let limit = json!({ "concurrency": 2 });
    harness.call("PUT", "/ojs/v1/admin/queues/mail/rate-limit", &limit).await.expect(200);
    harness.post("/jobs", mail()).await.expect(201);
    harness.post("/jobs", mail()).await.expect(429);
    harness.call("PUT", CONFIG, &json!({})).await.expect(200);
    harness.post("/jobs", mail()).await.expect(201);
    harness.call("PUT", CONFIG, &json!({ "backpressure": { "max_depth": 0 } })).await.expect(200);
    harness.post("/jobs", mail()).await.expect(201);
}

#[tokio::test]
async fn bp_004_a_rejection_is_told() {
    let harness = bounded(1).await;
    harness.post("/jobs", mail()).await.expect(201);
    for _ in 0..3 {
        harness.post("/jobs", mail()).await.expect(429);
    }
    let told = harness.get("/events?types=backpressure.*").await.expect(200);
    let events = told["events"].as_array().cloned().unwrap_or_default();
    assert_eq!(events.len(), 1, "once a second: {told}");
    let data = json!({ "queue": "mail", "depth": 1, "bound": 1, "job_type": "mail.send", "requests": 1 });
    assert_eq!((&events[0]["type"], &events[0]["data"]), (&json!("backpressure.rejected"), &data));
    harness.advance_ms(1_000.0).await;
    harness.post("/jobs", mail()).await.expect(429);
    let told = harness.get("/events?types=backpressure.rejected").await.expect(200);
    let requests: Vec<&Value> =
        told["events"].as_array().into_iter().flatten().map(|event| &event["data"]["requests"]).collect();
    assert!(requests.contains(&&json!(3)), "those that were not told of: {told}");
}

#[tokio::test]
async fn section_9_3_a_batch_is_rejected_as_a_whole() {
    let harness = bounded(3).await;
    let batch = |count: usize| json!({ "jobs": (0..count).map(|_| mail()).collect::<Vec<_>>() });
    let refused = harness.post("/jobs/batch", batch(4)).await.expect(429);
    assert_eq!((&refused["error"]["depth"], &refused["error"]["bound"]), (&json!(0), &json!(3)));
    assert_eq!(depth(&harness).await, 0);
    harness.post("/jobs/batch", batch(3)).await.expect(201);
}

#[tokio::test]
async fn what_is_refused_of_a_configuration_says_what_to_do() {
    let harness = Harness::new();
    let wrong = [
        (json!({ "backpressure": { "max_depth": -1 } }), "/backpressure/max_depth"),
        (json!({ "backpressure": { "max_depth": 1, "strategy": "block" } }), "/backpressure/strategy"),
        (json!({ "backpressure": { "max_depth": 1, "strategy": "drop_oldest" } }), "/backpressure/strategy"),
        (json!({ "backpressure": { "max_depht": 1 } }), "/backpressure/max_depht"),
        (json!({ "backpressure": { "max_size_bytes": 1 } }), "/backpressure/max_size_bytes"),
        (json!({ "backpressure": { "max_depth": 1, "warning_threshold": 0.8 } }), "/backpressure/warning_threshold"),
        (json!({ "max_size": 1, "overflow_policy": "block" }), "/overflow_policy"),
        (json!({ "max_size": 1, "backpressure": { "max_depth": 1 } }), "/max_size"),
    ];
    for (config, path) in wrong {
        let refused = harness.call("PUT", CONFIG, &config).await.expect(400);
        assert_eq!(refused["error"]["details"]["problems"][0]["path"], path, "{refused}");
    }
}

#[tokio::test]
async fn a_repeated_request_is_answered_though_the_queue_is_full() {
    let harness = bounded(1).await;
    let job = json!({ "type": "mail.send", "args": [], "options": { "queue": "mail", "idempotency_key": "k" } });
    let first = harness.post("/jobs", job.clone()).await.expect(201);
    let again = harness.post("/jobs", job).await.expect(200);
    assert_eq!(again["job"]["id"], first["job"]["id"]);
}

#[tokio::test]
async fn retries_redrives_workflows_and_schedules_are_never_refused() {
    let harness = bounded(1).await;
    harness.post("/jobs", mail()).await.expect(201);
    let fetched = harness.post("/workers/fetch", json!({ "queues": ["mail"] })).await.expect(200);
    harness.post("/jobs", mail()).await.expect(201);
    let id = &fetched["jobs"][0]["id"];
    let failure = json!({ "job_id": id, "error": { "message": "boom" } });
    assert_eq!(harness.post("/workers/nack", failure).await.expect(200)["state"], "retryable");
    assert_eq!(depth(&harness).await, 2);
    harness.post("/jobs", mail()).await.expect(429);
    let id = id.as_str().unwrap_or_default();
    harness.call_text("DELETE", &format!("/ojs/v1/jobs/{id}"), "").await.expect(200);
    harness.post(&format!("/admin/jobs/{id}/retry"), json!({})).await.expect(200);
    assert_eq!(depth(&harness).await, 2);
    let workflow = json!({ "type": "chain", "steps": [mail()] });
    harness.post("/workflows", workflow).await.expect(201);
    assert_eq!(depth(&harness).await, 3);
}
