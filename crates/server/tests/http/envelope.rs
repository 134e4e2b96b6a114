//! The envelope: what is echoed, what is managed, and what is refused.

use crate::common::{Harness, text};
use serde_json::{Value, json};

async fn problems(harness: &Harness, body: Value) -> Vec<String> {
    let error = harness.post("/jobs", body).await.expect(400)["error"].clone();
    assert_eq!(error["code"], "invalid_request");
    error["details"]["problems"].as_array().unwrap().iter().map(|problem| text(&problem["path"])).collect()
}

#[tokio::test]
async fn every_problem_of_a_job_is_listed_with_its_path() {
    let harness = Harness::new();
    let options = json!({
        "queue": "No", "priority": "urgent", "timeout_ms": 0, "visibility_timeout": "soon", "scheduled_at": "later",
        "expires_at": 5, "tags": "x", "pending": "yes", "max_attempts": 3,
    });
    let body = json!({ "type": "No", "args": {}, "meta": [], "id": "x", "specversion": "2.0", "options": options });
    let mut found = problems(&harness, body).await;
    found.sort();
    let mut expected = [
        "/specversion",
        "/options/tags",
        "/options/priority",
        "/type",
        "/options/queue",
        "/args",
        "/meta",
        "/options/scheduled_at",
        "/options/expires_at",
        "/options/pending",
        "/options/timeout_ms",
        "/options/visibility_timeout",
        "/options/max_attempts",
        "/id",
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn managed_members_are_ignored_and_unknown_ones_returned_unchanged() {
    let harness = Harness::new();
    let body = json!({
        "type": "a.b", "args": [1], "specversion": "1.0", "state": "completed", "attempt": 7, "created_at": "x",
        "errors": [1], "result": 1, "timeout": 3, "x_one": { "deep": [1.50] }, "y\n\"": 1,
        "options": { "metadata": { "k": "v" }, "unique": { "keys": ["type"] }, "x_one": 2 },
    });
    let job = harness.post("/jobs", body).await.expect(201)["job"].clone();
    assert_eq!((&job["state"], &job["attempt"], &job["x_one"]), (&json!("available"), &json!(0), &json!(2)));
    assert_eq!((&job["metadata"], &job["unique"]), (&json!({ "k": "v" }), &json!({ "keys": ["type"] })));
    assert_eq!(job["y\n\""], 1);
    assert_eq!(job["timeout_ms"], 3_000, "a timeout counts in seconds");
    for absent in
        ["timeout", "errors", "error", "result", "started_at", "completed_at", "next_retry_at", "scheduled_at"]
    {
        assert!(job.get(absent).is_none(), "{absent}");
    }
    assert_eq!((&job["meta"], &job["tags"]), (&json!({}), &json!([])));
}

#[tokio::test]
async fn a_text_is_returned_byte_for_byte() {
    let harness = Harness::new();
    let args = r#"[ 1.50, 12345678901234567890123, "\u00e9\/", {"b":1,  "a":2} ]"#;
    let body = format!(r#"{{"type":"a.b","args":{args},"options":{{"scheduled_at":"2099-12-31T23:59:59+02:00"}}}}"#);
    let id = text(&harness.call_text("POST", "/ojs/v1/jobs", &body).await.expect(201)["job"]["id"]);
    let response = harness.server.router();
    let request = axum::http::Request::get(format!("/ojs/v1/jobs/{id}")).body(axum::body::Body::empty()).unwrap();
    let response = tower::ServiceExt::oneshot(response, request).await.unwrap();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let answer = String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(answer.matches(args).count(), 2, "at the top and under job: {answer}");
    assert_eq!(answer.matches(r#""scheduled_at":"2099-12-31T23:59:59+02:00""#).count(), 2);
}

#[tokio::test]
async fn jobs_are_scheduled_absolutely_and_from_now_on() {
    let harness = Harness::new();
    for (options, state) in [
        (json!({ "scheduled_at": "2026-02-13T10:00:05Z" }), "scheduled"),
        (json!({ "delay_until": "2026-02-13T12:00:05+02:00" }), "scheduled"),
        (json!({ "scheduled_at": "+PT5S" }), "scheduled"),
        (json!({ "scheduled_at": "2020-01-01T00:00:00Z" }), "available"),
    ] {
        let body = json!({ "type": "a.b", "args": [], "options": options });
        let job = harness.post("/jobs", body).await.expect(201)["job"].clone();
        assert_eq!(job["state"], state, "{options}");
        assert!(job["scheduled_at"].is_string());
    }
    assert!(harness.fetch().await.is_some());
    harness.advance_ms(4_999.0).await;
    assert!(harness.fetch().await.is_none());
    harness.advance_ms(1.0).await;
    for _ in 0..3 {
        assert!(harness.fetch().await.is_some());
    }
    let both = json!({ "scheduled_at": "+PT5S", "delay_until": "+PT6S" });
    assert_eq!(
        problems(&harness, json!({ "type": "a.b", "args": [], "options": both })).await,
        ["/options/delay_until"]
    );
    let odd = json!({ "scheduled_at": "+PT5S", "pending": true });
    assert_eq!(problems(&harness, json!({ "type": "a.b", "args": [], "options": odd })).await, ["/options/pending"]);
}

#[tokio::test]
async fn a_job_that_expires_is_discarded_without_having_completed() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "expires_at": "+PT2S" })).await;
    harness.advance_ms(2_000.0).await;
    assert_eq!(harness.fetch().await, None);
    let job = harness.job(&id).await;
    assert_eq!((&job["state"], job.get("completed_at")), (&json!("discarded"), None));
    assert_eq!(
        (text(&job["discarded_at"]), text(&job["expires_at"])),
        (text(&job["expires_at"]), "2026-02-13T10:00:02.000000Z".into())
    );
}

#[tokio::test]
async fn a_pending_job_waits_to_be_activated() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "pending": true })).await;
    assert_eq!(harness.job(&id).await["state"], "pending");
    assert_eq!(harness.fetch().await, None);
    harness.advance_clock_ms(1_000.0);
    let body = harness.call_text("POST", &format!("/ojs/v1/jobs/{id}/activate"), "").await.expect(200);
    for job in [&body, &body["job"]] {
        assert_eq!((&job["state"], &job["previous_state"]), (&json!("available"), &json!("pending")));
        assert_eq!(job["activated_at"], "2026-02-13T10:00:01.000000Z");
    }
    harness.call_text("POST", &format!("/ojs/v1/jobs/{id}/activate"), "").await.expect(409);
    assert_eq!(harness.fetch().await.unwrap()["attempt"], 1);
}

