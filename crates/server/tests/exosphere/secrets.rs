//! Secrets of graphs: encrypted in the store, given to states of the graph, and shown nowhere else.

use crate::common::{Harness, Parts, START};
use crate::world::{World, node, of};
use redrive_server::SecretKeys;
use redrive_store::{Memory, RunFilter, Store};
use serde_json::{Value, json};
use std::sync::Arc;

const SECRET: &str = "hunter2-hunter2";

fn keys(digits: &str) -> SecretKeys {
    SecretKeys::read(&digits.repeat(32)).expect("a key")
}

fn world(store: &Memory, secrets: SecretKeys) -> World {
    World { harness: Harness::at(Parts { store: Arc::new(store.clone()), secrets, ..Parts::default() }, START) }
}

async fn put(world: &World, secrets: Value) -> crate::common::Reply {
    let schema = json!({ "properties": { "text": { "type": "string" } } });
    let nodes = json!([{ "name": "Node", "inputs_schema": schema, "outputs_schema": schema, "secrets": ["token"] }]);
    world.put("nodes/", json!({ "runtime_name": "r", "nodes": nodes })).await.expect(200);
    world.put("graph/g", json!({ "secrets": secrets, "nodes": [node("a", "", &[])] })).await
}

#[tokio::test]
async fn secrets_are_for_states_of_the_graph_and_nothing_else() {
    let store = Memory::new();
    let world = world(&store, keys("ab"));
    let graph = put(&world, json!({ "token": SECRET, "empty": "" })).await.expect(201);
    assert_eq!(graph["validation_status"], "VALID", "{graph}");
    assert_eq!(graph["secrets"], json!({ "empty": true, "token": true }));
    let run = world.trigger().await;
    let state = world.one("Node").await;
    let path = format!("state/{state}/secrets");
    let secrets = world.get(&path).await.expect(200);
    assert_eq!(secrets, json!({ "secrets": { "empty": "", "token": SECRET } }));
    // A graph that is put again gives its new secrets to states that are there.
    put(&world, json!({ "token": "new-new" })).await.expect(201);
    assert_eq!(world.get(&path).await.expect(200), json!({ "secrets": { "token": "new-new" } }));
    put(&world, json!({ "token": SECRET })).await.expect(201);
    world.get("state/nonsense/secrets").await.expect(404);
    world.raw("GET", &format!("/v0/namespace/other/{path}"), "").await.expect(404);
    for path in [
        "graph/g",
        "graphs/",
        "nodes/",
        "runs/1/10",
        &format!("states/run/{run}/graph"),
        &format!("graph/g/run/{run}/node/{state}"),
    ] {
        assert!(!world.get(path).await.expect(200).to_string().contains(SECRET), "{path}");
    }
    assert!(!world.harness.job(&state).await.to_string().contains(SECRET));
    let runs = store.runs(RunFilter::default(), usize::MAX).await.expect("an answer");
    assert!(runs.iter().all(|run| !String::from_utf8_lossy(&run.state).contains(SECRET)));
    assert!(world.harness.log.lock().expect("no panic").iter().all(|line| !line.contains(SECRET)));
}

#[tokio::test]
async fn without_its_key_a_secret_is_neither_stored_nor_read() {
    let store = Memory::new();
    let without = world(&store, SecretKeys::default());
    let refused = put(&without, json!({ "token": SECRET })).await.expect(400);
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("secrets_key_file")), "{refused}");
    without.get("graph/g").await.expect(404);
    let with = world(&store, keys("ab"));
    put(&with, json!({ "token": SECRET })).await.expect(201);
    with.trigger().await;
    let path = format!("state/{}/secrets", with.one("Node").await);
    let other = world(&store, keys("cd"));
    let refused = other.get(&path).await.expect(409);
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("no key")), "{refused}");
    let both = SecretKeys::read(&format!("{}\n{}", "cd".repeat(32), "ab".repeat(32))).expect("keys");
    assert_eq!(world(&store, both).get(&path).await.expect(200)["secrets"]["token"], SECRET);
}

#[tokio::test]
async fn secrets_are_not_given_to_another_namespace() {
    let store = Memory::new();
    let world = world(&store, keys("ab"));
    put(&world, json!({ "token": SECRET })).await.expect(201);
    let schema = json!({ "properties": { "text": { "type": "string" } } });
    let other = |secrets: Value| {
        let node = json!({ "name": "Other", "inputs_schema": schema, "outputs_schema": schema, "secrets": secrets });
        json!({ "runtime_name": "r", "nodes": [node] }).to_string()
    };
    let mut foreign = of("Other", node("a", "", &[]));
    foreign["namespace"] = "elsewhere".into();
    let graph = json!({ "secrets": { "token": SECRET }, "nodes": [foreign] });
    world.raw("PUT", "/v0/namespace/elsewhere/nodes/", &other(json!(["token"]))).await.expect(200);
    let refused = world.put("graph/g", graph.clone()).await.expect(201);
    assert!(refused["validation_errors"][0].to_string().contains("stay in its own namespace"), "{refused}");
    world.raw("PUT", "/v0/namespace/elsewhere/nodes/", &other(json!([]))).await.expect(200);
    assert_eq!(world.put("graph/g", graph).await.expect(201)["validation_status"], "VALID");
    world.trigger().await;
    let wanted = json!({ "nodes": ["Other"], "batch_size": 5 }).to_string();
    let states = world.raw("POST", "/v0/namespace/elsewhere/states/enqueue", &wanted).await.expect(200);
    let id = states["states"][0]["state_id"].as_str().expect("an id");
    world.raw("GET", &format!("/v0/namespace/elsewhere/state/{id}/secrets"), "").await.expect(400);
}
