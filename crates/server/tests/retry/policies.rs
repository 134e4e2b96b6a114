//! RET-09, RET-10, RET-16 and RET-20: which policy applies, and which are refused.

use crate::common::{Harness, Parts, ms};
use redrive_engine::{Layer, Layers, OperatorCap, PolicyDocument};
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

#[tokio::test]
async fn ret_09_the_default_is_three_attempts_and_discard() {
    let harness = Harness::new();
    let created = harness.post("/jobs", json!({ "type": "a.b", "args": [] })).await.expect(201)["job"].clone();
    assert_eq!(created["max_attempts"], 3);
    let id = created["id"].as_str().unwrap().to_owned();
    harness.fetch().await.unwrap();
    let first = harness.fail(&id).await;
    assert!((500.0..1_500.0).contains(&ms(&first["retry_delay_ms"])), "{first}");
    harness.run_again(&first).await;
    let second = harness.fail(&id).await;
    assert!((1_000.0..3_000.0).contains(&ms(&second["retry_delay_ms"])), "{second}");
    harness.run_again(&second).await;
    let third = harness.fail(&id).await;
    assert_eq!((&third["state"], &third["attempt"]), (&json!("discarded"), &json!(3)));
    assert!(harness.dead().await.is_empty());
    assert_eq!(harness.job(&id).await["redrive"]["policy_from"]["layer"], "server");
}

#[tokio::test]
async fn ret_10_a_partial_policy_is_merged_with_the_defaults() {
    let defaults = json!({
        "max_attempts": 3, "initial_interval": "PT1S", "backoff_coefficient": 2.0, "max_interval": "PT5M",
        "jitter": true, "non_retryable_errors": [], "on_exhaustion": "discard",
    });
    let harness = Harness::new();
    for part in [
        json!({}),
        json!({ "max_attempts": 7 }),
        json!({ "initial_interval": "PT2S" }),
        json!({ "backoff_coefficient": 1.5 }),
        json!({ "max_interval": "PT10M" }),
        json!({ "jitter": false }),
        json!({ "non_retryable_errors": ["auth.*", "Fatal"] }),
        json!({ "on_exhaustion": "dead_letter" }),
        json!({ "backoff_strategy": "linear" }),
    ] {
        let body = json!({ "type": "a.b", "args": [], "options": { "retry": part } });
        let job = harness.post("/jobs", body).await.expect(201)["job"].clone();
        let mut expected = defaults.clone();
        part.as_object().unwrap().iter().for_each(|(key, value)| expected[key] = value.clone());
        assert_eq!(job["retry"], expected, "{part}");
        assert_eq!(job["max_attempts"], expected["max_attempts"]);
    }
}

#[tokio::test]
async fn ret_10_the_policy_may_stand_in_four_places_and_options_win() {
    let harness = Harness::new();
    for (body, attempts) in [
        (json!({ "options": { "retry": { "max_attempts": 4 } } }), 4),
        (json!({ "options": { "retry_policy": { "max_attempts": 5 } } }), 5),
        (json!({ "retry": { "max_attempts": 6 } }), 6),
        (json!({ "retry_policy": { "max_attempts": 7 } }), 7),
        (json!({ "retry": { "max_attempts": 6 }, "options": { "retry": { "max_attempts": 8 } } }), 8),
    ] {
        let mut whole = json!({ "type": "a.b", "args": [] });
        body.as_object().unwrap().iter().for_each(|(key, value)| whole[key] = value.clone());
        assert_eq!(harness.post("/jobs", whole).await.expect(201)["job"]["max_attempts"], attempts, "{body}");
    }
}

/// Policies that are not valid, and the field that a refusal has to name.
fn invalid() -> Vec<(Value, &'static str)> {
    vec![
        (json!({ "max_attempts": -1 }), "/max_attempts"),
        (json!({ "max_attempts": 2.5 }), "/max_attempts"),
        (json!({ "max_attempts": true }), "/max_attempts"),
        (json!({ "max_attempts": "3" }), "/max_attempts"),
        (json!({ "max_attempts": null }), "/max_attempts"),
        (json!({ "initial_interval": "PT0S" }), "/initial_interval"),
        (json!({ "initial_interval": 1_000 }), "/initial_interval"),
        (json!({ "initial_interval": "PT10M" }), "/initial_interval"),
        (json!({ "initial_interval": "PT10S", "max_interval": "PT5S" }), "/max_interval"),
        (json!({ "max_interval": "PT0.5S" }), "/max_interval"),
        (json!({ "backoff_coefficient": 0.5 }), "/backoff_coefficient"),
        (json!({ "jitter": "yes" }), "/jitter"),
        (json!({ "jitter": 1 }), "/jitter"),
        (json!({ "non_retryable_errors": "x" }), "/non_retryable_errors"),
        (json!({ "non_retryable_errors": ["a", ""] }), "/non_retryable_errors/1"),
        (json!({ "non_retryable_errors": ["a", 5] }), "/non_retryable_errors/1"),
        (json!({ "on_exhaustion": "explode" }), "/on_exhaustion"),
        (json!({ "backoff_strategy": "cubic" }), "/backoff_strategy"),
        (json!({ "initial_interval_ms": 100 }), "/initial_interval_ms"),
        (json!({ "maxAttempts": 3 }), "/maxAttempts"),
        (json!([]), ""),
        (json!("exponential"), ""),
        (json!(null), ""),
        (json!({ "dialect": "perl", "policy": {} }), "/dialect"),
        (json!({ "dialect": "azolla", "policy": { "stop": { "max_attempts": "x" } } }), "/stop/max_attempts"),
    ]
}

