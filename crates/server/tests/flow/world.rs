//! A server with definitions.

use crate::common::{Harness, Reply, text};
use serde_json::{Value, json};

pub(crate) const MOCK: &str = "mwl:provider.call/mwl/mock/v1";
pub(crate) const JOB: &str = "mwl:provider.call/redrive/job/v1";

/// A server on which `order` is defined as given.
pub(crate) async fn with(definition: &Value) -> Harness {
    let harness = Harness::new();
    put(&harness, "order", definition).await.expect(201);
    harness
}

pub(crate) async fn put(harness: &Harness, name: &str, definition: &Value) -> Reply {
    harness.call("PUT", &format!("/flows/v1/definitions/{name}"), definition).await
}

pub(crate) async fn get(harness: &Harness, path: &str) -> Reply {
    harness.call_text("GET", &format!("/flows/v1/{path}"), "").await
}

pub(crate) async fn delete(harness: &Harness, path: &str) -> Reply {
    harness.call_text("DELETE", &format!("/flows/v1/{path}"), "").await
}

pub(crate) async fn start(harness: &Harness, body: &Value) -> Reply {
    harness.call("POST", "/flows/v1/runs", body).await
}

/// Starts a run of `order`, and answers its id.
pub(crate) async fn started(harness: &Harness) -> String {
    let run = start(harness, &json!({ "definition": "order" })).await.expect(201);
    text(&run["id"])
}

pub(crate) async fn run(harness: &Harness, id: &str) -> Value {
    get(harness, &format!("runs/{id}")).await.expect(200)
}

/// A flow of one step around a call, under middleware.
pub(crate) fn around(middleware: &Value, call: &Value) -> Value {
    json!({
        "$schema": "https://mwl.dev/v0.1/flow/schema.json",
        "entrypoint": "charge",
        "steps": {
            "charge": { "action": "Call", "middleware": middleware, "call": call, "next": "done" },
            "done": { "action": "Return" },
        },
    })
}

/// A flow that returns this at once.
pub(crate) fn returning(value: &Value) -> Value {
    json!({
        "$schema": "https://mwl.dev/v0.1/flow/schema.json",
        "entrypoint": "done", "steps": { "done": { "action": "Return", "value": value } },
    })
}

/// A flow that sleeps for so long.
pub(crate) fn sleeping(duration: &str) -> Value {
    json!({
        "$schema": "https://mwl.dev/v0.1/flow/schema.json",
        "entrypoint": "wait",
        "steps": { "wait": { "action": "Sleep", "for": duration, "next": "done" }, "done": { "action": "Return" } },
    })
}

/// A Retry with one policy for everything.
pub(crate) fn retrying(attempts: u32) -> Value {
    json!({
        "provider": "mwl:provider.middleware/mwl/retry/v1",
        "onEntry": { "with": { "policies": [{
            "match": { "codes": ["*"] }, "attempts": attempts, "backoff": { "initial": "PT2S", "rate": 2 },
        }] } },
    })
}
