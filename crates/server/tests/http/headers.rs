//! What all answers have in common, and the switch between suite and libraries.

use crate::common::{Harness, Reply};
use axum::body::Body;
use axum::http::Request;
use serde_json::json;

async fn get(harness: &Harness, path: &str, headers: &[(&str, &str)]) -> Reply {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    harness.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn the_media_type_has_an_alias_for_clients_that_name_the_version() {
    let harness = Harness::new();
    for path in ["/ojs/v1/health", "/ojs/manifest", "/ojs/v1/jobs/none", "/nowhere"] {
        let plain = get(&harness, path, &[]).await;
        assert_eq!(plain.header("content-type"), "application/openjobspec+json", "{path}");
        assert_eq!(plain.header("ojs-version"), "1.0");
        let named = get(&harness, path, &[("OJS-Version", "1.0")]).await;
        assert_eq!(named.header("content-type"), "application/openjobspec+json; alias=\"application/json\"", "{path}");
    }
}

#[tokio::test]
async fn the_queue_in_its_statistics_is_a_name_or_an_object() {
    let harness = Harness::new();
    harness.enqueue_with(json!({})).await;
    let plain = get(&harness, "/ojs/v1/queues/default/stats", &[]).await.expect(200);
    assert_eq!((&plain["queue"]["name"], &plain["queue"]["available"]), (&json!("default"), &json!(1)));
    let named = get(&harness, "/ojs/v1/queues/default/stats", &[("OJS-Version", "1.0")]).await.expect(200);
    assert_eq!(named["queue"], "default");
    for body in [&plain, &named] {
        assert_eq!(
            (&body["stats"]["available"], &body["stats"]["depth"], &body["available"]),
            (&json!(1), &json!(1), &json!(1))
        );
        assert_eq!((&body["status"], &body["stats"]["queue"]), (&json!("active"), &json!("default")));
        assert!(body["computed_at"].is_string());
    }
    let unknown = get(&harness, "/ojs/v1/queues/unknown/stats", &[]).await.expect(200);
    assert_eq!((&unknown["queue"]["name"], &unknown["queue"]["available"]), (&json!("unknown"), &json!(0)));
}

#[tokio::test]
async fn versions_of_the_first_major_are_accepted_and_no_others() {
    let harness = Harness::new();
    for version in ["1", "1.0", "1.0.0-rc.1", "1.7"] {
        get(&harness, "/ojs/v1/health", &[("OJS-Version", version)]).await.expect(200);
    }
    for version in ["2.0", "0.9", "10.0", "", "one"] {
        let error = get(&harness, "/ojs/v1/health", &[("OJS-Version", version)]).await.expect(422);
        assert_eq!(error["error"]["code"], "unsupported", "{version:?}");
    }
}

#[tokio::test]
async fn the_id_of_a_request_is_echoed_or_made() {
    let harness = Harness::new();
    let own = get(&harness, "/ojs/v1/jobs/none", &[("X-Request-Id", "my-id-7")]).await;
    assert_eq!(own.header("x-request-id"), "my-id-7");
    assert_eq!(own.body["error"]["request_id"], "my-id-7");
    let (one, other) = (get(&harness, "/ojs/v1/health", &[]).await, get(&harness, "/ojs/v1/health", &[]).await);
    assert!(!one.header("x-request-id").is_empty());
    assert_ne!(one.header("x-request-id"), other.header("x-request-id"));
    let long = "x".repeat(500);
    assert_ne!(get(&harness, "/ojs/v1/health", &[("X-Request-Id", &long)]).await.header("x-request-id"), long);
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let harness = Harness::new();
    let same = [("Host", "127.0.0.1:8080"), ("Origin", "http://127.0.0.1:8080")];
    get(&harness, "/ojs/v1/queues", &same).await.expect(200);
    for origin in ["http://evil.example", "null", "http://127.0.0.1:9999"] {
        let error =
            get(&harness, "/ojs/v1/queues", &[("Host", "127.0.0.1:8080"), ("Origin", origin)]).await.expect(403);
        assert_eq!(error["error"]["code"], "forbidden", "{origin}");
    }
}

#[tokio::test]
async fn a_new_job_names_its_location() {
    let harness = Harness::new();
    let reply = harness.post("/jobs", json!({ "type": "a.b", "args": [] })).await;
    let location = reply.header("location").to_owned();
    assert_eq!(harness.call_text("GET", &location, "").await.expect(200)["job"]["id"], reply.body["job"]["id"]);
}