#[tokio::test]
async fn ret_16_ret_20_policies_are_checked_when_the_job_is_enqueued() {
    let harness = Harness::new();
    for (retry, path) in invalid() {
        let body = json!({ "type": "a.b", "args": [], "options": { "retry": retry } });
        let error = harness.post("/jobs", body).await.expect(422)["error"].clone();
        assert_eq!(error["code"], "validation_error");
        assert_eq!(error["details"]["error_type"], "validation.retry_policy_invalid");
        assert_eq!(error["details"]["problems"][0]["path"], format!("/options/retry{path}"), "{retry}");
    }
    let twice = r#"{"type":"a.b","args":[],"options":{"retry":{"max_attempts":3,"max_attempts":4}}}"#;
    harness.call_text("POST", "/ojs/v1/jobs", twice).await.expect(422);
    assert_eq!(harness.fetch().await, None, "nothing was kept");
}

#[tokio::test]
async fn ret_16_every_problem_is_listed_at_once() {
    let harness = Harness::new();
    let retry = json!({ "max_attempts": -1, "jitter": 0, "on_exhaustion": "x", "unknown": 1 });
    let body = json!({ "type": "a.b", "args": [], "options": { "retry": retry } });
    let error = harness.post("/jobs", body).await.expect(422)["error"].clone();
    assert_eq!(error["details"]["problems"].as_array().unwrap().len(), 4, "{error}");
}

#[tokio::test]
async fn ret_16_batches_and_dead_letters_check_policies_too() {
    let harness = Harness::new();
    let id = harness.enqueue(json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" })).await;
    harness.fetch().await.unwrap();
    harness.fail(&id).await;
    for (retry, path) in invalid() {
        let good = json!({ "type": "a.b", "args": [] });
        let bad = json!({ "type": "a.b", "args": [], "options": { "retry": retry } });
        let error = harness.post("/jobs/batch", json!({ "jobs": [good, bad] })).await.expect(422)["error"].clone();
        assert_eq!(error["details"]["problems"][0]["path"], format!("/jobs/1/options/retry{path}"), "{retry}");
        let body = json!({ "override": { "retry": retry } });
        let error = harness.post(&format!("/dead-letter/{id}/retry"), body).await.expect(422)["error"].clone();
        assert_eq!(error["details"]["problems"][0]["path"], format!("/override/retry{path}"), "{retry}");
    }
    assert_eq!(harness.fetch().await, None, "nothing was stored, and the dead letter is where it was");
    assert_eq!(harness.dead().await, [id]);
}

#[tokio::test]
async fn layers_and_caps_apply_and_can_be_read_back() {
    let layer = |dialect, value| Layer::read(PolicyDocument { dialect, value }).unwrap();
    let mut layers = Layers::ojs_default().unwrap();
    layers.kinds.insert("mail.send".into(), layer(Dialect::Azolla, json!({ "stop": { "max_attempts": 9 } })));
    layers.queues.insert("slow".into(), layer(Dialect::Ojs, json!({ "max_attempts": 7 })));
    layers.queue_caps.insert("tight".into(), OperatorCap { max_attempts: Some(2), max_elapsed: None });
    let harness = Harness::with(Parts { layers, ..Parts::default() });
    let enqueue = async |kind: &str, queue: &str, retry: Option<Value>| {
        let mut options = json!({ "queue": queue });
        if let Some(retry) = retry {
            options["retry"] = retry;
        }
        let body = json!({ "type": kind, "args": [], "options": options });
        let id = harness.post("/jobs", body).await.expect(201)["job"]["id"].as_str().unwrap().to_owned();
        let job = harness.job(&id).await;
        (job["max_attempts"].as_u64().unwrap(), job["redrive"]["policy_from"].clone())
    };
    let from =
        |layer: &str, dialect: &str, caps: &[&str]| json!({ "layer": layer, "dialect": dialect, "capped_by": caps });
    assert_eq!(enqueue("a.b", "default", None).await, (3, from("server", "ojs", &[])));
    assert_eq!(enqueue("a.b", "slow", None).await, (7, from("queue", "ojs", &[])));
    assert_eq!(enqueue("mail.send", "slow", None).await, (9, from("type", "azolla", &[])));
    let own = Some(json!({ "max_attempts": 5 }));
    assert_eq!(enqueue("mail.send", "slow", own.clone()).await, (5, from("job", "ojs", &[])));
    assert_eq!(enqueue("a.b", "tight", own).await, (2, from("job", "ojs", &["queue"])));
    let azolla = Some(json!({ "dialect": "azolla", "policy": { "stop": { "max_attempts": 4 } } }));
    assert_eq!(enqueue("a.b", "default", azolla).await, (4, from("job", "azolla", &[])));
}
