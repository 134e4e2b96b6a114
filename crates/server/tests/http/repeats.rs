//! Requests that are sent twice under an idempotency key.

use crate::common::{Harness, Reply, text};
use axum::body::Body;
use axum::http::{HeaderValue, Request};
use serde_json::{Value, json};

async fn post(harness: &Harness, path: &str, keys: &[&[u8]], body: &Value) -> Reply {
    let mut request = Request::builder().method("POST").uri(format!("/ojs/v1{path}"));
    for key in keys {
        request = request.header("idempotency-key", HeaderValue::from_bytes(key).unwrap());
    }
    harness.send(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn count(harness: &Harness) -> usize {
    harness.get("/admin/jobs").await.expect(200)["pagination"]["total"].as_u64().unwrap() as usize
}

#[tokio::test]
async fn a_key_beyond_ascii_counts() {
    let harness = Harness::new();
    let job = json!({ "type": "order.ship", "args": [1] });
    let first = post(&harness, "/jobs", &["bestellung-ü-1".as_bytes()], &job).await.expect(201);
    assert!(first.get("existing").is_none());
    let again = post(&harness, "/jobs", &["bestellung-ü-1".as_bytes()], &job).await.expect(200);
    assert_eq!((&again["job"]["id"], &again["existing"]), (&first["job"]["id"], &json!(true)));
    assert_eq!(count(&harness).await, 1);
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_refused_and_never_ignored() {
    let harness = Harness::new();
    let job = json!({ "type": "order.ship", "args": [1] });
    let keyed = json!({ "type": "order.ship", "args": [1], "options": { "idempotency_key": "a" } });
    let long = "k".repeat(256);
    for (keys, body) in [
        (&[&b"order-\xff"[..]][..], &job),
        (&[b""], &job),
        (&[long.as_bytes()], &job),
        (&[b"a", b"b"], &job),
        (&[b"b"], &keyed),
    ] {
        post(&harness, "/jobs", keys, body).await.expect(400);
        post(&harness, "/jobs/batch", keys, &json!({ "jobs": [body] })).await.expect(400);
    }
    assert_eq!(count(&harness).await, 0);
    post(&harness, "/jobs", &[b"a"], &keyed).await.expect(201);
}

#[tokio::test]
async fn a_batch_that_is_sent_twice_with_one_key_creates_its_jobs_once() {
    let harness = Harness::new();
    let batch =
        json!({ "jobs": [{ "type": "a", "args": [1] }, { "type": "a", "args": [1] }, { "type": "b", "args": [] }] });
    let first = post(&harness, "/jobs/batch", &[b"import-7"], &batch).await.expect(201);
    assert!(first.get("existing").is_none());
    let again = post(&harness, "/jobs/batch", &[b"import-7"], &batch).await.expect(201);
    let ids =
        |body: &Value| -> Vec<String> { body["jobs"].as_array().unwrap().iter().map(|job| text(&job["id"])).collect() };
    assert_eq!(ids(&again), ids(&first));
    assert_eq!(again["existing"], json!([0, 1, 2]));
    assert_eq!(count(&harness).await, 3);
    post(&harness, "/jobs/batch", &[b"import-8"], &batch).await.expect(201);
    assert_eq!(count(&harness).await, 6);
}

#[tokio::test]
async fn a_key_of_other_work_is_a_conflict_that_names_the_job() {
    let harness = Harness::new();
    let job = json!({ "type": "order.ship", "args": [1, { "a": 1, "b": 2 }], "options": { "idempotency_key": "k" } });
    let id = text(&harness.post("/jobs", job.clone()).await.expect(201)["job"]["id"]);
    for (pointer, value) in [
        ("/type", json!("order.bill")),
        ("/args/0", json!(2)),
        ("/options/queue", json!("other")),
        ("/args", json!([])),
    ] {
        let mut other = job.clone();
        other["options"]["queue"] = json!("default");
        *other.pointer_mut(pointer).unwrap() = value;
        let error = harness.post("/jobs", other.clone()).await.expect(409)["error"].clone();
        assert_eq!((&error["code"], &error["details"]["job_id"]), (&json!("conflict"), &json!(id)), "{pointer}");
        assert_eq!(error["details"]["reason"], "idempotency_key_reused");
        let error = harness.post("/jobs/batch", json!({ "jobs": [job, other] })).await.expect(409)["error"].clone();
        assert_eq!(error["details"]["conflicts"], json!([{ "index": 1, "job_id": id }]), "{pointer}");
    }
    let same = r#"{ "options": {"idempotency_key": "k", "priority": 7}, "args": [ 1, {"b": 2, "a": 1} ], "type": "order.ship" }"#;
    let again = harness.call_text("POST", "/ojs/v1/jobs", same).await.expect(200);
    assert_eq!(again["job"]["id"], json!(id), "the same work, written in another way");
    assert_eq!(count(&harness).await, 1);
}

#[tokio::test]
async fn a_repeat_is_the_same_although_a_retry_replaced_the_arguments_meanwhile() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let job = json!({ "type": "order.ship", "args": [1], "options": { "idempotency_key": "k", "retry": retry } });
    let id = text(&harness.post("/jobs", job.clone()).await.expect(201)["job"]["id"]);
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    let changed = json!({ "override": { "args": [2], "queue": "other" } });
    harness.post(&format!("/dead-letter/{id}/retry"), changed).await.expect(200);
    assert_eq!(harness.post("/jobs", job.clone()).await.expect(200)["job"]["id"], json!(id));
    let mut other = job;
    other["args"] = json!([3]);
    harness.post("/jobs", other).await.expect(409);
}
