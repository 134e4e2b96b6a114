//! The vocabulary of events: each is told when it happens, with the members that its schema demands.

use crate::common::{Harness, text};
use serde_json::{Value, json};

async fn events(harness: &Harness, types: &str) -> Vec<Value> {
    let body = harness.get(&format!("/events?types={types}")).await.expect(200);
    body["events"].as_array().expect("a list").clone()
}

fn types(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| text(&event["type"])).collect()
}

#[tokio::test]
async fn a_failure_is_two_events_in_the_order_of_the_lifecycle() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 2, "initial_interval": "PT1S", "jitter": false });
    let id = harness.enqueue_with(json!({ "retry": retry })).await;
    for attempt in 1..=2 {
        harness.fetch().await.expect("a job");
        let error = json!({ "code": "E7", "message": "no", "retryable": true });
        harness.post("/workers/nack", json!({ "job_id": id, "error": error })).await.expect(200);
        assert_eq!(harness.job(&id).await["attempt"], attempt);
        harness.advance_ms(1_000.0).await;
    }
    let told = events(&harness, "job.*").await;
    let expected = ["enqueued", "started", "failed", "retrying", "available", "started", "failed", "discarded"];
    assert_eq!(types(&told), expected.map(|word| format!("job.{word}")));
    let mut ids: Vec<String> = told.iter().map(|event| text(&event["id"])).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), expected.len(), "no two events have the same id");
    let retrying = &told[3]["data"];
    assert_eq!((&retrying["attempt"], &retrying["max_attempts"]), (&json!(1), &json!(2)));
    assert_eq!(retrying["next_retry_at"], "2026-02-13T10:00:01.000000Z");
    for (event, key) in [(2, "error"), (3, "error"), (6, "error"), (7, "last_error")] {
        let error = &told[event]["data"][key];
        assert_eq!((&error["code"], &error["message"]), (&json!("E7"), &json!("no")), "{}", told[event]);
    }
    assert_eq!(told[7]["data"]["total_attempts"], 2);
}

#[tokio::test]
async fn scheduled_and_expired_jobs_are_told_with_their_times() {
    let harness = Harness::new();
    let times = json!({ "scheduled_at": "2026-02-13T10:01:00Z", "expires_at": "2026-02-13T10:00:30Z" });
    harness.enqueue_with(times).await;
    harness.advance_ms(30_000.0).await;
    let told = events(&harness, "job.*").await;
    assert_eq!(types(&told), ["job.scheduled", "job.expired"]);
    assert_eq!(told[0]["data"]["scheduled_at"], "2026-02-13T10:01:00.000000Z");
    let expired = &told[1]["data"];
    assert_eq!(expired["created_at"], "2026-02-13T10:00:00.000000Z");
    assert_eq!((&expired["expired_at"], &expired["ttl_ms"]), (&json!("2026-02-13T10:00:30.000000Z"), &json!(30_000)));
}

