//! What runtimes report, one by one and at once.

use crate::world::{World, counts, node};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test]
async fn a_chain_goes_from_state_to_state() {
    let world = World::with(&["Node"]).await;
    let chain = [node("a", "one", &["b"]), node("b", "${{ a.outputs.text }} two", &[])];
    world.graph(&chain, Value::Null).await;
    let run = world.trigger().await;
    let states = world.enqueue(&["Node"]).await;
    assert_eq!(states[0]["inputs"], json!({ "text": "one" }));
    assert_eq!((&states[0]["node_name"], &states[0]["identifier"]), (&json!("Node"), &json!("a")));
    assert_eq!(world.summary(&run).await, counts([("QUEUED", 1)]));
    let first = states[0]["state_id"].as_str().expect("an id");
    world.execute(first, &["out"]).await;
    let states = world.enqueue(&["Other", "Node"]).await;
    assert_eq!(states[0]["inputs"], json!({ "text": "out two" }));
    let second = states[0]["state_id"].as_str().expect("an id");
    world.execute(second, &[]).await;
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 2)]));
    assert_eq!(world.listed(&run).await["status"], "SUCCESS");
    assert!(world.enqueue(&["Node"]).await.is_empty());
}

#[tokio::test]
async fn of_ten_reports_at_once_one_succeeds() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &["b"]), node("b", "", &[])], Value::Null).await;
    for call in ["executed", "errored"] {
        world.trigger().await;
        let state = world.one("Node").await;
        let body = json!({ "outputs": [{ "text": "x" }] });
        let body = if call == "executed" { body } else { json!({ "error": "x" }) };
        let report = || world.report(&state, call, body.clone());
        let replies = tokio::join!(
            report(),
            report(),
            report(),
            report(),
            report(),
            report(),
            report(),
            report(),
            report(),
            report()
        );
        let (a, b, c, d, e, f, g, h, i, j) = replies;
        let statuses = [a, b, c, d, e, f, g, h, i, j].map(|reply| reply.status.as_u16());
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{call}: {statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 400).count(), 9, "{call}: {statuses:?}");
        world.harness.advance_ms(2_000.0).await;
        let next = world.one("Node").await;
        world.report(&next, "prune", json!({ "data": {} })).await.expect(200);
    }
}

#[tokio::test]
async fn an_executed_state_cannot_err_afterwards() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], Value::Null).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    world.execute(&state, &["x"]).await;
    let refused = world.report(&state, "errored", json!({ "error": "the network" })).await.expect(400);
    assert_eq!(refused["detail"], "State is already executed");
    let refused = world.report(&state, "executed", json!({ "outputs": [] })).await.expect(400);
    assert_eq!(refused["detail"], "State is not queued");
    let refused = world.report(&state, "re-enqueue-after", json!({ "enqueue_after": 5 })).await.expect(400);
    assert_eq!(refused["detail"], "State is not queued");
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 1)]));
}

#[tokio::test]
async fn signals_that_arrive_twice_are_answered_twice() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], Value::Null).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    let wait = json!({ "enqueue_after": 5_000 });
    let first = world.report(&state, "re-enqueue-after", wait.clone()).await.expect(200);
    let now_ms = world.harness.now().micros() / 1_000;
    assert_eq!(first, json!({ "status": "CREATED", "enqueue_after": now_ms + 5_000 }));
    assert_eq!(world.report(&state, "re-enqueue-after", wait).await.expect(200), first);
    assert_eq!(world.summary(&run).await, counts([("CREATED", 1)]));
    world.harness.advance_ms(4_999.0).await;
    assert!(world.enqueue(&["Node"]).await.is_empty());
    world.harness.advance_ms(1.0).await;
    assert_eq!(world.one("Node").await, state, "a requeue is the same state");
    let prune = json!({ "data": { "why": "enough" } });
    let pruned = world.report(&state, "prune", prune.clone()).await.expect(200);
    assert_eq!(pruned, json!({ "status": "PRUNED", "enqueue_after": now_ms + 5_000 }));
    assert_eq!(world.report(&state, "prune", prune).await.expect(200), pruned);
    assert_eq!(world.summary(&run).await, counts([("PRUNED", 1)]));
    assert_eq!(world.listed(&run).await["status"], "SUCCESS");
}

#[tokio::test]
async fn each_output_is_a_state_of_its_own() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &["b"]), node("b", "${{a.outputs.text}}", &[])], Value::Null).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    world.execute(&state, &["1", "2", "3"]).await;
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 3), ("CREATED", 3)]));
    let states = world.enqueue(&["Node"]).await;
    let texts: BTreeSet<&str> = states.iter().map(|state| state["inputs"]["text"].as_str().expect("text")).collect();
    assert_eq!(texts, BTreeSet::from(["1", "2", "3"]));
    let structure = world.get(&format!("states/run/{run}/graph")).await.expect(200);
    assert_eq!(structure["edge_count"], 3);
    let sources: BTreeSet<String> =
        structure["edges"].as_array().expect("edges").iter().map(|edge| edge["source"].to_string()).collect();
    assert_eq!(sources.len(), 3, "each output leads to its own state: {structure}");
    // A further output can be looked at, and has its own outputs.
    let detail = world.get(&format!("graph/g/run/{run}/node/{state}.2")).await.expect(200);
    assert_eq!(detail["outputs"], json!({ "text": "3" }));
}

#[tokio::test]
async fn a_fan_out_of_thousands_is_created_in_several_steps() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &["b", "c"]), node("b", "", &[]), node("c", "", &[])], Value::Null).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    let texts: Vec<&str> = std::iter::repeat_n("x", 3_500).collect();
    world.execute(&state, &texts).await;
    world.harness.advance_ms(1.0).await;
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 3_500), ("CREATED", 7_000)]));
}

#[tokio::test]
async fn outputs_that_next_states_need_and_do_not_get_are_an_error_of_that_branch() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &["b"]), node("b", "${{a.outputs.text}}", &[])], Value::Null).await;
    let run = world.trigger().await;
    let state = world.one("Node").await;
    let outputs = json!({ "outputs": [{ "text": "good" }, { "other": "x" }, { "text": 3 }] });
    world.report(&state, "executed", outputs).await.expect(200);
    assert_eq!(world.summary(&run).await, counts([("SUCCESS", 1), ("CREATED", 1), ("NEXT_CREATED_ERROR", 2)]));
    let structure = world.get(&format!("states/run/{run}/graph")).await.expect(200).to_string();
    assert!(structure.contains("has returned no output") && structure.contains("is not a string"), "{structure}");
    let next = world.one("Node").await;
    world.execute(&next, &[]).await;
    assert_eq!(world.listed(&run).await["status"], "FAILED");
}
