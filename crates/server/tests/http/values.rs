//! Invalid values are refused, and the message says what is allowed.

use crate::common::{Harness, text};
use serde_json::{Value, json};

/// The first problem of a refusal: its path and its message.
fn problem(error: &Value) -> (String, String) {
    let problem = &error["error"]["details"]["problems"][0];
    (text(&problem["path"]), text(&problem["message"]))
}

/// A job with these options, as text, is refused for its value at `path`.
async fn refused(harness: &Harness, options: &str, path: &str) -> String {
    let body = format!("{{\"type\": \"a\", \"args\": [], \"options\": {options}}}");
    let (at, message) = problem(&harness.call_text("POST", "/ojs/v1/jobs", &body).await.expect(400));
    assert_eq!(at, format!("/options/{path}"), "{options}");
    message
}

#[tokio::test]
async fn a_wait_that_never_ends_is_refused() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    harness.fetch().await.unwrap();
    for wait in ["\"inf\"", "\"infinity\"", "\"NaN\"", "\"-1\"", "-1", "1e999", "1e300", "\"1e12\"", "true"] {
        let body = format!("{{\"job_id\": \"{id}\", \"retry_after\": {wait}, \"error\": {{\"message\": \"m\"}}}}");
        let error = harness.call_text("POST", "/ojs/v1/workers/nack", &body).await.expect(400);
        assert_eq!(problem(&error).0, "/retry_after", "{wait}");
        let body = format!("{{\"job_id\": \"{id}\", \"error\": {{\"message\": \"m\", \"retry_after\": {wait}}}}}");
        let error = harness.call_text("POST", "/ojs/v1/workers/nack", &body).await.expect(400);
        assert_eq!(problem(&error).0, "/error/retry_after", "{wait}");
    }
    assert_eq!(harness.job(&id).await["state"], "active");
}

#[tokio::test]
async fn a_time_out_that_no_number_can_hold_is_refused() {
    let harness = Harness::new();
    for timeout in ["1e999", "1e300", "-1", "0", "-0.0"] {
        let message = refused(&harness, &format!("{{\"timeout\": {timeout}}}"), "timeout").await;
        assert!(message.contains("above zero"), "{message}");
    }
}

#[tokio::test]
async fn a_lease_that_is_over_before_its_worker_can_answer_is_refused() {
    let harness = Harness::new();
    for (key, value) in [
        ("visibility_timeout", "0.0000001"),
        ("visibility_timeout", "0.099"),
        ("visibility_timeout", "1e999"),
        ("visibility_timeout", "\"PT0.05S\""),
        ("visibility_timeout_ms", "99"),
        ("visibility_timeout_ms", "0"),
    ] {
        refused(&harness, &format!("{{\"{key}\": {value}}}"), key).await;
        for (path, body) in [
            ("fetch", format!("{{\"queues\": [\"default\"], \"{key}\": {value}}}")),
            ("heartbeat", format!("{{\"worker_id\": \"w\", \"{key}\": {value}}}")),
        ] {
            let error = harness.call_text("POST", &format!("/ojs/v1/workers/{path}"), &body).await.expect(400);
            assert_eq!(problem(&error).0, format!("/{key}"), "{path} {value}");
        }
    }
    harness.enqueue_with(json!({ "visibility_timeout_ms": 100 })).await;
    harness.enqueue_with(json!({ "visibility_timeout": 0.1 })).await;
}

#[tokio::test]
async fn a_job_that_has_expired_already_is_refused_with_both_times() {
    let harness = Harness::new();
    for expired in ["2026-02-13T09:59:59Z", "2026-02-13T10:00:00Z", "+PT0S"] {
        let message = refused(&harness, &format!("{{\"expires_at\": \"{expired}\"}}"), "expires_at").await;
        assert!(message.contains("and it is 2026-02-13T10:00:00.000000Z now"), "{message}");
    }
    harness.enqueue_with(json!({ "expires_at": "2026-02-13T10:00:00.000001Z" })).await;
}

#[tokio::test]
async fn a_priority_outside_of_the_range_is_refused() {
    let harness = Harness::new();
    for priority in [-101, 101, i64::from(i32::MAX), i64::MIN] {
        let message = refused(&harness, &format!("{{\"priority\": {priority}}}"), "priority").await;
        assert!(message.contains("from -100 to 100"), "{message}");
    }
    for priority in [-100, 100] {
        let id = harness.enqueue_with(json!({ "priority": priority })).await;
        assert_eq!(harness.job(&id).await["priority"], priority);
    }
}

