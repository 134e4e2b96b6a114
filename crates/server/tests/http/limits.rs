//! Limits on everything that a caller can make grow.

use crate::common::{Harness, Parts, text};
use redrive_server::Limits;
use serde_json::{Value, json};
use std::time::Duration;

fn harness(limits: Limits) -> Harness {
    Harness::with(Parts { limits, ..Parts::default() })
}

async fn refused(harness: &Harness, body: Value) -> String {
    text(&harness.post("/jobs", body).await.expect(400)["error"]["message"])
}

#[tokio::test]
async fn bodies_are_limited_announced_or_not() {
    let harness = harness(Limits { body_bytes: 1_000, ..Limits::default() });
    let long = json!({ "type": "a.b", "args": ["x".repeat(1_000)] }).to_string();
    let error = harness.call_text("POST", "/ojs/v1/jobs", &long).await.expect(413);
    assert_eq!(error["error"]["code"], "payload_too_large");
    assert!(text(&error["error"]["message"]).contains("1000 bytes (limits.body_bytes)"));
    let request = axum::http::Request::post("/ojs/v1/jobs").header("content-length", "5000000000");
    harness.send(request.body(axum::body::Body::empty()).unwrap()).await.expect(413);
    let short = json!({ "type": "a.b", "args": ["x".repeat(900)] });
    harness.post("/jobs", short).await.expect(201);
}

#[tokio::test]
async fn arguments_names_and_nesting_are_limited() {
    let harness = harness(Limits { args_bytes: 100, name_bytes: 20, nesting: 5, ..Limits::default() });
    let job = |args: Value| json!({ "type": "a.b", "args": args });
    harness.post("/jobs", job(json!(["x".repeat(96)]))).await.expect(201);
    assert!(refused(&harness, job(json!(["x".repeat(97)]))).await.contains("limits.args_bytes"));
    harness.post("/jobs", job(json!([[[[[1]]]]]))).await.expect(201);
    assert!(refused(&harness, job(json!([[[[[[1]]]]]]))).await.contains("5 levels"));
    for deep in ["meta", "x_unknown"] {
        let mut body = job(json!([]));
        body[deep] = json!({ "a": [[[[[1]]]]] });
        assert!(refused(&harness, body).await.contains("5 levels"), "{deep}");
    }
    let kind = "a".repeat(21);
    assert!(refused(&harness, json!({ "type": kind, "args": [] })).await.contains("at most 20 bytes"));
    let queue = json!({ "type": "a.b", "args": [], "options": { "queue": kind } });
    assert!(refused(&harness, queue).await.contains("at most 20 bytes"));
}

#[tokio::test]
async fn the_deepest_nesting_that_can_be_set_is_safe() {
    let harness = harness(Limits { nesting: 120, ..Limits::default() });
    let deep = |levels: usize| format!(r#"{{"type":"a.b","args":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
    harness.call_text("POST", "/ojs/v1/jobs", &deep(120)).await.expect(201);
    harness.call_text("POST", "/ojs/v1/jobs", &deep(121)).await.expect(400);
    harness.call_text("POST", "/ojs/v1/jobs", &deep(200_000)).await.expect(400);
}

#[tokio::test]
async fn an_object_with_too_many_members_is_refused() {
    let harness = Harness::new();
    let members: Vec<String> = (0..600).map(|n| format!("\"k{n}\":0")).collect();
    let body = format!(r#"{{"type":"a.b","args":[],{}}}"#, members.join(","));
    let error = harness.call_text("POST", "/ojs/v1/jobs", &body).await.expect(400);
    assert!(text(&error["error"]["message"]).contains("more than 500 members"));
}

#[tokio::test]
async fn fetches_are_limited() {
    let harness = harness(Limits { fetch: 2, long_poll: Duration::from_secs(5), ..Limits::default() });
    let fetch = |extra: Value| {
        let mut body = json!({ "queues": ["default"] });
        extra.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        body
    };
    harness.post("/workers/fetch", fetch(json!({ "count": 2 }))).await.expect(200);
    for extra in [json!({ "count": 3 }), json!({ "count": 0 }), json!({ "wait_ms": 5_001 }), json!({ "count": "2" })] {
        harness.post("/workers/fetch", fetch(extra)).await.expect(400);
    }
    let queues: Vec<String> = (0..101).map(|n| format!("q{n}")).collect();
    harness.post("/workers/fetch", json!({ "queues": queues })).await.expect(400);
}

#[tokio::test]
async fn waiting_fetches_are_limited() {
    let harness = harness(Limits { long_polls: 0, ..Limits::default() });
    let wait = json!({ "queues": ["default"], "wait_ms": 60_000 });
    let reply = harness.post("/workers/fetch", wait.clone()).await;
    assert_eq!(reply.header("retry-after"), "1");
    assert_eq!(reply.expect(429)["error"]["code"], "rate_limited");
    harness.enqueue_with(json!({})).await;
    assert_eq!(harness.post("/workers/fetch", wait).await.expect(200)["jobs"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_error_that_is_too_long_is_cut_and_the_run_still_ends() {
    let harness = harness(Limits { error_bytes: 1_000, ..Limits::default() });
    let id = harness.enqueue(json!({ "max_attempts": 5 })).await;
    harness.fetch().await.unwrap();
    let error = json!({ "type": "Boom", "message": "é".repeat(5_000), "details": { "x": "y".repeat(5_000) } });
    assert_eq!(harness.fail_with(&id, error).await["state"], "retryable");
    let stored = harness.job(&id).await["errors"][0].clone();
    assert_eq!((&stored["type"], &stored["truncated"]), (&json!("Boom"), &json!(true)));
    assert!(text(&stored["message"]).len() <= 1_000 && stored.get("details").is_none());
}

#[tokio::test]
async fn pages_are_cut_down_to_their_limit() {
    let harness = harness(Limits { page: 2, ..Limits::default() });
    for queue in ["a", "b", "c"] {
        harness.enqueue_with(json!({ "queue": queue })).await;
    }
    let body = harness.get("/queues?limit=100").await.expect(200);
    assert_eq!(body["queues"].as_array().unwrap().len(), 2);
    assert_eq!((&body["pagination"]["limit"], &body["pagination"]["has_more"]), (&json!(2), &json!(true)));
    assert_eq!(harness.get("/queues?offset=2").await.expect(200)["queues"][0]["name"], "c");
}
