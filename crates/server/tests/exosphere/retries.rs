//! Retries: the waits of all strategies to the millisecond, counts, and the end.

use crate::world::{World, counts, node};
use serde_json::{Value, json};

/// Fails a state until nothing is left to wait for; after which times the next was there.
async fn waits(world: &World, most: usize) -> Vec<u64> {
    let (mut state, mut waits) = (world.one("Node").await, Vec::new());
    loop {
        let answer = world.report(&state, "errored", json!({ "error": "no" })).await.expect(200);
        assert_eq!(answer["status"], "ERRORED");
        if answer["retry_created"] == false {
            return waits;
        }
        assert!(waits.len() < most, "too many retries");
        let job: redrive_store::JobId = state[..36].parse().expect("an id");
        let job = world.harness.engine.job(job).await.expect("the job");
        let wait = job.due.expect("it waits").since(world.harness.now()).ms();
        assert_eq!(wait.fract(), 0.0, "whole milliseconds");
        if wait >= 1.0 {
            world.harness.advance_ms(wait - 1.0).await;
            assert!(world.enqueue(&["Node"]).await.is_empty(), "not a millisecond early");
            world.harness.advance_ms(1.0).await;
        } else {
            world.harness.advance_ms(0.0).await;
        }
        let next = world.one("Node").await;
        assert_eq!(next, format!("{}-{}", &state[..36], waits.len() + 1), "a retry is a state of its own");
        (state, waits) = (next, [waits, vec![wait as u64]].concat());
    }
}

pub(crate) async fn waits_under(policy: Value) -> Vec<u64> {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], policy).await;
    let run = world.trigger().await;
    let waits = waits(&world, 20).await;
    let retried = waits.len() as u64;
    let expected = counts([("RETRY_CREATED", retried), ("ERRORED", 1)]);
    assert_eq!(world.summary(&run).await, expected.into_iter().filter(|(_, count)| *count > 0).collect());
    let listed = world.listed(&run).await;
    assert_eq!((&listed["status"], &listed["retried_count"]), (&json!("FAILED"), &json!(retried)));
    waits
}

#[tokio::test]
async fn strategies_without_jitter_wait_as_the_document_says() {
    // "EXPONENTIAL", "LINEAR", "FIXED", and the defaults of "Parameters".
    assert_eq!(waits_under(json!({})).await, [2_000, 4_000, 8_000]);
    assert_eq!(waits_under(json!({ "strategy": "LINEAR" })).await, [2_000, 4_000, 6_000]);
    assert_eq!(waits_under(json!({ "strategy": "FIXED" })).await, [2_000, 2_000, 2_000]);
    // "Example with Delay Capping".
    let capped = json!({ "strategy": "EXPONENTIAL", "max_retries": 4, "max_delay": 10_000 });
    assert_eq!(waits_under(capped).await, [2_000, 4_000, 8_000, 10_000]);
    // "Conservative Linear Retry", "max_retries".
    let linear = json!({ "max_retries": 2, "strategy": "LINEAR", "backoff_factor": 5_000 });
    assert_eq!(waits_under(linear).await, [5_000, 10_000]);
    assert_eq!(waits_under(json!({ "max_retries": 0 })).await, [0_u64; 0]);
}

#[tokio::test]
async fn strategies_with_jitter_stay_within_their_bounds() {
    for (growth, bases) in
        [("EXPONENTIAL", [2_000, 4_000, 8_000]), ("LINEAR", [2_000, 4_000, 6_000]), ("FIXED", [2_000_u32; 3])]
    {
        for (jitter, least) in [("FULL", 0.0), ("EQUAL", 0.5)] {
            let found = waits_under(json!({ "strategy": format!("{growth}_{jitter}_JITTER") })).await;
            assert_eq!(found.len(), 3);
            for (wait, base) in found.iter().zip(bases) {
                let lower = (f64::from(base) * least) as u64;
                assert!((lower..=u64::from(base)).contains(wait), "{growth}_{jitter}_JITTER: {found:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_requeue_carries_the_count_over() {
    let world = World::with(&["Node"]).await;
    world
        .graph(&[node("a", "", &[])], json!({ "strategy": "LINEAR", "backoff_factor": 1_000, "max_retries": 2 }))
        .await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    world.report(&state, "errored", json!({ "error": "one" })).await.expect(200);
    world.harness.advance_ms(1_000.0).await;
    let retry = world.one("Node").await;
    for _ in 0..3 {
        world.report(&retry, "re-enqueue-after", json!({ "enqueue_after": 10 })).await.expect(200);
        world.harness.advance_ms(10.0).await;
        assert_eq!(world.one("Node").await, retry);
    }
    world.report(&retry, "errored", json!({ "error": "two" })).await.expect(200);
    world.harness.advance_ms(1_999.0).await;
    assert!(world.enqueue(&["Node"]).await.is_empty(), "the second retry waits twice as long");
    world.harness.advance_ms(1.0).await;
    let last = world.one("Node").await;
    let answer = world.report(&last, "errored", json!({ "error": "three" })).await.expect(200);
    assert_eq!(answer["retry_created"], false);
    let structure = world.get(&format!("states/run/{run}/graph")).await.expect(200);
    let errors: Vec<&Value> = structure["nodes"].as_array().expect("nodes").iter().map(|node| &node["error"]).collect();
    assert_eq!(errors, ["one", "two", "three"]);
}

#[tokio::test]
async fn a_late_report_of_an_earlier_state_changes_nothing() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], json!({ "strategy": "FIXED", "backoff_factor": 10 })).await;
    world.trigger().await;
    let first = world.one("Node").await;
    world.report(&first, "errored", json!({ "error": "one" })).await.expect(200);
    world.harness.advance_ms(10.0).await;
    let second = world.one("Node").await;
    for (call, body) in [
        ("executed", json!({ "outputs": [] })),
        ("errored", json!({ "error": "late" })),
        ("prune", json!({ "data": {} })),
        ("re-enqueue-after", json!({ "enqueue_after": 1 })),
    ] {
        world.report(&first, call, body).await.expect(400);
    }
    world.execute(&second, &[]).await;
}