#[tokio::test]
async fn a_heartbeat_names_its_worker_or_its_jobs() {
    let harness = Harness::new();
    harness.post("/workers/heartbeat", json!({ "worker_id": "w" })).await.expect(200);
    harness.post("/workers/heartbeat", json!({ "worker_id": "w", "active_jobs": [] })).await.expect(200);
    let idle = json!({ "worker_id": "w", "active_jobs": 0, "active_job_ids": [], "hostname": "h", "labels": [] });
    harness.post("/workers/heartbeat", idle).await.expect(200);
    for nothing in [json!({}), json!({ "active_jobs": [] }), json!({ "worker_id": "" })] {
        assert_eq!(problem(&harness.post("/workers/heartbeat", nothing).await.expect(400)).0, "/worker_id");
    }
    let counted = json!({ "worker_id": "w", "active_jobs": 3 });
    let (path, message) = problem(&harness.post("/workers/heartbeat", counted).await.expect(400));
    assert_eq!(path, "/active_jobs");
    assert!(message.contains("a number extends no lease"), "{message}");
}

#[tokio::test]
async fn a_code_that_ends_the_job_is_obeyed_even_if_the_report_releases_the_run() {
    let harness = Harness::new();
    for (code, dead) in [("DISCARD", false), ("FAIL", false), ("DEAD_LETTER", true)] {
        for way in [json!({ "requeue": true }), json!({ "snooze_ms": 5 })] {
            let id = harness.enqueue(json!({})).await;
            harness.fetch().await.unwrap();
            let mut report = json!({ "job_id": id, "error": { "code": code, "message": "m" } });
            report.as_object_mut().unwrap().extend(way.as_object().unwrap().clone());
            let reply = harness.post("/workers/nack", report).await.expect(200);
            assert_eq!((&reply["state"], &reply["dead_letter"]), (&json!("discarded"), &json!(dead)), "{code} {way}");
        }
    }
    let id = harness.enqueue(json!({})).await;
    harness.fetch().await.unwrap();
    let error = json!({ "code": "RETRY", "message": "m", "retryable": false });
    let reply =
        harness.post("/workers/nack", json!({ "job_id": id, "requeue": true, "error": error })).await.expect(200);
    assert_eq!(reply["state"], "available", "other codes are labels");
}

#[tokio::test]
async fn a_misspelt_member_of_a_report_ends_no_run() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    for (path, body, at) in [
        ("fetch", json!({ "queues": ["default"], "wait": 5 }), "/wait"),
        ("fetch", json!({ "queues": ["default"], "visibility_timeout_s": 5 }), "/visibility_timeout_s"),
        ("ack", json!({ "job_id": id, "lease_tokn": "1" }), "/lease_tokn"),
        ("nack", json!({ "job_id": id, "requeu": true, "error": { "message": "m" } }), "/requeu"),
        ("settle", json!({ "settlements": [], "dry_run": true }), "/dry_run"),
    ] {
        let error = harness.post(&format!("/workers/{path}"), body).await.expect(400);
        assert_eq!(problem(&error).0, at);
    }
    assert_eq!(harness.job(&id).await["state"], "available");
    let batch = json!({ "jobs": [{ "type": "a", "args": [] }], "options": { "queue": "q" } });
    assert_eq!(problem(&harness.post("/jobs/batch", batch).await.expect(400)).0, "/options");
}

#[tokio::test]
async fn a_job_stops_no_worker_unless_the_operator_allows_it() {
    let directive = async |allowed: bool| {
        let parts = crate::common::Parts { test_directives: allowed, ..Default::default() };
        let harness = Harness::with(parts);
        let id = harness.enqueue_with(json!({ "metadata": { "test_directive": "terminate" } })).await;
        harness.fetch().await.unwrap();
        let heartbeat = json!({ "worker_id": "w1", "active_jobs": [id] });
        text(&harness.post("/workers/heartbeat", heartbeat).await.expect(200)["state"])
    };
    assert_eq!(directive(false).await, "running");
    assert_eq!(directive(true).await, "terminate");
}
