//! Errors: their codes, their words, and that the server survives them.

use crate::common::{Harness, Parts};
use crate::faulty::{Behaviour, Faulty};
use redrive_store::StoreError;
use serde_json::{Value, json};

fn complete(error: &Value) {
    for key in ["code", "type", "message", "request_id", "hint", "docs_url"] {
        assert!(error[key].as_str().is_some_and(|text| !text.is_empty()), "{key} in {error}");
    }
    assert!(error["retryable"].is_boolean());
    assert!(error.get("details").is_none_or(Value::is_object));
}

#[tokio::test]
async fn refusals_of_jobs_and_paths() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({})).await;
    let unknown = "019539a4-0000-7000-8000-ffffffffffff";
    for (method, path, body, status, code) in [
        ("GET", format!("/jobs/{unknown}"), "", 404, "not_found"),
        ("GET", "/jobs/nonsense".into(), "", 404, "not_found"),
        ("GET", "/nowhere".into(), "", 404, "not_found"),
        ("GET", "/jobs/%ff".into(), "", 400, "invalid_request"),
        ("PUT", "/jobs".into(), "", 405, "method_not_allowed"),
        ("POST", "/jobs".into(), "", 400, "invalid_payload"),
        ("POST", "/jobs".into(), "{", 400, "invalid_payload"),
        ("POST", "/jobs".into(), "{}{}", 400, "invalid_payload"),
        ("POST", "/jobs".into(), "[1]", 400, "invalid_request"),
        ("POST", "/jobs".into(), r#"{"type":"a","type":"b","args":[]}"#, 400, "invalid_request"),
        ("POST", "/jobs".into(), r#"{"type":"a","args":[{"k":1,"k":2}]}"#, 400, "invalid_request"),
        ("POST", "/jobs".into(), r#"{"type":"a","args":[1e999]}"#, 400, "invalid_request"),
        ("POST", "/workers/ack".into(), r#"{"job_id":"x"}"#, 400, "invalid_request"),
        ("POST", "/workers/ack".into(), "{}", 400, "invalid_request"),
        ("POST", "/workers/ack".into(), &format!(r#"{{"job_id":"{unknown}"}}"#), 404, "not_found"),
        ("POST", "/workers/ack".into(), &format!(r#"{{"job_id":"{id}"}}"#), 409, "conflict"),
        ("POST", "/workers/nack".into(), &format!(r#"{{"job_id":"{id}"}}"#), 400, "invalid_request"),
        ("POST", "/workers/nack".into(), &format!(r#"{{"job_id":"{id}","error":{{}}}}"#), 400, "invalid_request"),
        ("POST", "/workers/fetch".into(), "{}", 400, "invalid_request"),
        ("POST", "/workers/fetch".into(), r#"{"queues":[]}"#, 400, "invalid_request"),
        ("POST", "/workers/fetch".into(), r#"{"queues":["A"]}"#, 400, "invalid_request"),
        ("GET", "/queues/NO/stats".into(), "", 400, "invalid_request"),
        ("GET", "/dead-letter?limit=x".into(), "", 400, "invalid_request"),
    ] {
        let reply = harness.call_text(method, &format!("/ojs/v1{path}"), body).await;
        let error = reply.expect(status)["error"].clone();
        assert_eq!(error["code"], code, "{method} {path} {body}");
        complete(&error);
    }
}

#[tokio::test]
async fn bytes_that_are_not_text_are_refused() {
    let harness = Harness::new();
    let request =
        axum::http::Request::post("/ojs/v1/jobs").body(axum::body::Body::from(&b"{\"type\":\"\xff\"}"[..])).unwrap();
    let error = harness.send(request).await.expect(400);
    assert_eq!(error["error"]["code"], "invalid_payload");
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_503_and_one_that_is_broken_500() {
    let store = Faulty::new();
    let harness = Harness::with(Parts { store: store.clone(), ..Parts::default() });
    let id = harness.enqueue_with(json!({})).await;
    for (behaviour, status, code, retryable) in [
        (StoreError::Unavailable("the disk is full".into()), 503, "unavailable", true),
        (StoreError::Broken("damaged".into()), 500, "backend_error", false),
    ] {
        store.set(Behaviour::Fails(behaviour));
        for (method, path, body) in [
            ("POST", "/jobs".to_owned(), json!({ "type": "a.b", "args": [] })),
            ("GET", format!("/jobs/{id}"), json!(null)),
            ("POST", "/workers/fetch".into(), json!({ "queues": ["default"] })),
            ("POST", "/workers/ack".into(), json!({ "job_id": id })),
            ("GET", "/dead-letter".into(), json!(null)),
        ] {
            let reply = harness.call(method, &format!("/ojs/v1{path}"), &body).await;
            assert_eq!(reply.header("retry-after"), if retryable { "1" } else { "" }, "{path}");
            let error = reply.expect(status)["error"].clone();
            assert_eq!((&error["code"], &error["retryable"]), (&json!(code), &json!(retryable)), "{path}");
            complete(&error);
        }
        let health = harness.get("/health").await.expect(503);
        assert_eq!((&health["status"], &health["backend"]["status"]), (&json!("degraded"), &json!("unhealthy")));
    }
    store.set(Behaviour::Works);
    assert_eq!(harness.job(&id).await["state"], "available");
    assert!(harness.log.lock().unwrap().iter().any(|line| line.contains("the disk is full")), "and it is logged");
}

#[tokio::test]
async fn a_handler_that_panics_is_500_and_the_server_goes_on() {
    let store = Faulty::new();
    let harness = Harness::with(Parts { store: store.clone(), ..Parts::default() });
    let id = harness.enqueue_with(json!({})).await;
    store.set(Behaviour::Panics);
    let error = harness.get(&format!("/jobs/{id}")).await.expect(500)["error"].clone();
    assert_eq!(error["code"], "internal_error");
    complete(&error);
    store.set(Behaviour::Works);
    assert_eq!(harness.job(&id).await["state"], "available");
}

#[tokio::test]
async fn the_log_holds_no_payload() {
    let store = Faulty::new();
    let harness = Harness::with(Parts { store: store.clone(), ..Parts::default() });
    store.set(Behaviour::Fails(StoreError::Unavailable("no".into())));
    let body = json!({ "type": "a.b", "args": ["a secret"], "meta": { "token": "hidden" } });
    harness.post("/jobs", body).await.expect(503);
    let log = harness.log.lock().unwrap().join("\n");
    assert!(!log.is_empty() && !log.contains("secret") && !log.contains("hidden"), "{log}");
}
