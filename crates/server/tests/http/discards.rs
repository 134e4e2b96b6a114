//! Jobs that are thrown away: told of in the log, and redriven while they are there.

use crate::common::{Bench, text};
use serde_json::{Value, json};
use std::time::Duration;

/// A job that runs once, fails, and is discarded.
async fn discarded(bench: &Bench, kind: &str, queue: &str) -> String {
    let new = json!({ "type": kind, "args": [], "options": { "queue": queue, "retry": { "max_attempts": 1 } } });
    let id = text(&bench.post("/jobs", new).await.expect(201)["job"]["id"]);
    bench.post("/workers/fetch", json!({ "queues": [queue] })).await.expect(200);
    bench.fail(&id).await;
    id
}

async fn states(bench: &Bench, ids: &[String]) -> Vec<Value> {
    let mut states = Vec::new();
    for id in ids {
        states.push(bench.job(id).await["state"].clone());
    }
    states
}

#[tokio::test]
async fn a_discarded_job_can_be_taken_back_while_it_is_kept() {
    let bench = Bench::new();
    let id = discarded(&bench, "mail.send", "q1").await;
    bench.advance_ms(3_600_000.0).await;
    bench.post(&format!("/admin/jobs/{id}/retry"), json!({})).await.expect(200);
    assert_eq!(bench.job(&id).await["state"], "available");
}

#[tokio::test]
async fn discarded_jobs_are_taken_back_in_bulk_by_type_queue_and_time() {
    let bench = Bench::new();
    let mut ids = Vec::new();
    for (kind, queue) in [("mail.send", "q1"), ("mail.send", "q2"), ("report.make", "q1")] {
        ids.push(discarded(&bench, kind, queue).await);
        bench.advance_ms(60_000.0).await;
    }
    let filter = json!({ "state": "discarded", "type": "mail.send" });
    let counted = bench.post("/admin/jobs/bulk/retry", json!({ "filter": filter, "dry_run": true })).await.expect(200);
    assert_eq!((&counted["matched"], &counted["dry_run"]), (&json!(2), &json!(true)));
    let error = bench.post("/admin/jobs/bulk/retry", json!({ "filter": filter })).await.expect(400);
    assert!(error["error"]["message"].as_str().unwrap().contains("2 discarded jobs"), "{error}");
    let all = json!("discarded");
    assert_eq!(states(&bench, &ids).await, [all.clone(), all.clone(), all.clone()]);

    let since = json!({ "state": "discarded", "type": "mail.send", "since": "2026-02-13T10:01:00Z" });
    let done = bench.post("/admin/jobs/bulk/retry", json!({ "filter": since, "confirm": true })).await.expect(200);
    assert_eq!((&done["matched"], &done["succeeded"]), (&json!(1), &json!(1)));
    assert_eq!(states(&bench, &ids).await, [all.clone(), json!("available"), all.clone()]);

    let order = json!({ "filter": { "state": "discarded" }, "all": true, "confirm": true });
    assert_eq!(bench.post("/admin/jobs/bulk/retry", order).await.expect(200)["succeeded"], 2);
}

#[tokio::test]
async fn ended_jobs_are_deleted_in_bulk_and_those_that_wait_are_not() {
    let bench = Bench::new();
    let [gone, kept] = [discarded(&bench, "mail.send", "q1").await, discarded(&bench, "mail.send", "q2").await];
    let order = json!({ "filter": { "state": "discarded", "queue": "q1" }, "confirm": true });
    let done = bench.post("/admin/jobs/bulk/delete", order).await.expect(200);
    assert_eq!((&done["action"], &done["succeeded"]), (&json!("delete"), &json!(1)));
    bench.get(&format!("/jobs/{gone}")).await.expect(404);
    assert_eq!(bench.job(&kept).await["state"], "discarded");
    for order in
        [json!({ "filter": { "state": "discarded" }, "confirm": true }), json!({ "all": true, "confirm": true })]
    {
        bench.post("/admin/jobs/bulk/delete", order).await.expect(400);
    }
    assert_eq!(bench.job(&kept).await["state"], "discarded");
}

#[tokio::test]
async fn an_order_that_names_no_ended_state_or_no_filter_takes_nothing_back() {
    let bench = Bench::new();
    let id = discarded(&bench, "mail.send", "q1").await;
    let waiting = bench.enqueue(json!({})).await;
    for (order, path) in [
        (json!({ "filter": { "type": "mail.send" }, "confirm": true }), "/filter/state"),
        (json!({ "confirm": true, "all": true }), "/filter/state"),
        (json!({ "filter": { "state": "available", "type": "test.job" }, "confirm": true }), "/filter/state"),
        (json!({ "filter": { "state": "discarded" }, "confirm": true }), "/filter"),
        (json!({ "filter": { "state": "discarded", "kind": "mail.send" }, "confirm": true }), "/filter/kind"),
        (json!({ "filter": { "state": "discarded", "type": "a" }, "all": true, "confirm": true }), "/filter"),
        (json!({ "state": "discarded", "all": true, "confirm": true }), "/state"),
    ] {
        let error = bench.post("/admin/jobs/bulk/retry", order.clone()).await.expect(400);
        assert_eq!(error["error"]["details"]["problems"][0]["path"], path, "{order}");
    }
    assert_eq!(states(&bench, &[id, waiting]).await, [json!("discarded"), json!("available")]);
}

#[tokio::test(start_paused = true)]
async fn the_log_tells_of_jobs_that_are_thrown_away_and_of_no_others() {
    let bench = Bench::new();
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let kept = bench.enqueue(retry).await;
    bench.fetch().await.unwrap();
    bench.fail(&kept).await;
    for _ in 0..2 {
        discarded(&bench, "mail.send", "q1").await;
    }
    let told = || -> Vec<String> {
        let lines = bench.log.lock().unwrap();
        lines.iter().filter(|line| line.contains("discarded")).cloned().collect()
    };
    // Time stands still for the test, and runs ahead where nothing else is to do.
    bench.server.log_discarded(tokio::time::sleep(Duration::from_millis(1_500))).await;
    let lines = told();
    let expected = "2 jobs of type mail.send in queue q1 discarded, not kept as dead letters: on_exhaustion is discard; \
                    `redrive jobs retry --state discarded --type mail.send --queue q1` redrives what is still there";
    assert!(lines.len() == 1 && lines[0].ends_with(expected), "{lines:?}");

    discarded(&bench, "report.make", "q1").await;
    bench.server.log_discarded(std::future::ready(())).await;
    let last = told().pop().unwrap();
    assert!(last.contains("1 job of type report.make in queue q1 discarded, not kept as a dead letter"), "{last}");
}
