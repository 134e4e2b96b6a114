//! Discarded jobs that are not dead letters: they are logged, and can be redriven while they are retained.

use crate::common::{Harness, text};
use serde_json::{Value, json};
use std::time::Duration;

/// A job that runs once, fails, and is discarded.
async fn discarded(harness: &Harness, kind: &str, queue: &str) -> String {
    let new = json!({ "type": kind, "args": [], "options": { "queue": queue, "retry": { "max_attempts": 1 } } });
    let id = text(&harness.post("/jobs", new).await.expect(201)["job"]["id"]);
    harness.post("/workers/fetch", json!({ "queues": [queue] })).await.expect(200);
    harness.fail(&id).await;
    id
}

async fn states(harness: &Harness, ids: &[String]) -> Vec<Value> {
    let mut states = Vec::new();
    for id in ids {
        states.push(harness.job(id).await["state"].clone());
    }
    states
}

#[tokio::test]
async fn a_discarded_job_can_be_redriven_while_it_is_retained() {
    let harness = Harness::new();
    let id = discarded(&harness, "mail.send", "q1").await;
    harness.advance_ms(3_600_000.0).await;
    harness.post(&format!("/admin/jobs/{id}/retry"), json!({})).await.expect(200);
    assert_eq!(harness.job(&id).await["state"], "available");
}

#[tokio::test]
async fn discarded_jobs_are_redriven_in_bulk_by_type_queue_and_time() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for (kind, queue) in [("mail.send", "q1"), ("mail.send", "q2"), ("report.make", "q1")] {
        ids.push(discarded(&harness, kind, queue).await);
        harness.advance_ms(60_000.0).await;
    }
    let filter = json!({ "state": "discarded", "type": "mail.send" });
    let counted =
        harness.post("/admin/jobs/bulk/retry", json!({ "filter": filter, "dry_run": true })).await.expect(200);
    assert_eq!((&counted["matched"], &counted["dry_run"]), (&json!(2), &json!(true)));
    let error = harness.post("/admin/jobs/bulk/retry", json!({ "filter": filter })).await.expect(400);
    assert!(error["error"]["message"].as_str().unwrap().contains("2 discarded jobs"), "{error}");
    let all = json!("discarded");
    assert_eq!(states(&harness, &ids).await, [all.clone(), all.clone(), all.clone()]);

    let since = json!({ "state": "discarded", "type": "mail.send", "since": "2026-02-13T10:01:00Z" });
    let done = harness.post("/admin/jobs/bulk/retry", json!({ "filter": since, "confirm": true })).await.expect(200);
    assert_eq!((&done["matched"], &done["succeeded"]), (&json!(1), &json!(1)));
    assert_eq!(states(&harness, &ids).await, [all.clone(), json!("available"), all.clone()]);

    let order = json!({ "filter": { "state": "discarded" }, "all": true, "confirm": true });
    assert_eq!(harness.post("/admin/jobs/bulk/retry", order).await.expect(200)["succeeded"], 2);
}

#[tokio::test]
async fn ended_jobs_are_deleted_in_bulk_and_those_that_wait_are_not() {
    let harness = Harness::new();
    let [gone, stored] = [discarded(&harness, "mail.send", "q1").await, discarded(&harness, "mail.send", "q2").await];
    let order = json!({ "filter": { "state": "discarded", "queue": "q1" }, "confirm": true });
    let done = harness.post("/admin/jobs/bulk/delete", order).await.expect(200);
    assert_eq!((&done["action"], &done["succeeded"]), (&json!("delete"), &json!(1)));
    harness.get(&format!("/jobs/{gone}")).await.expect(404);
    assert_eq!(harness.job(&stored).await["state"], "discarded");
    for order in
        [json!({ "filter": { "state": "discarded" }, "confirm": true }), json!({ "all": true, "confirm": true })]
    {
        harness.post("/admin/jobs/bulk/delete", order).await.expect(400);
    }
    assert_eq!(harness.job(&stored).await["state"], "discarded");
}

#[tokio::test]
async fn a_bulk_retry_without_an_ended_state_or_a_filter_redrives_nothing() {
    let harness = Harness::new();
    let id = discarded(&harness, "mail.send", "q1").await;
    let waiting = harness.enqueue(json!({})).await;
    for (order, path) in [
        (json!({ "filter": { "type": "mail.send" }, "confirm": true }), "/filter/state"),
        (json!({ "confirm": true, "all": true }), "/filter/state"),
        (json!({ "filter": { "state": "available", "type": "test.job" }, "confirm": true }), "/filter/state"),
        (json!({ "filter": { "state": "discarded" }, "confirm": true }), "/filter"),
        (json!({ "filter": { "state": "discarded", "kind": "mail.send" }, "confirm": true }), "/filter/kind"),
        (json!({ "filter": { "state": "discarded", "type": "a" }, "all": true, "confirm": true }), "/filter"),
        (json!({ "state": "discarded", "all": true, "confirm": true }), "/state"),
    ] {
        let error = harness.post("/admin/jobs/bulk/retry", order.clone()).await.expect(400);
        assert_eq!(error["error"]["details"]["problems"][0]["path"], path, "{order}");
    }
    assert_eq!(states(&harness, &[id, waiting]).await, [json!("discarded"), json!("available")]);
}

#[tokio::test(start_paused = true)]
async fn the_log_reports_discarded_jobs_that_are_not_dead_letters_and_no_others() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let stored = harness.enqueue(retry).await;
    harness.fetch().await.unwrap();
    harness.fail(&stored).await;
    for _ in 0..2 {
        discarded(&harness, "mail.send", "q1").await;
    }
    let logged = || -> Vec<String> {
        let lines = harness.log.lock().unwrap();
        lines.iter().filter(|line| line.contains("discarded")).cloned().collect()
    };
    // Time is paused for the test, and advances while all tasks are idle.
    harness.server.log_discarded(tokio::time::sleep(Duration::from_millis(1_500))).await;
    let lines = logged();
    let expected = "2 jobs of type mail.send in queue q1 discarded, not kept as dead letters: on_exhaustion is discard; \
                    `redrive jobs retry --state discarded --type mail.send --queue q1` redrives what is still there";
    assert!(lines.len() == 1 && lines[0].ends_with(expected), "{lines:?}");

    discarded(&harness, "report.make", "q1").await;
    harness.server.log_discarded(std::future::ready(())).await;
    let last = logged().pop().unwrap();
    assert!(last.contains("1 job of type report.make in queue q1 discarded, not kept as a dead letter"), "{last}");
}
