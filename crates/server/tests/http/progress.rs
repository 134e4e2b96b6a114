//! How far running jobs have come (OJS progress).

use crate::common::{Bench, ms, text};
use serde_json::{Value, json};

async fn progress(bench: &Bench, id: &str) -> Value {
    bench.get(&format!("/jobs/{id}/progress")).await.expect(200)
}

async fn put(bench: &Bench, id: &str, body: Value) -> Value {
    bench.call("PUT", &format!("/ojs/v1/jobs/{id}/progress"), &body).await.expect(200)
}

#[tokio::test]
async fn ojs_progress_7_1_reported_in_percent_and_read_as_a_fraction() {
    let bench = Bench::new();
    let id = bench.enqueue(json!({})).await;
    let none = json!({ "job_id": id, "state": "available", "progress": null, "message": null, "data": null });
    assert_eq!(progress(&bench, &id).await, none, "no progress is no 404");
    bench.fetch().await.unwrap();
    let report = json!({ "job_id": id, "percentage": 47, "message": "rows", "data": { "rows": 14_000 } });
    let reply = bench.post("/workers/progress", report).await.expect(200);
    assert_eq!((&reply["accepted"], &reply["progress"]), (&json!(true), &json!(0.47)));
    let seen = progress(&bench, &id).await;
    assert_eq!((&seen["progress"], &seen["message"]), (&json!(0.47), &json!("rows")));
    assert_eq!(
        (&seen["data"], &seen["updated_at"]),
        (&json!({ "rows": 14_000 }), &json!("2026-02-13T10:00:00.000000Z"))
    );
    let job = bench.job(&id).await;
    assert_eq!((&job["progress"], &job["progress_message"]), (&json!(0.47), &json!("rows")));
    bench.get("/jobs/019539a4-0000-7000-8000-ffffffffffff/progress").await.expect(404);
}

#[tokio::test]
async fn ojs_progress_5_1_values_are_clamped_and_never_shrink() {
    let bench = Bench::new();
    let id = bench.enqueue(json!({})).await;
    bench.fetch().await.unwrap();
    for (reported, seen) in [(-3.0, 0.0), (0.5, 0.5), (0.2, 0.5), (7.5, 1.0), (0.1, 1.0)] {
        assert_eq!(ms(&put(&bench, &id, json!({ "progress": reported })).await["progress"]), seen, "{reported}");
    }
    let reply = put(&bench, &id, json!({ "message": "again" })).await;
    assert_eq!((ms(&reply["progress"]), &reply["message"]), (1.0, &json!("again")), "what is absent stays");
    let path = format!("/ojs/v1/jobs/{id}/progress");
    for wrong in [json!({}), json!({ "progress": "half" }), json!({ "data": "x".repeat(5_000) })] {
        bench.call("PUT", &path, &wrong).await.expect(400);
    }
}

#[tokio::test]
async fn ojs_progress_6_3_a_report_is_a_heartbeat() {
    let bench = Bench::new();
    let id = bench.enqueue_with(json!({ "visibility_timeout_ms": 10_000 })).await;
    bench.fetch().await.unwrap();
    for _ in 0..3 {
        bench.advance_ms(9_000.0).await;
        put(&bench, &id, json!({ "progress": 0.5 })).await;
    }
    assert_eq!(bench.job(&id).await["state"], "active");
}

#[tokio::test]
async fn ojs_progress_5_3_and_6_1_it_belongs_to_one_run_and_late_reports_are_passed_over() {
    let bench = Bench::new();
    let id = bench.enqueue(json!({ "jitter": false })).await;
    let first = bench.fetch().await.unwrap();
    put(&bench, &id, json!({ "progress": 0.8, "lease_token": first["lease_token"] })).await;
    let reply = bench.fail(&id).await;
    assert_eq!(progress(&bench, &id).await["progress"], json!(null));
    let late = put(&bench, &id, json!({ "progress": 0.9 })).await;
    assert_eq!((&late["accepted"], &late["reason"]), (&json!(false), &json!("wrong_state")));
    bench.run_again(&reply).await;
    assert_eq!(progress(&bench, &id).await["progress"], json!(null), "a new run starts with none");
    let late = put(&bench, &id, json!({ "progress": 0.9, "lease_token": first["lease_token"] })).await;
    assert_eq!((&late["accepted"], &late["reason"]), (&json!(false), &json!("stale_lease")));
    assert_eq!(bench.job(&id).await.get("progress"), None);
    let other = bench.post("/workers/progress", json!({ "job_id": id, "percentage": 5, "worker_id": "w9" })).await;
    assert_eq!(text(&other.expect(200)["reason"]), "other_worker");
}
