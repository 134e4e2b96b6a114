//! Queues: order, pauses.

use crate::common::Bench;
use serde_json::json;

#[tokio::test]
async fn queues_in_the_order_given_then_priority_then_age() {
    let bench = Bench::new();
    for (queue, priority, name) in [("low", 9, 1), ("high", 0, 2), ("high", 5, 3), ("high", 0, 4)] {
        bench.advance_clock_ms(1.0);
        let options = json!({ "queue": queue, "priority": priority });
        bench.post("/jobs", json!({ "type": "a.b", "args": [name], "options": options })).await.expect(201);
    }
    let mut order = Vec::new();
    for _ in 0..4 {
        let body = bench.post("/workers/fetch", json!({ "queues": ["high", "low"] })).await.expect(200);
        order.push(body["jobs"][0]["args"][0].as_u64().unwrap());
    }
    assert_eq!(order, [3, 2, 4, 1]);
}

#[tokio::test]
async fn a_closed_queue_takes_jobs_and_hands_out_none() {
    let bench = Bench::new();
    let paused = bench.call_text("POST", "/ojs/v1/queues/default/pause", "").await.expect(200);
    assert_eq!(paused["queue"], json!({ "name": "default", "paused": true }));
    assert_eq!((&paused["status"], paused["paused_at"].is_string()), (&json!("paused"), true));
    bench.enqueue_with(json!({})).await;
    let scheduled = bench.enqueue_with(json!({ "scheduled_at": "+PT1S" })).await;
    bench.advance_ms(5_000.0).await;
    assert_eq!(bench.fetch().await, None);
    assert_eq!(bench.get("/queues").await.expect(200)["queues"][0]["status"], "paused");
    assert_eq!(bench.job(&scheduled).await["state"], "scheduled", "the gate holds it back");
    let resumed = bench.post("/queues/default/resume", json!({})).await.expect(200);
    assert_eq!((&resumed["queue"]["paused"], resumed["resumed_at"].is_string()), (&json!(false), true));
    bench.advance_ms(0.0).await;
    assert!(bench.fetch().await.is_some() && bench.fetch().await.is_some());
}
