//! Progress of running jobs (OJS progress).

use crate::common::{Harness, ms, text};
use serde_json::{Value, json};

async fn progress(harness: &Harness, id: &str) -> Value {
    harness.get(&format!("/jobs/{id}/progress")).await.expect(200)
}

async fn put(harness: &Harness, id: &str, body: Value) -> Value {
    harness.call("PUT", &format!("/ojs/v1/jobs/{id}/progress"), &body).await.expect(200)
}

#[tokio::test]
async fn ojs_progress_7_1_reported_in_percent_and_read_as_a_fraction() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    let none = json!({ "job_id": id, "state": "available", "progress": null, "message": null, "data": null });
    assert_eq!(progress(&harness, &id).await, none, "no progress is not a 404");
    harness.fetch().await.unwrap();
    let report = json!({ "job_id": id, "percentage": 47, "message": "rows", "data": { "rows": 14_000 } });
    let reply = harness.post("/workers/progress", report).await.expect(200);
    assert_eq!((&reply["accepted"], &reply["progress"]), (&json!(true), &json!(0.47)));
    let seen = progress(&harness, &id).await;
    assert_eq!((&seen["progress"], &seen["message"]), (&json!(0.47), &json!("rows")));
    assert_eq!(
        (&seen["data"], &seen["updated_at"]),
        (&json!({ "rows": 14_000 }), &json!("2026-02-13T10:00:00.000000Z"))
    );
    let job = harness.job(&id).await;
    assert_eq!((&job["progress"], &job["progress_message"]), (&json!(0.47), &json!("rows")));
    harness.get("/jobs/019539a4-0000-7000-8000-ffffffffffff/progress").await.expect(404);
}

#[tokio::test]
async fn ojs_progress_5_1_values_are_clamped_and_never_shrink() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({})).await;
    harness.fetch().await.unwrap();
    for (reported, seen) in [(-3.0, 0.0), (0.5, 0.5), (0.2, 0.5), (7.5, 1.0), (0.1, 1.0)] {
        assert_eq!(ms(&put(&harness, &id, json!({ "progress": reported })).await["progress"]), seen, "{reported}");
    }
    let reply = put(&harness, &id, json!({ "message": "again" })).await;
    assert_eq!((ms(&reply["progress"]), &reply["message"]), (1.0, &json!("again")), "what is absent stays");
    let path = format!("/ojs/v1/jobs/{id}/progress");
    for wrong in [json!({}), json!({ "progress": "half" }), json!({ "data": "x".repeat(5_000) })] {
        harness.call("PUT", &path, &wrong).await.expect(400);
    }
}

#[tokio::test]
async fn ojs_progress_6_3_a_report_is_a_heartbeat() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({ "visibility_timeout_ms": 10_000 })).await;
    harness.fetch().await.unwrap();
    for _ in 0..3 {
        harness.advance_ms(9_000.0).await;
        put(&harness, &id, json!({ "progress": 0.5 })).await;
    }
    assert_eq!(harness.job(&id).await["state"], "active");
}

#[tokio::test]
async fn ojs_progress_5_3_and_6_1_it_belongs_to_one_run_and_late_reports_are_ignored() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "jitter": false })).await;
    let first = harness.fetch().await.unwrap();
    put(&harness, &id, json!({ "progress": 0.8, "lease_token": first["lease_token"] })).await;
    let reply = harness.fail(&id).await;
    assert_eq!(progress(&harness, &id).await["progress"], json!(null));
    let late = put(&harness, &id, json!({ "progress": 0.9 })).await;
    assert_eq!((&late["accepted"], &late["reason"]), (&json!(false), &json!("wrong_state")));
    harness.run_again(&reply).await;
    assert_eq!(progress(&harness, &id).await["progress"], json!(null), "a new run starts with none");
    let late = put(&harness, &id, json!({ "progress": 0.9, "lease_token": first["lease_token"] })).await;
    assert_eq!((&late["accepted"], &late["reason"]), (&json!(false), &json!("stale_lease")));
    assert_eq!(harness.job(&id).await.get("progress"), None);
    let other = harness.post("/workers/progress", json!({ "job_id": id, "percentage": 5, "worker_id": "w9" })).await;
    assert_eq!(text(&other.expect(200)["reason"]), "other_worker");
}
