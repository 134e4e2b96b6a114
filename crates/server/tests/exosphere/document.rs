//! The examples of Exosphere's document "Retry Policy", each by its section, as graphs that run. `redrive-policy` has
//! the same for the policy alone.

use crate::retries::waits_under;
use crate::world::{World, counts, node};
use serde_json::{Value, json};

/// What an example waits before each retry, at least and at most.
async fn check(section: &str, policy: Value, bases: &[u64]) {
    let strategy = policy["strategy"].as_str().unwrap_or("EXPONENTIAL").to_owned();
    let cap = policy["max_delay"].as_u64().unwrap_or(u64::MAX);
    let found = waits_under(policy).await;
    assert_eq!(found.len(), bases.len(), "exosphere §{section}: {found:?}");
    for (wait, base) in found.iter().zip(bases) {
        let least = match strategy.split_once('_') {
            None => *base,
            Some((_, "EQUAL_JITTER")) => base / 2,
            Some(_) => 0,
        };
        let allowed = least.min(cap)..=(*base).min(cap);
        assert!(allowed.contains(wait), "exosphere §{section}: {wait} of {allowed:?}");
    }
}

#[tokio::test]
async fn exosphere_configuration() {
    let policy = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL", "backoff_factor": 2000, "exponent": 2, "max_delay": 3_600_000,
    });
    check("Configuration", policy, &[2_000, 4_000, 8_000]).await;
    check("Parameters", json!({}), &[2_000, 4_000, 8_000]).await;
}

#[tokio::test]
async fn exosphere_retry_strategies() {
    for (growth, bases) in
        [("EXPONENTIAL", [2_000, 4_000, 8_000]), ("LINEAR", [2_000, 4_000, 6_000]), ("FIXED", [2_000; 3])]
    {
        for jitter in ["", "_FULL_JITTER", "_EQUAL_JITTER"] {
            let strategy = format!("{growth}{jitter}");
            check(&format!("Retry Strategies, {strategy}"), json!({ "strategy": strategy }), &bases).await;
        }
    }
}

#[tokio::test]
async fn exosphere_delay_capping() {
    let policy = json!({ "max_retries": 4, "strategy": "EXPONENTIAL", "backoff_factor": 2000, "exponent": 2, "max_delay": 10000 });
    check("Example with Delay Capping", policy, &[2_000, 4_000, 8_000, 10_000]).await;
}

#[tokio::test]
async fn exosphere_usage_examples() {
    let basic = json!({ "max_retries": 3, "strategy": "EXPONENTIAL", "backoff_factor": 1000, "exponent": 2 });
    check("Basic Exponential Retry", basic, &[1_000, 2_000, 4_000]).await;
    let aggressive =
        json!({ "max_retries": 5, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 500, "exponent": 3 });
    check("Aggressive Retry with Jitter", aggressive, &[500, 1_500, 4_500, 13_500, 40_500]).await;
    let linear = json!({ "max_retries": 2, "strategy": "LINEAR", "backoff_factor": 5000 });
    check("Conservative Linear Retry", linear, &[5_000, 10_000]).await;
    let fixed = json!({ "max_retries": 10, "strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 1000 });
    check("Fixed Retry for Rate Limiting", fixed, &[1_000; 10]).await;
    let capped = json!({
        "max_retries": 5, "strategy": "EXPONENTIAL", "backoff_factor": 2000, "exponent": 2, "max_delay": 30000,
    });
    check("Exponential Retry with Delay Capping", capped, &[2_000, 4_000, 8_000, 16_000, 30_000]).await;
    let conservative = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 1000, "exponent": 3,
        "max_delay": 60000,
    });
    check("Conservative Retry with Maximum Delay", conservative, &[1_000, 3_000, 9_000]).await;
}

#[tokio::test]
async fn exosphere_model_based_configuration() {
    let high_concurrency = json!({
        "max_retries": 3, "strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 1000, "exponent": 2,
        "max_delay": 30000,
    });
    check("Example Configurations, high concurrency", high_concurrency, &[1_000, 2_000, 4_000]).await;
    let predictable = json!({ "max_retries": 5, "strategy": "LINEAR", "backoff_factor": 2000, "exponent": 1 });
    check("Example Configurations, predictable", predictable, &[2_000, 4_000, 6_000, 8_000, 10_000]).await;
    let rate = json!({ "max_retries": 10, "strategy": "FIXED", "backoff_factor": 5000, "max_delay": 5000 });
    check("Example Configurations, rate limiting", rate, &[5_000; 10]).await;
}

#[tokio::test]
async fn exosphere_when_retries_are_triggered() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], json!({ "max_retries": 1, "strategy": "FIXED", "backoff_factor": 100 })).await;
    let run = world.trigger().await;
    let waiting = world.get(&format!("states/run/{run}/graph")).await.expect(200);
    let id = waiting["nodes"][0]["id"].as_str().expect("an id").to_owned();
    world.report(&id, "errored", json!({ "error": "it is not QUEUED" })).await.expect(400);
    let state = world.one("Node").await;
    let answer = world.report(&state, "errored", json!({ "error": "why" })).await.expect(200);
    assert_eq!((&answer["status"], &answer["retry_created"]), (&json!("ERRORED"), &json!(true)));
    world.harness.advance_ms(100.0).await;
    let retry = world.one("Node").await;
    let answer = world.report(&retry, "errored", json!({ "error": "why" })).await.expect(200);
    assert_eq!(answer["retry_created"], false, "the count is no longer less than max_retries");
}

#[tokio::test]
async fn exosphere_error_handling() {
    let world = World::with(&["Node"]).await;
    let body = |policy: Value| json!({ "secrets": {}, "nodes": [node("a", "", &[])], "retry_policy": policy });
    let wrong = json!({ "max_retries": -1, "strategy": "RANDOM", "backoff_factor": 0, "exponent": 0, "max_delay": 0 });
    let refused = world.put("graph/g", body(wrong)).await.expect(422);
    assert_eq!(refused["detail"].as_array().map(Vec::len), Some(5), "{refused}");
    world.get("graph/g").await.expect(404);
    world.put("graph/g", body(json!({}))).await.expect(201);
}

#[tokio::test]
async fn exosphere_integration_with_signals() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], json!({ "max_retries": 2, "strategy": "FIXED", "backoff_factor": 100 })).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    world.report(&state, "errored", json!({ "error": "why" })).await.expect(200);
    world.harness.advance_ms(100.0).await;
    let retry = world.one("Node").await;
    world.report(&retry, "re-enqueue-after", json!({ "enqueue_after": 50 })).await.expect(200);
    world.harness.advance_ms(50.0).await;
    assert_eq!(world.one("Node").await, retry, "the count is carried over, and it is no failure");
    world.report(&retry, "prune", json!({ "data": {} })).await.expect(200);
    assert_eq!(world.summary(&run).await, counts([("RETRY_CREATED", 1), ("PRUNED", 1)]));
    assert_eq!(world.listed(&run).await["status"], "SUCCESS");
}
