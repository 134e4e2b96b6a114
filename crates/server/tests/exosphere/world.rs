//! A server with registered nodes, and a runtime that does what the test says.

use crate::common::{Harness, Parts, Reply};
use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A server with the namespace `ns`.
pub(crate) struct World {
    pub(crate) harness: Harness,
}

impl World {
    /// A server on which some nodes are registered: each takes and returns `text`.
    pub(crate) async fn with(nodes: &[&str]) -> Self {
        let world = Self { harness: Harness::with(Parts::default()) };
        world.register(nodes).await;
        world
    }

    pub(crate) async fn register(&self, nodes: &[&str]) {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let nodes: Vec<Value> = nodes
            .iter()
            .map(|name| json!({ "name": name, "inputs_schema": schema, "outputs_schema": schema, "secrets": [] }))
            .collect();
        self.put("nodes/", json!({ "runtime_name": "runtime", "nodes": nodes })).await.expect(200);
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        self.raw(method, &format!("/v0/namespace/ns/{path}"), &body.to_string()).await
    }

    pub(crate) async fn raw(&self, method: &str, path: &str, body: &str) -> Reply {
        let request = Request::builder().method(method).uri(path).body(Body::from(body.to_owned()));
        self.harness.send(request.expect("a valid request")).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.raw("GET", &format!("/v0/namespace/ns/{path}"), "").await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Reply {
        self.call("PUT", path, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.call("POST", path, body).await
    }

    /// Puts the graph `g`, which has to be valid.
    pub(crate) async fn graph(&self, nodes: &[Value], policy: Value) {
        let body = json!({ "secrets": {}, "nodes": nodes, "retry_policy": policy });
        let graph = self.put("graph/g", body).await.expect(201);
        assert_eq!(graph["validation_status"], "VALID", "{graph}");
    }

    /// Triggers the graph `g`.
    pub(crate) async fn trigger(&self) -> String {
        let answer = self.post("graph/g/trigger", json!({})).await.expect(200);
        answer["run_id"].as_str().expect("an id").to_owned()
    }

    /// All states that a runtime gets now.
    pub(crate) async fn enqueue(&self, nodes: &[&str]) -> Vec<Value> {
        let answer = self.post("states/enqueue", json!({ "nodes": nodes, "batch_size": 1_000 })).await.expect(200);
        answer["states"].as_array().cloned().expect("a list")
    }

    /// The only state that a runtime gets now.
    pub(crate) async fn one(&self, node: &str) -> String {
        let states = self.enqueue(&[node]).await;
        assert_eq!(states.len(), 1, "{states:?}");
        states[0]["state_id"].as_str().expect("an id").to_owned()
    }

    /// Reports a state.
    pub(crate) async fn report(&self, state: &str, call: &str, body: Value) -> Reply {
        self.post(&format!("state/{state}/{call}"), body).await
    }

    /// Executes a state with these outputs.
    pub(crate) async fn execute(&self, state: &str, texts: &[&str]) {
        let outputs: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
        self.report(state, "executed", json!({ "outputs": outputs })).await.expect(200);
    }

    /// How many states of a run have each status.
    pub(crate) async fn summary(&self, run: &str) -> BTreeMap<String, u64> {
        let answer = self.get(&format!("states/run/{run}/graph")).await.expect(200);
        let summary = answer["execution_summary"].as_object().cloned().expect("an object");
        let counts = summary.into_iter().map(|(status, count)| (status, count.as_u64().expect("a number")));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// The status of a run in the list.
    pub(crate) async fn listed(&self, run: &str) -> Value {
        let answer = self.get("runs/1/100").await.expect(200);
        let runs = answer["runs"].as_array().cloned().expect("a list");
        runs.into_iter().find(|one| one["run_id"] == run).expect("the run is listed")
    }
}

/// A node of a graph that runs the registered node of the same name.
pub(crate) fn node(identifier: &str, text: &str, next: &[&str]) -> Value {
    json!({
        "node_name": "Node", "namespace": "ns", "identifier": identifier,
        "inputs": { "text": text }, "next_nodes": next,
    })
}

/// The same with another registered node.
pub(crate) fn of(name: &str, node: Value) -> Value {
    let mut node = node;
    node["node_name"] = name.into();
    node
}

/// A node that unites another.
pub(crate) fn uniting(node: Value, identifier: &str, strategy: &str) -> Value {
    let mut node = node;
    node["unites"] = json!({ "identifier": identifier, "strategy": strategy });
    node
}

/// Counts, for comparisons.
pub(crate) fn counts<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(status, count)| (status.to_owned(), count)).collect()
}
