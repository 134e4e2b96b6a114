//! Nodes that unite branches.

use crate::world::{World, counts, node, of, uniting};
use serde_json::{Value, json};

/// `top` fans out into `each`, and `join` unites `top`'s predecessor.
async fn fanned(strategy: &str) -> (World, String, Vec<String>) {
    let world = World::with(&["Node", "Each", "Join", "After"]).await;
    let nodes = [
        node("first", "", &["top"]),
        node("top", "", &["each"]),
        of("Each", node("each", "${{top.outputs.text}}", &["join"])),
        uniting(of("Join", node("join", "${{first.outputs.text}}", &["after"])), "first", strategy),
        of("After", node("after", "${{join.outputs.text}}", &[])),
    ];
    world.graph(&nodes, json!({ "max_retries": 1, "strategy": "FIXED", "backoff_factor": 1 })).await;
    let run = world.trigger().await;
    let first = world.one("Node").await;
    world.execute(&first, &["f"]).await;
    let top = world.one("Node").await;
    world.execute(&top, &["1", "2", "3"]).await;
    let states = world.enqueue(&["Each"]).await;
    let states = states.iter().map(|state| state["state_id"].as_str().expect("an id").to_owned()).collect();
    (world, run, states)
}

async fn errs(world: &World, state: &str) -> String {
    let answer = world.report(state, "errored", json!({ "error": "no" })).await.expect(200);
    if answer["retry_created"] == false {
        return state.to_owned();
    }
    world.harness.advance_ms(1.0).await;
    let retry = world.one("Each").await;
    let answer = world.report(&retry, "errored", json!({ "error": "no" })).await.expect(200);
    assert_eq!(answer["retry_created"], false);
    retry
}

#[tokio::test]
async fn all_branches_lead_to_one_state_and_what_comes_after_reads_it() {
    for strategy in ["ALL_SUCCESS", "ALL_DONE"] {
        let (world, run, states) = fanned(strategy).await;
        for state in &states {
            assert!(world.enqueue(&["Join"]).await.is_empty());
            world.execute(state, &["x"]).await;
        }
        let joins = world.enqueue(&["Join"]).await;
        assert_eq!((joins.len(), &joins[0]["inputs"]["text"]), (1, &json!("f")));
        world.execute(joins[0]["state_id"].as_str().expect("an id"), &["joined"]).await;
        let after = world.enqueue(&["After"]).await;
        assert_eq!(after[0]["inputs"]["text"], "joined");
        world.execute(after[0]["state_id"].as_str().expect("an id"), &[]).await;
        assert_eq!(world.summary(&run).await, counts([("SUCCESS", 1 + 3 + 3 + 1 + 1)]));
    }
}

#[tokio::test]
async fn a_retry_that_waits_has_not_ended() {
    let (world, _, states) = fanned("ALL_SUCCESS").await;
    world.execute(&states[0], &[]).await;
    world.execute(&states[1], &[]).await;
    world.report(&states[2], "errored", json!({ "error": "once" })).await.expect(200);
    assert!(world.enqueue(&["Join"]).await.is_empty());
    world.harness.advance_ms(1.0).await;
    let retry = world.one("Each").await;
    world.execute(&retry, &[]).await;
    assert_eq!(world.enqueue(&["Join"]).await.len(), 1);
}

#[tokio::test]
async fn all_done_runs_when_the_last_branch_errs_or_is_pruned() {
    for last in ["errs", "prunes"] {
        let (world, run, states) = fanned("ALL_DONE").await;
        world.execute(&states[0], &[]).await;
        world.execute(&states[1], &[]).await;
        assert!(world.enqueue(&["Join"]).await.is_empty());
        if last == "errs" {
            errs(&world, &states[2]).await;
        } else {
            world.report(&states[2], "prune", json!({ "data": {} })).await.expect(200);
        }
        assert_eq!(world.enqueue(&["Join"]).await.len(), 1, "{last}");
        assert_eq!(world.summary(&run).await.get("SUCCESS"), Some(&6));
    }
}

