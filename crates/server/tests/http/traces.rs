//! The trace that a job was enqueued in goes to every attempt.

use crate::common::Harness;
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

async fn enqueue(harness: &Harness, path: &str, headers: &[(&str, &str)], body: Value) -> Value {
    let request = Request::post(format!("/ojs/v1{path}"));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    harness.send(request.body(Body::from(body.to_string())).unwrap()).await.expect(201)
}

#[tokio::test]
async fn the_trace_of_a_request_goes_to_every_attempt() {
    let harness = Harness::new();
    let headers = [("traceparent", PARENT), ("tracestate", "redrive=1,other=\"2\"")];
    let job = enqueue(&harness, "/jobs", &headers, json!({ "type": "a", "args": [], "meta": { "tenant": 7 } })).await;
    let expected = json!({ "traceparent": PARENT, "tracestate": "redrive=1,other=\"2\"", "tenant": 7 });
    assert_eq!(job["job"]["meta"], expected);
    let mut reply = json!({ "retry_delay_ms": 0 });
    for attempt in 1..=3 {
        let claimed = harness.run_again(&reply).await;
        assert_eq!((&claimed["attempt"], &claimed["meta"]), (&json!(attempt), &expected));
        reply = harness.fail(claimed["id"].as_str().unwrap()).await;
    }
}

#[tokio::test]
async fn a_job_that_names_its_trace_keeps_it_and_others_of_the_batch_get_that_of_the_request() {
    let harness = Harness::new();
    let jobs = json!({ "jobs": [
        { "type": "a", "args": [], "meta": { "traceparent": OTHER } }, { "type": "a", "args": [] },
    ] });
    let headers = [("traceparent", PARENT), ("tracestate", "redrive=1")];
    let answer = enqueue(&harness, "/jobs/batch", &headers, jobs).await;
    assert_eq!(answer["jobs"][0]["meta"], json!({ "traceparent": OTHER }), "without the state of another trace");
    assert_eq!(answer["jobs"][1]["meta"], json!({ "traceparent": PARENT, "tracestate": "redrive=1" }));
}

#[tokio::test]
async fn a_trace_that_is_not_valid_keeps_no_job_from_being_enqueued() {
    let harness = Harness::new();
    for wrong in ["", "00-00-00-00", &PARENT.to_uppercase(), "00-00000000000000000000000000000000-00f067aa0ba902b7-01"]
    {
        let headers = [("traceparent", wrong), ("tracestate", "redrive=1")];
        let job = enqueue(&harness, "/jobs", &headers, json!({ "type": "a", "args": [] })).await;
        assert_eq!(job["job"]["meta"], json!({}), "{wrong:?}");
    }
}

#[tokio::test]
async fn a_request_that_is_repeated_in_another_trace_is_the_same_request() {
    let harness = Harness::new();
    let body = json!({ "type": "a", "args": [1], "options": { "unique": { "keys": ["args"] } } });
    let headers = |parent| [("idempotency-key", "once"), ("traceparent", parent)];
    let first = enqueue(&harness, "/jobs", &headers(PARENT), body.clone()).await;
    let request = Request::post("/ojs/v1/jobs").header("idempotency-key", "once").header("traceparent", OTHER);
    let again = harness.send(request.body(Body::from(body.to_string())).unwrap()).await.expect(200);
    assert_eq!((&again["job"]["id"], &again["job"]["meta"]), (&first["job"]["id"], &json!({ "traceparent": PARENT })));
}