#[tokio::test]
async fn a_cancelled_job_says_which_state_it_was_in() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({})).await;
    let token = text(&harness.fetch().await.unwrap()["lease_token"]);
    let body = harness.delete(&format!("/jobs/{id}")).await.expect(200);
    for job in [&body, &body["job"]] {
        assert_eq!((&job["state"], &job["previous_state"]), (&json!("cancelled"), &json!("active")));
        assert!(job["cancelled_at"].is_string() && job.get("completed_at").is_none());
    }
    harness.delete(&format!("/jobs/{id}")).await.expect(409);
    let late = harness.post("/workers/ack", json!({ "job_id": id, "lease_token": token })).await.expect(409);
    assert_eq!(late["error"]["details"]["reason"], "stale_lease");
}

#[tokio::test]
async fn a_request_that_is_sent_twice_with_one_key_creates_one_job() {
    let harness = Harness::new();
    let send = async |key: &str| {
        let body = json!({ "type": "a.b", "args": [], "options": { "idempotency_key": key } });
        let reply = harness.post("/jobs", body).await;
        (reply.status.as_u16(), text(&reply.body["job"]["id"]))
    };
    let (first, again, other) = (send("one").await, send("one").await, send("two").await);
    assert_eq!((first.0, again.0, other.0), (201, 200, 201));
    assert_eq!(first.1, again.1);
    assert_ne!(first.1, other.1);
    let request = axum::http::Request::post("/ojs/v1/jobs").header("Idempotency-Key", "one");
    let request = request.body(axum::body::Body::from(r#"{"type":"a.b","args":[]}"#)).unwrap();
    assert_eq!(text(&harness.send(request).await.expect(200)["job"]["id"]), first.1);
}

/// The text of an answer, in which no object may have a key twice.
async fn strict_text(harness: &Harness, method: &str, path: &str, body: &str) -> Value {
    let request = axum::http::Request::builder().method(method).uri(path).body(axum::body::Body::from(body.to_owned()));
    let response = tower::ServiceExt::oneshot(harness.server.router(), request.unwrap()).await.unwrap();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    redrive_policy::wire::parse_json(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[tokio::test]
async fn no_member_that_a_caller_makes_up_occurs_twice_in_an_answer() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 2, "on_exhaustion": "dead_letter", "jitter": false });
    let options =
        json!({ "retry": retry, "scheduled_at": "+PT1S", "expires_at": "+PT9H", "visibility_timeout_ms": 5_000 });
    let id = harness.enqueue_with(options).await;
    let mut keys = std::collections::BTreeSet::new();
    let mut note = |job: &Value| keys.extend(job.as_object().unwrap().keys().cloned());
    note(&harness.job(&id).await);
    harness.advance_ms(1_000.0).await;
    note(&harness.fetch().await.unwrap());
    note(&harness.job(&id).await);
    let reply = harness.fail(&id).await;
    note(&harness.job(&id).await);
    harness.run_again(&reply).await;
    harness.fail(&id).await;
    note(&harness.job(&id).await);
    note(&harness.post(&format!("/dead-letter/{id}/retry"), json!({})).await.expect(200));
    note(&harness.delete(&format!("/jobs/{id}")).await.expect(200));
    assert!(keys.len() > 30, "{keys:?}");

    let known = ["type", "args", "meta", "id", "specversion", "options", "job"];
    let managed: Vec<&String> = keys.iter().filter(|key| !known.contains(&key.as_str())).collect();
    for place in ["", "options"] {
        for key in &managed {
            // This test checks only that nothing is repeated.
            let mut body = json!({ "type": "a.b", "args": [] });
            let value = json!({ "made": "up" });
            if place.is_empty() {
                body[key] = value
            } else {
                body[place] = json!({ *key: value })
            }
            let created = strict_text(&harness, "POST", "/ojs/v1/jobs", &body.to_string()).await;
            let Some(id) = created["job"]["id"].as_str() else { continue };
            strict_text(&harness, "POST", "/ojs/v1/workers/fetch", r#"{"queues":["default"]}"#).await;
            strict_text(&harness, "GET", &format!("/ojs/v1/jobs/{id}"), "").await;
            strict_text(&harness, "DELETE", &format!("/ojs/v1/jobs/{id}"), "").await;
        }
    }
}

#[tokio::test]
async fn errors_keep_what_was_sent_and_repeat_nothing() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 9 })).await;
    harness.fetch().await.unwrap();
    let error = json!({
        "type": "T", "code": "c", "message": "m", "retryable": true, "details": { "a": 1 }, "attempt": 77,
        "timestamp": "x", "occurred_at": "y", "x_extra": [1],
    });
    let nack = json!({ "job_id": id, "error": error }).to_string();
    strict_text(&harness, "POST", "/ojs/v1/workers/nack", &nack).await;
    let job = strict_text(&harness, "GET", &format!("/ojs/v1/jobs/{id}"), "").await["job"].clone();
    let stored = &job["errors"][0];
    assert_eq!((&stored["attempt"], &stored["x_extra"], &stored["retryable"]), (&json!(1), &json!([1]), &json!(true)));
    assert_eq!(stored["occurred_at"], "2026-02-13T10:00:00.000000Z");
}