#[tokio::test]
async fn all_success_waits_for_a_branch_that_failed_until_it_is_retried() {
    let (world, run, states) = fanned("ALL_SUCCESS").await;
    world.execute(&states[0], &[]).await;
    world.execute(&states[1], &[]).await;
    let failed = errs(&world, &states[2]).await;
    assert!(world.enqueue(&["Join"]).await.is_empty());
    assert_eq!(world.listed(&run).await["status"], "FAILED");
    let retry = world.report(&failed, "manual-retry", json!({ "fanout_id": "again" })).await.expect(200);
    assert_eq!(world.listed(&run).await["status"], "PENDING");
    let state = world.one("Each").await;
    assert_eq!(retry, json!({ "id": state, "status": "CREATED" }));
    world.execute(&state, &[]).await;
    assert_eq!(world.enqueue(&["Join"]).await.len(), 1);
}

#[tokio::test]
async fn a_manual_retry_of_a_node_that_unites_has_all_of_its_retries() {
    let (world, run, states) = fanned("ALL_DONE").await;
    for state in &states {
        world.execute(state, &[]).await;
    }
    let fail = |state: String| {
        let world = &world;
        async move { world.report(&state, "errored", json!({ "error": "no" })).await.expect(200)["retry_created"].clone() }
    };
    let join = world.one("Join").await;
    assert_eq!(fail(join).await, true);
    world.harness.advance_ms(1.0).await;
    let last = world.one("Join").await;
    assert_eq!(fail(last.clone()).await, false);
    world.report(&last, "manual-retry", json!({ "fanout_id": "m" })).await.expect(200);
    let again = world.one("Join").await;
    assert_eq!(fail(again).await, true, "a retry is created, and is there");
    world.harness.advance_ms(1.0).await;
    let retried = world.one("Join").await;
    world.execute(&retried, &["done"]).await;
    assert_eq!(world.enqueue(&["After"]).await.len(), 1);
    assert_eq!(world.listed(&run).await["status"], "PENDING");
}

#[tokio::test]
async fn uniting_the_node_that_fans_out_joins_each_output() {
    let world = World::with(&["Node", "Join"]).await;
    let nodes = [
        node("top", "", &["each"]),
        node("each", "${{top.outputs.text}}", &["join"]),
        uniting(of("Join", node("join", "${{top.outputs.text}}", &[])), "top", "ALL_SUCCESS"),
    ];
    world.graph(&nodes, Value::Null).await;
    world.trigger().await;
    let top = world.one("Node").await;
    world.execute(&top, &["1", "2"]).await;
    for state in world.enqueue(&["Node"]).await {
        world.execute(state["state_id"].as_str().expect("an id"), &[]).await;
    }
    let mut texts: Vec<Value> = world.enqueue(&["Join"]).await.iter().map(|s| s["inputs"]["text"].clone()).collect();
    texts.sort_by_key(Value::to_string);
    assert_eq!(texts, ["1", "2"]);
}

#[tokio::test]
async fn two_nodes_may_unite_the_same_node_and_the_united_one_may_lead_to_them() {
    let world = World::with(&["Node", "Join", "Other"]).await;
    let nodes = [
        node("top", "", &["a", "b", "join"]),
        node("a", "", &["join"]),
        node("b", "", &["other"]),
        uniting(of("Join", node("join", "", &[])), "top", "ALL_SUCCESS"),
        uniting(of("Other", node("other", "", &[])), "top", "ALL_SUCCESS"),
    ];
    world.graph(&nodes, Value::Null).await;
    let run = world.trigger().await;
    let top = world.one("Node").await;
    world.execute(&top, &["x"]).await;
    for state in world.enqueue(&["Node"]).await {
        assert!(world.enqueue(&["Join", "Other"]).await.is_empty());
        world.execute(state["state_id"].as_str().expect("an id"), &[]).await;
    }
    let joins = world.enqueue(&["Join", "Other"]).await;
    assert_eq!(joins.len(), 2);
    for state in joins {
        world.execute(state["state_id"].as_str().expect("an id"), &[]).await;
    }
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 5)]));
    assert!(world.enqueue(&["Join", "Other"]).await.is_empty());
}
