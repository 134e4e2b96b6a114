//! Queues: order, pauses.

use crate::common::Harness;
use serde_json::json;

#[tokio::test]
async fn queues_in_the_order_given_then_priority_then_age() {
    let harness = Harness::new();
    for (queue, priority, name) in [("low", 9, 1), ("high", 0, 2), ("high", 5, 3), ("high", 0, 4)] {
        harness.advance_clock_ms(1.0);
        let options = json!({ "queue": queue, "priority": priority });
        harness.post("/jobs", json!({ "type": "a.b", "args": [name], "options": options })).await.expect(201);
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let body = harness.post("/workers/fetch", json!({ "queues": ["high", "low"] })).await.expect(200);
        order.push(body["jobs"][0]["args"][0].as_u64().unwrap());
    }
    assert_eq!(order, [3, 2, 4, 1]);
}

#[tokio::test]
async fn a_paused_queue_accepts_jobs_and_returns_none() {
    let harness = Harness::new();
    let paused = harness.call_text("POST", "/ojs/v1/queues/default/pause", "").await.expect(200);
    assert_eq!(paused["queue"], json!({ "name": "default", "paused": true }));
    assert_eq!((&paused["status"], paused["paused_at"].is_string()), (&json!("paused"), true));
    harness.enqueue_with(json!({})).await;
    let scheduled = harness.enqueue_with(json!({ "scheduled_at": "+PT1S" })).await;
    harness.advance_ms(5_000.0).await;
    assert_eq!(harness.fetch().await, None);
    assert_eq!(harness.get("/queues").await.expect(200)["queues"][0]["status"], "paused");
    assert_eq!(harness.job(&scheduled).await["state"], "scheduled", "admission holds it back");
    let resumed = harness.post("/queues/default/resume", json!({})).await.expect(200);
    assert_eq!((&resumed["queue"]["paused"], resumed["resumed_at"].is_string()), (&json!(false), true));
    harness.advance_ms(0.0).await;
    assert!(harness.fetch().await.is_some() && harness.fetch().await.is_some());
}

#[tokio::test]
async fn a_misspelt_queue_is_neither_paused_nor_resumed() {
    let harness = Harness::new();
    harness.enqueue_with(json!({ "queue": "reports" })).await;
    let paused = harness.post("/queues/reprots/pause", json!({ "create": false })).await.expect(404);
    let resumed = harness.post("/queues/reprots/resume", json!({})).await.expect(404);
    for refused in [paused, resumed] {
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("there is no queue \"reprots\"") && message.contains("known queues: reports"),
            "{message}"
        );
        assert!(message.contains("did you mean \"reports\"?"), "{message}");
    }
    let queues = harness.get("/queues").await.expect(200);
    assert_eq!(queues["queues"].as_array().map(Vec::len), Some(1), "{queues}");
    let known = harness.post("/queues/reports/pause", json!({ "create": false })).await.expect(200);
    assert_eq!(known["queue"]["paused"], true);
    let before = harness.post("/queues/soon/pause", json!({ "create": true })).await.expect(200);
    assert_eq!(before["queue"], json!({ "name": "soon", "paused": true }));
}

#[tokio::test]
async fn pause_and_resume_refuse_what_they_do_not_know() {
    let harness = Harness::new();
    harness.enqueue_with(json!({})).await;
    for verb in ["pause", "resume"] {
        let path = format!("/ojs/v1/queues/default/{verb}");
        for body in ["[]", "\"create\"", "1", "null", "{", "nonsense"] {
            let refused = harness.call_text("POST", &path, body).await.expect(400);
            assert!(refused["error"]["message"].as_str().unwrap().contains("the body"), "{verb} {body}: {refused}");
        }
        let refused = harness.call_text("POST", &path, r#"{"craete": false, "reason": "x"}"#).await.expect(400);
        let problems = refused["error"]["details"]["problems"].as_array().unwrap();
        assert_eq!(problems.len(), 2, "{verb}: {refused}");
    }
    let wrong = harness.call_text("POST", "/ojs/v1/queues/default/pause", r#"{"create": "no"}"#).await.expect(400);
    assert!(wrong["error"]["message"].as_str().unwrap().contains("true or false"), "{wrong}");
    harness.call_text("POST", "/ojs/v1/queues/default/resume", r#"{"create": true}"#).await.expect(400);
    assert_eq!(harness.get("/queues").await.expect(200)["queues"][0]["paused"], false, "nothing of it was carried out");
}

#[tokio::test]
async fn only_a_queue_without_jobs_is_removed() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "queue": "reports" })).await;
    harness.delete("/queues/reprots").await.expect(404);
    let refused = harness.delete("/queues/reports").await.expect(409);
    assert_eq!(refused["error"]["details"]["counts"], json!({ "available": 1 }), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("1 available"), "{refused}");
    assert_eq!(harness.job(&id).await["state"], "available");
    harness.post("/queues/soon/pause", json!({})).await.expect(200);
    let removed = harness.delete("/queues/soon").await.expect(200);
    assert_eq!((&removed["queue"]["name"], &removed["status"]), (&json!("soon"), &json!("removed")));
    assert_eq!(harness.get("/queues").await.expect(200)["queues"].as_array().map(Vec::len), Some(1));
    // A queue that is created again is not paused.
    harness.enqueue_with(json!({ "queue": "soon", "scheduled_at": "+PT1S" })).await;
    harness.advance_ms(1_000.0).await;
    let stats = harness.get("/queues/soon/stats").await.expect(200);
    assert_eq!((&stats["paused"], &stats["available"]), (&json!(false), &json!(1)), "{stats}");
}