#[tokio::test]
async fn pauses_are_told_once() {
    let harness = Harness::new();
    for _ in 0..2 {
        harness.post("/queues/mail/pause", json!({})).await.expect(200);
    }
    for _ in 0..2 {
        harness.post("/queues/mail/resume", json!({})).await.expect(200);
    }
    let told = events(&harness, "queue.*").await;
    assert_eq!(types(&told), ["queue.paused", "queue.resumed"]);
    assert_eq!((&told[0]["subject"], &told[0]["data"]), (&json!("mail"), &json!({ "queue": "mail" })));
    assert_eq!(harness.get("/events?queues=mail").await.expect(200)["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(harness.get("/events?queues=other").await.expect(200)["events"], json!([]));
}

#[tokio::test]
async fn slots_of_schedules_are_told_and_those_that_are_skipped_too() {
    let harness = Harness::new();
    let cron = json!({ "name": "report", "cron": "*/5 * * * *", "type": "report.make", "args": [] });
    harness.post("/cron", cron).await.expect(201);
    for _ in 0..2 {
        harness.advance_ms(300_000.0).await;
    }
    let told = events(&harness, "cron.*").await;
    assert_eq!(types(&told), ["cron.triggered", "cron.skipped"]);
    let (triggered, skipped) = (&told[0]["data"], &told[1]["data"]);
    assert_eq!((&triggered["cron_name"], &triggered["cron_expr"]), (&json!("report"), &json!("*/5 * * * *")));
    assert_eq!(triggered["scheduled_at"], "2026-02-13T10:05:00.000000Z");
    assert_eq!(harness.job(&text(&triggered["job_id"])).await["type"], "report.make", "the job of the slot");
    assert_eq!((&skipped["reason"], &skipped["job_type"]), (&json!("overlap_prevention"), &json!("report.make")));
    assert_eq!(skipped["existing_job_id"], triggered["job_id"]);
    assert_eq!(told[1]["subject"], "report");
}

async fn end(harness: &Harness, ack: bool) {
    let job = harness.fetch().await.expect("a job");
    let body = json!({ "job_id": job["id"], "error": { "code": "E7", "message": "no" } });
    match ack {
        true => harness.post("/workers/ack", json!({ "job_id": job["id"] })).await.expect(200),
        false => harness.post("/workers/nack", body).await.expect(200),
    };
}

fn chain() -> Value {
    let once = json!({ "retry": { "max_attempts": 1 } });
    let step = |kind: &str| json!({ "type": kind, "args": [], "options": once });
    json!({ "type": "chain", "name": "order", "steps": [step("a.one"), step("a.two")] })
}

#[tokio::test]
async fn a_workflow_tells_its_start_its_steps_and_its_end() {
    let harness = Harness::new();
    let id = text(&harness.post("/workflows", chain()).await.expect(201)["id"]);
    harness.advance_ms(1_500.0).await;
    end(&harness, true).await;
    end(&harness, true).await;
    let told = events(&harness, "workflow.*").await;
    let expected = ["started", "step_completed", "step_completed", "completed"];
    assert_eq!(types(&told), expected.map(|word| format!("workflow.{word}")));
    for event in &told {
        assert_eq!((&event["subject"], &event["data"]["workflow_name"]), (&json!(id), &json!("order")));
    }
    assert_eq!(told[0]["data"]["total_steps"], 2);
    let step = &told[1]["data"];
    assert_eq!((&step["step_id"], &step["step_type"]), (&json!("0"), &json!("a.one")));
    assert_eq!((&step["duration_ms"], &step["steps_remaining"]), (&json!(1_500), &json!(1)));
    assert_eq!((&told[3]["data"]["total_steps"], &told[3]["data"]["duration_ms"]), (&json!(2), &json!(1_500)));
}

#[tokio::test]
async fn a_workflow_that_fails_names_the_step_and_its_error() {
    let harness = Harness::new();
    harness.post("/workflows", chain()).await.expect(201);
    end(&harness, true).await;
    end(&harness, false).await;
    let cancelled = text(&harness.post("/workflows", chain()).await.expect(201)["id"]);
    harness.call_text("DELETE", &format!("/ojs/v1/workflows/{cancelled}"), "").await.expect(200);
    let told = events(&harness, "workflow.failed,workflow.cancelled").await;
    assert_eq!(types(&told), ["workflow.failed", "workflow.cancelled"]);
    let failed = &told[0]["data"];
    assert_eq!((&failed["failed_step_id"], &failed["failed_step_type"]), (&json!("1"), &json!("a.two")));
    assert_eq!(failed["error"], json!({ "code": "E7", "message": "no" }));
    assert_eq!(told[1]["subject"], json!(cancelled));
}

#[tokio::test]
async fn workers_are_told_when_they_are_first_heard_of_and_when_they_stop_fetching() {
    let harness = Harness::new();
    for (pid, state) in [(1, "running"), (1, "running"), (1, "quiet"), (1, "terminate"), (2, "running")] {
        let beat = json!({ "worker_id": "w", "pid": pid, "state": state, "queues": ["mail"], "concurrency": 4 });
        harness.post("/workers/heartbeat", beat).await.expect(200);
        harness.advance_clock_ms(1.0);
    }
    harness.advance_clock_ms(120_000.0);
    harness.call_text("DELETE", "/ojs/v1/admin/workers/w", "").await.expect(200);
    let told = events(&harness, "worker.*").await;
    assert_eq!(types(&told), ["worker.started", "worker.quiet", "worker.started", "worker.stopped"]);
    assert_eq!(told[0]["data"], json!({ "worker_id": "w", "queues": ["mail"], "concurrency": 4 }));
    assert_eq!(told[3]["data"]["reason"], "error");
}

#[tokio::test]
async fn types_that_do_not_exist_are_refused() {
    let harness = Harness::new();
    for (types, near) in [("cron.trigered", "cron.triggered"), ("jobs.*", ""), ("job*", "")] {
        let refused = harness.get(&format!("/events?types={types}")).await.expect(400);
        let message = text(&refused["error"]["message"]);
        assert!(message.contains(types) && message.contains(near), "{message}");
        harness.get(&format!("/events/stream?types={types}")).await.expect(400);
    }
}
