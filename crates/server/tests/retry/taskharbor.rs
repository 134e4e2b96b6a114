//! TaskHarbor's split over HTTP: the job's limit at enqueue, the worker's policy with each failure.
//! Names of tests start with the heading in the document.

use crate::common::{Harness, Parts, ms};
use redrive_engine::{Layer, Layers, PolicyDocument};
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

/// A job in TaskHarbor's words.
async fn enqueue(harness: &Harness, document: Value) -> String {
    harness.enqueue(json!({ "dialect": "taskharbor", "policy": document })).await
}

/// A worker's policy in TaskHarbor's words.
fn harbor(policy: Value) -> Value {
    json!({ "dialect": "taskharbor", "policy": { "policy": policy } })
}

fn nack(id: &str, retry: &Value) -> Value {
    json!({ "job_id": id, "error": { "type": "smtp", "message": "busy" }, "retry": retry })
}

/// Runs the job until it ends; returns its waits in milliseconds, and the last reply.
async fn story(harness: &Harness, id: &str, retry: &Value) -> (Vec<f64>, Value) {
    let mut waits = Vec::new();
    harness.fetch().await.expect("the job waits");
    loop {
        let reply = harness.post("/workers/nack", nack(id, retry)).await.expect(200);
        if reply["state"] != "retryable" {
            return (waits, reply);
        }
        waits.push(ms(&reply["retry_delay_ms"]));
        harness.run_again(&reply).await;
    }
}

#[tokio::test]
async fn what_retry_policy_means_the_curve_is_the_workers() {
    let harness = Harness::new();
    let id = enqueue(&harness, json!({ "job": { "max_attempts": 5 } })).await;
    let worker = harbor(json!({ "base_delay": "1s", "max_delay": "3s", "jitter": 0 }));
    let (waits, last) = story(&harness, &id, &worker).await;
    assert_eq!(waits, [1_000.0, 2_000.0, 3_000.0, 3_000.0]);
    assert_eq!((&last["max_attempts"], &last["dead_letter"]), (&json!(5), &json!(true)));
}

#[tokio::test]
async fn examples_global_cap_smaller_than_job_cap() {
    let harness = Harness::new();
    let id = enqueue(&harness, json!({ "job": { "max_attempts": 20 } })).await;
    let (waits, last) = story(&harness, &id, &harbor(json!({ "max_attempts": 10 }))).await;
    assert_eq!((waits.len(), &last["attempt"], &last["max_attempts"]), (9, &json!(10), &json!(10)));
    assert_eq!(harness.dead().await, [id]);
}

#[tokio::test]
async fn examples_use_the_defaults() {
    let harness = Harness::new();
    let id = enqueue(&harness, json!({ "job": { "max_attempts": 5 } })).await;
    harness.fetch().await.expect("the job waits");
    let reply = harness.fail(&id).await;
    assert!((160.0..=240.0).contains(&ms(&reply["retry_delay_ms"])), "{reply}");
    assert_eq!(reply["max_attempts"], 5);
}

#[tokio::test]
async fn disabling_retries_a_null_policy_is_a_dead_letter_on_the_first_failure() {
    let harness = Harness::new();
    for document in [json!({}), json!({ "job": { "max_attempts": 5 } })] {
        let id = enqueue(&harness, document).await;
        let (waits, last) = story(&harness, &id, &harbor(Value::Null)).await;
        assert_eq!((waits.len(), &last["dead_letter"]), (0, &json!(true)));
        let verdict = harness.job(&id).await["redrive"]["failures"][0]["verdict"].clone();
        assert_eq!(verdict["reason"]["name"], "retries_disabled", "{verdict}");
    }
    let id = harness.enqueue_with(json!({})).await;
    let (waits, last) = story(&harness, &id, &harbor(Value::Null)).await;
    assert_eq!((waits.len(), &last["dead_letter"]), (0, &json!(false)), "its fate stays the job's own");
}

#[tokio::test]
async fn dlq_rules_an_unrecoverable_error_is_a_dead_letter_at_once() {
    let harness = Harness::new();
    let id = enqueue(&harness, json!({ "job": { "max_attempts": 5 } })).await;
    harness.fetch().await.expect("the job waits");
    let mut report = nack(&id, &harbor(json!({})));
    report["error"]["retryable"] = json!(false);
    assert_eq!(harness.post("/workers/nack", report).await.expect(200)["dead_letter"], true);
}

