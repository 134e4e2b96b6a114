//! Requests that are refused: every answer is JSON with `detail`, and none is a fault of the server.

use crate::common::{Harness, Parts};
use crate::world::{World, node};
use axum::body::Body;
use axum::http::Request;
use redrive_server::ApiKeys;
use serde_json::{Value, json};

#[tokio::test]
async fn every_wrong_field_is_listed_with_its_place() {
    let world = World::with(&["Node"]).await;
    let body = json!({
        "secrets": { "s": 1 }, "unknown": 1,
        "nodes": [
            { "node_name": " ", "namespace": "ns", "identifier": "store", "inputs": {}, "next_nodes": ["", "b", "b"] },
            { "node_name": "Node", "identifier": "b", "inputs": [], "unites": { "identifier": "", "strategy": "SOME" } },
        ],
        "retry_policy": { "max_retries": -1, "strategy": "NEVER", "backoff_factor": 0, "exponent": "2", "extra": 1 },
        "store_config": { "required_keys": ["a.b", "k", "k", ""], "default_values": { "d": 1 } },
    });
    let refused = world.put("graph/g", body).await.expect(422);
    let places: Vec<String> =
        refused["detail"].as_array().expect("a list").iter().map(|one| one["loc"].to_string()).collect();
    for place in [
        r#"["body","secrets","s"]"#,
        r#"["body","unknown"]"#,
        r#"["body","nodes",0,"node_name"]"#,
        r#"["body","nodes",0,"identifier"]"#,
        r#"["body","nodes",0,"next_nodes",0]"#,
        r#"["body","nodes",0,"next_nodes",2]"#,
        r#"["body","nodes",1,"namespace"]"#,
        r#"["body","nodes",1,"inputs"]"#,
        r#"["body","nodes",1,"unites","identifier"]"#,
        r#"["body","nodes",1,"unites","strategy"]"#,
        r#"["body","retry_policy","max_retries"]"#,
        r#"["body","retry_policy","strategy"]"#,
        r#"["body","retry_policy","backoff_factor"]"#,
        r#"["body","retry_policy","exponent"]"#,
        r#"["body","retry_policy","extra"]"#,
        r#"["body","store_config","required_keys",0]"#,
        r#"["body","store_config","required_keys",2]"#,
        r#"["body","store_config","required_keys",3]"#,
        r#"["body","store_config","default_values","d"]"#,
    ] {
        assert!(places.iter().any(|found| found == place), "{place} in {places:?}");
    }
    let secret = refused["detail"].as_array().expect("a list").iter().find(|one| one["loc"][1] == "secrets");
    assert_eq!(secret.expect("the secret is wrong")["input"], Value::Null, "secrets are not repeated");
}

#[tokio::test]
async fn what_is_no_request_is_answered_in_json() {
    let world = World::with(&["Node"]).await;
    world.graph(&[node("a", "", &[])], Value::Null).await;
    world.trigger().await;
    let state = world.one("Node").await;
    let malformed = world.raw("PUT", "/v0/namespace/ns/graph/g", "{").await;
    assert_eq!(malformed.header("content-type"), "application/json");
    assert_eq!(malformed.expect(422)["detail"][0]["type"], "json_invalid");
    for (path, body, status) in [("nodes/", json!([]), 422), ("graph/g", json!({}), 422)] {
        assert!(world.put(path, body).await.expect(status)["detail"].is_array(), "{path}");
    }
    for (path, body, status) in [
        ("states/enqueue", json!({ "nodes": "x", "batch_size": "1" }), 422),
        ("graph/g/trigger", json!({ "start_delay": -1 }), 422),
        ("graph/g/trigger", json!({ "inputs": { "a": 1 } }), 422),
        ("state/x/executed", json!({ "outputs": [] }), 404),
        ("state/0190a5c0-0000-7000-8000-000000000001/executed", json!({ "outputs": [] }), 404),
        ("state/x/errored", json!({ "error": "x" }), 404),
        ("state/x/prune", json!({ "data": {} }), 404),
        ("state/x/re-enqueue-after", json!({ "enqueue_after": 1 }), 404),
    ] {
        assert!(!world.post(path, body).await.expect(status)["detail"].is_null(), "{path}");
    }
    for (call, body) in [
        ("executed", json!({ "outputs": {} })),
        ("executed", json!({ "outputs": [1] })),
        ("errored", json!({ "error": 1 })),
        ("prune", json!({ "data": [] })),
        ("re-enqueue-after", json!({ "enqueue_after": 0 })),
        ("re-enqueue-after", json!({ "enqueue_after": 1.5 })),
        ("manual-retry", json!({})),
    ] {
        world.report(&state, call, body).await.expect(422);
    }
    world.execute(&state, &[]).await;
    assert!(!world.get("nothing").await.expect(404)["detail"].is_null());
    assert_eq!(world.call("DELETE", "graph/g", Value::Null).await.expect(405)["detail"], "Method Not Allowed");
    let name = world.raw("PUT", "/v0/namespace/a%2Fb/nodes/", r#"{"runtime_name":"r","nodes":[]}"#).await;
    assert!(name.expect(400)["detail"].to_string().contains("namespace"));
    let nothing = world.post("states/enqueue", json!({ "nodes": [], "batch_size": -3 })).await.expect(200);
    assert_eq!(nothing, json!({ "count": 0, "namespace": "ns", "status": "QUEUED", "states": [] }));
}

#[tokio::test]
async fn the_key_is_one_of_the_server() {
    let key = "0123456789abcdef0123456789abcdef";
    let keys = ApiKeys::read(key).expect("a key");
    let harness = Harness::with(Parts { keys, ..Parts::default() });
    let call = |headers: &[(&str, &str)]| {
        let mut request = Request::builder().method("GET").uri("/v0/namespaces");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        harness.send(request.body(Body::empty()).expect("a valid request"))
    };
    for headers in [&[][..], &[("x-api-key", "wrong")]] {
        assert_eq!(call(headers).await.expect(401), json!({ "detail": "Invalid API key" }));
    }
    let id = "6f1c7a52-8a1e-4b53-9f0e-7d1b2c3d4e5f";
    let answer = call(&[("x-api-key", key), ("x-exosphere-request-id", id)]).await;
    assert_eq!(answer.header("x-exosphere-request-id"), id);
    answer.expect(200);
    let answer = call(&[("x-api-key", key), ("x-exosphere-request-id", "no id")]).await;
    assert_eq!(answer.header("x-exosphere-request-id").len(), 36);
    let health = Request::builder().uri("/health").body(Body::empty()).expect("a valid request");
    assert_eq!(harness.send(health).await.expect(200)["message"], "OK");
}
