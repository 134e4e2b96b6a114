//! Manifest, health, events and the meaning of errors.

use crate::common::Harness;
use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use tower::ServiceExt;

#[tokio::test]
async fn the_manifest_has_the_names_of_the_suite_and_of_the_libraries() {
    let harness = Harness::new();
    let manifest = harness.call_text("GET", "/ojs/manifest", "").await.expect(200);
    assert_eq!((&manifest["specversion"], &manifest["ojs_version"]), (&json!("1.0"), &json!("1.0")));
    for key in ["name", "version", "language"] {
        assert!(manifest["implementation"][key].is_string(), "{key}");
    }
    assert_eq!(manifest["conformance_level"], 4);
    // The page about unique jobs asks for an object there.
    let plain = |(name, value): (&String, &serde_json::Value)| value.is_boolean() || name == "unique_jobs";
    assert!(manifest["capabilities"].as_object().unwrap().iter().all(plain));
    assert!(manifest["extensions"].as_array().unwrap().iter().all(|value| value.is_string()));
}

#[tokio::test]
async fn health_tells_how_the_store_is() {
    let harness = Harness::new();
    harness.advance_ms(5_500.0).await;
    let health = harness.get("/health").await.expect(200);
    assert_eq!((&health["status"], &health["backend"]["status"]), (&json!("ok"), &json!("ok")));
    assert_eq!(health["uptime_seconds"], 5);
    assert!(health["backend"]["latency_ms"].is_number());
}

#[tokio::test]
async fn events_can_be_followed_by_their_cursor() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" })).await;
    harness.fetch().await.unwrap();
    harness.advance_clock_ms(1_500.0);
    harness.fail(&id).await;
    let body = harness.get("/events?limit=2").await.expect(200);
    let types = |body: &serde_json::Value| -> Vec<String> {
        body["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(types(&body), ["job.enqueued", "job.started"]);
    assert_eq!(body["has_more"], true);
    let cursor = body["cursor"].as_str().unwrap();
    let rest = harness.get(&format!("/events?after={cursor}")).await.expect(200);
    assert_eq!(types(&rest), ["job.failed", "job.discarded"]);
    let event = &rest["events"][1];
    assert_eq!((&event["subject"], &event["data"]["job_id"]), (&json!(id), &json!(id)));
    assert_eq!((&event["data"]["duration_ms"], &event["data"]["dead_letter"]), (&json!(1_500), &json!(true)));
    assert_eq!((&event["event"], &event["timestamp"]), (&event["type"], &event["time"]));
    let none = harness.get("/events?types=job.cancelled&queues=default,other").await.expect(200);
    assert_eq!(none["events"], json!([]));
    harness.get("/events?after=yesterday").await.expect(400);
}

#[tokio::test]
async fn a_repeated_ack_is_listed_as_one_event() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    let token = harness.fetch().await.unwrap()["lease_token"].clone();
    let ack = || json!({ "job_id": id, "lease_token": token, "result": { "n": 1 } });
    let first = harness.post("/workers/ack", ack()).await.expect(200);
    assert_eq!(harness.post("/workers/ack", ack()).await.expect(200), first, "the answer that may have got lost");
    let many = json!({ "settlements": [{ "action": "ack", "job_id": id, "lease_token": token }] });
    harness.post("/workers/settle", many).await.expect(200);
    let completed = harness.get("/events?types=job.completed").await.expect(200);
    assert_eq!(completed["events"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_event_of_a_release_names_the_run_that_was_released() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    for way in [json!({ "requeue": true }), json!({ "snooze_ms": 5 })] {
        harness.fetch().await.unwrap();
        let mut report = way;
        report["job_id"] = json!(id);
        let reply = harness.post("/workers/nack", report).await.expect(200);
        let events = harness.get("/events?types=job.released").await.expect(200);
        let event = events["events"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&event["data"]["attempt"], &reply["attempt"]), (&json!(1), &json!(1)));
    }
}

#[tokio::test]
async fn every_error_has_a_page() {
    let harness = Harness::new();
    let error = harness.get("/jobs/019539a4-0000-7000-8000-ffffffffffff").await.expect(404)["error"].clone();
    let page = harness.call_text("GET", error["docs_url"].as_str().unwrap(), "").await.expect(200);
    assert_eq!((&page["code"], &page["status"]), (&json!("not_found"), &json!(404)));
    assert_eq!(page["hint"], error["hint"]);
    harness.get("/errors/nonsense").await.expect(404);
}

#[tokio::test]
async fn the_description_and_its_page_are_served() {
    let harness = Harness::new();
    let description = harness.call_text("GET", "/openapi.json", "").await;
    assert_eq!(description.header("content-type"), "application/json");
    assert_eq!(description.expect(200)["openapi"], "3.1.0");
    let headers = async |path: &str| {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        harness.server.router().oneshot(request).await.unwrap().headers().clone()
    };
    let page = headers("/docs").await;
    assert_eq!(page["content-type"], "text/html; charset=utf-8");
    let policy = page["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; ") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(headers("/docs/style.css").await["content-type"], "text/css; charset=utf-8");
}