#[tokio::test]
async fn semantics_a_worker_only_tightens_other_jobs() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 4, "initial_interval": "PT9S", "jitter": false })).await;
    let (waits, last) = story(&harness, &id, &json!({ "max_attempts": 2, "initial_interval": "PT0.1S" })).await;
    assert_eq!((waits, &last["max_attempts"]), (vec![9_000.0], &json!(2)));
    let id = harness.enqueue_with(json!({})).await;
    let (waits, last) = story(&harness, &id, &harbor(json!({ "base_delay": "1ms" }))).await;
    assert_eq!((waits.len(), &last["max_attempts"]), (2, &json!(3)), "RET-09");
    assert!(waits[0] >= 500.0, "{waits:?}");
}

#[tokio::test]
async fn semantics_what_an_operator_configured_comes_before_the_worker() {
    let mut layers = Layers::ojs_default().unwrap();
    let value = json!({ "initial_interval": "PT2S", "jitter": false, "max_attempts": 9 });
    layers.queues.insert("default".into(), Layer::read(PolicyDocument { dialect: Dialect::Ojs, value }).unwrap());
    let harness = Harness::with(Parts { layers, ..Parts::default() });
    let id = enqueue(&harness, json!({ "job": { "max_attempts": 3 } })).await;
    let from = harness.job(&id).await["redrive"]["policy_from"].clone();
    assert_eq!(from, json!({ "layer": "queue", "dialect": "ojs", "capped_by": ["job"] }));
    let (waits, _) = story(&harness, &id, &harbor(json!({ "base_delay": "1ms" }))).await;
    assert_eq!(waits, [2_000.0, 4_000.0]);
}

#[tokio::test]
async fn what_is_left_to_the_worker_and_the_policy_of_the_worker_can_be_read_back() {
    let harness = Harness::new();
    let id = enqueue(&harness, json!({ "job": { "max_attempts": 5 } })).await;
    let job = harness.job(&id).await;
    assert_eq!(job["max_attempts"], 5);
    assert_eq!(job["redrive"]["policy"]["delegated"], json!({ "job_limit": 5 }));
    assert_eq!(job["redrive"]["policy_from"]["dialect"], "taskharbor");
    harness.fetch().await.expect("the job waits");
    let worker = harbor(json!({ "base_delay": "7s", "max_delay": "1m", "jitter": 0 }));
    harness.post("/workers/nack", nack(&id, &worker)).await.expect(200);
    let job = harness.job(&id).await;
    assert_eq!(job["errors"][0]["retry"], worker);
    assert_eq!(job["redrive"]["failures"][0]["verdict"]["delay_ms"], 7_000.0);
}

#[tokio::test]
async fn a_worker_s_policy_that_is_not_valid_is_refused_and_changes_nothing() {
    let harness = Harness::new();
    let id = enqueue(&harness, json!({})).await;
    harness.fetch().await.expect("the job waits");
    for (retry, path) in [
        (harbor(json!({ "jitter": 2, "multiplier": 0 })), "/retry/policy/multiplier"),
        (json!({ "max_attempts": "3" }), "/retry/max_attempts"),
        (json!({ "dialect": "perl", "policy": {} }), "/retry/dialect"),
        (json!(null), "/retry"),
    ] {
        let fault = harness.post("/workers/nack", nack(&id, &retry)).await.expect(422);
        assert_eq!(fault["error"]["code"], "validation_error");
        assert_eq!(fault["error"]["details"]["problems"][0]["path"], path, "{fault}");
    }
    let mut listed = nack(&id, &json!({ "jitter": 1 }));
    listed["action"] = json!("nack");
    let body = harness.post("/workers/settle", json!({ "settlements": [listed] })).await.expect(200);
    assert_eq!((&body["results"][0]["status"], &body["refused"]), (&json!(422), &json!(1)), "{body}");
    let job = harness.job(&id).await;
    assert_eq!((&job["state"], job.get("errors")), (&json!("active"), None));
}

#[tokio::test]
async fn many_reports_each_bring_their_own_policy() {
    let harness = Harness::new();
    let mut settlements = Vec::new();
    for seconds in 1..=3 {
        let id = enqueue(&harness, json!({})).await;
        let worker = harbor(json!({ "base_delay": format!("{seconds}s"), "jitter": 0 }));
        let mut report = nack(&id, &worker);
        report["action"] = json!("nack");
        settlements.push(report);
    }
    harness.post("/workers/fetch", json!({ "queues": ["default"], "count": 3 })).await.expect(200);
    let body = harness.post("/workers/settle", json!({ "settlements": settlements })).await.expect(200);
    let waits: Vec<f64> = (0..3).map(|index| ms(&body["results"][index]["retry_delay_ms"])).collect();
    assert_eq!(waits, [1_000.0, 2_000.0, 3_000.0]);
}
