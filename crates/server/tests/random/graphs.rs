//! Requests of Exosphere's API that are right.

use serde_json::{Value, json};

/// Endpoints with their methods; `{id}` is the id of a state, of a run, or of something else.
pub(crate) const ENDPOINTS: [(&str, &str); 18] = [
    ("GET", "/v0/namespaces"),
    ("PUT", "/v0/namespace/ns/nodes/"),
    ("GET", "/v0/namespace/ns/nodes/"),
    ("GET", "/v0/namespace/{word}/graphs/"),
    ("PUT", "/v0/namespace/ns/graph/g"),
    ("PUT", "/v0/namespace/ns/graph/{word}"),
    ("GET", "/v0/namespace/ns/graph/g"),
    ("POST", "/v0/namespace/ns/graph/g/trigger"),
    ("POST", "/v0/namespace/ns/states/enqueue"),
    ("POST", "/v0/namespace/ns/state/{id}/executed"),
    ("POST", "/v0/namespace/ns/state/{id}/errored"),
    ("POST", "/v0/namespace/ns/state/{id}/prune"),
    ("POST", "/v0/namespace/ns/state/{id}/re-enqueue-after"),
    ("GET", "/v0/namespace/ns/state/{id}/secrets"),
    ("POST", "/v0/namespace/ns/state/{id}/manual-retry"),
    ("GET", "/v0/namespace/ns/runs/1/10"),
    ("GET", "/v0/namespace/ns/states/run/{id}/graph"),
    ("GET", "/v0/namespace/ns/graph/g/run/{id}/node/{id}"),
];

const NODES: [&str; 2] = ["Node", "Other"];

/// The document that an endpoint takes.
pub(crate) fn document(path: &str, random: &mut fastrand::Rng) -> Value {
    let schema = json!({ "properties": { "text": { "type": "string" } } });
    let last = path.rsplit('/').find(|word| !word.is_empty()).unwrap_or_default();
    match last {
        "nodes" => {
            let node = |name| json!({ "name": name, "inputs_schema": schema, "outputs_schema": schema, "secrets": [] });
            json!({ "runtime_name": "r", "nodes": NODES.map(node) })
        }
        "g" | "{word}" => graph(random),
        "trigger" => {
            json!({ "start_delay": random.u8(..), "inputs": { "text": "${{ store.k }}" }, "store": { "k": "v" } })
        }
        "enqueue" => json!({ "nodes": NODES, "batch_size": random.u8(1..20) }),
        "executed" => json!({ "outputs": vec![json!({ "text": "out" }); random.usize(..4)] }),
        "errored" => json!({ "error": "why" }),
        "prune" => json!({ "data": { "a": 1 } }),
        "re-enqueue-after" => json!({ "enqueue_after": random.u8(1..) }),
        "manual-retry" => json!({ "fanout_id": format!("f{}", random.u8(..)) }),
        _ => json!({}),
    }
}

fn graph(random: &mut fastrand::Rng) -> Value {
    let node = |identifier: &str, text: &str, next: &[&str]| {
        json!({
            "node_name": NODES[usize::from(identifier == "b")], "namespace": "ns", "identifier": identifier,
            "inputs": { "text": text }, "next_nodes": next,
        })
    };
    let mut join = node("c", "${{ a.outputs.text }}", &[]);
    let strategy = ["ALL_SUCCESS", "ALL_DONE"][random.usize(..2)];
    join["unites"] = json!({ "identifier": "a", "strategy": strategy });
    let expression = ["* * * * * *", "*/5 * * * *", "@daily"][random.usize(..3)];
    json!({
        "secrets": {}, "nodes": [node("a", "${{ store.k }}", &["b"]), node("b", "${{ a.outputs.text }}", &["c"]), join],
        "retry_policy": { "max_retries": random.u8(..3), "strategy": "FIXED_FULL_JITTER", "backoff_factor": 50 },
        "store_config": { "required_keys": [], "default_values": { "k": "v" } },
        "triggers": [{ "type": "CRON", "value": { "expression": expression } }],
    })
}
