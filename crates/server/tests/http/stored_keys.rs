//! Keys in the store: made, rotated, revoked, expired, on two nodes, and while they are in use.

use crate::common::{Harness, Parts, Reply, START, text};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use redrive_server::ApiKeys;
use redrive_store::Memory;
use serde_json::{Value, json};
use std::sync::Arc;
use tower::ServiceExt;

const CONFIGURED: &str = "0123456789abcdef0123456789abcdef";

/// Two nodes on one store.
fn nodes() -> (Harness, Harness) {
    let parts = |store: &Arc<Memory>| Parts { store: Arc::clone(store) as _, ..Parts::default() };
    let store = Arc::new(Memory::new());
    (Harness::with(parts(&store)), Harness::with(parts(&store)))
}

fn request(method: &str, path: &str, key: &str, body: &Value) -> Request<Body> {
    let request = Request::builder().method(method).uri(format!("/ojs/v1{path}"));
    request.header("Authorization", format!("Bearer {key}")).body(Body::from(body.to_string())).unwrap()
}

async fn call(node: &Harness, method: &str, path: &str, key: &str, body: Value) -> Reply {
    node.send(request(method, path, key, &body)).await
}

async fn get(node: &Harness, path: &str, key: &str) -> Reply {
    call(node, "GET", path, key, Value::Null).await
}

/// Makes a key; returns its secret.
async fn make(node: &Harness, by: &str, key: Value) -> String {
    text(&call(node, "POST", "/admin/keys", by, key).await.expect(201)["secret"])
}

/// The first key, which closes the server.
async fn operator(node: &Harness) -> String {
    make(node, "", json!({ "name": "operator", "scopes": ["admin"] })).await
}

#[tokio::test]
async fn the_first_key_closes_the_server_and_may_do_everything() {
    let (node, _) = nodes();
    node.get("/queues").await.expect(200);
    for first in [json!(["enqueue"]), json!(["enqueue", "work", "read"])] {
        let refused = call(&node, "POST", "/admin/keys", "", json!({ "name": "a", "scopes": first })).await.expect(409);
        assert_eq!(refused["error"]["details"]["reason"], "first_key");
    }
    for limit in [("queues", json!(["a"])), ("expires_in", json!("P1D"))] {
        let key = json!({ "name": "a", "scopes": ["admin"], limit.0: limit.1 });
        call(&node, "POST", "/admin/keys", "", key).await.expect(409);
    }
    node.get("/queues").await.expect(200);
    let key = operator(&node).await;
    assert!(key.starts_with("rdk_") && key.len() == 85, "{}", key.len());
    node.get("/queues").await.expect(401);
    get(&node, "/queues", &key).await.expect(200);
    let revoked = call(&node, "DELETE", "/admin/keys/operator", &key, Value::Null).await.expect(409);
    assert_eq!(revoked["error"]["details"]["reason"], "last_admin_key");
    let second = make(&node, &key, json!({ "name": "second", "scopes": ["admin"] })).await;
    call(&node, "DELETE", "/admin/keys/operator", &key, Value::Null).await.expect(200);
    get(&node, "/queues", &key).await.expect(401);
    get(&node, "/queues", &second).await.expect(200);
}

#[tokio::test]
async fn keys_that_are_near_a_valid_one_are_not_admitted_and_nothing_shows_a_secret() {
    let (node, _) = nodes();
    let key = operator(&node).await;
    let (head, secret) = key.split_at(21);
    let flipped = if key.ends_with('0') { '1' } else { '0' };
    let near = [
        format!("{}{flipped}", &key[..84]),
        key[..84].to_owned(),
        format!("{key}0"),
        key.to_uppercase(),
        format!("{head}{}", "0".repeat(64)),
        format!("rdk_0000000000000000_{secret}"),
        secret.to_owned(),
        String::new(),
    ];
    for wrong in &near {
        let reply = get(&node, "/queues", wrong).await;
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert_eq!(reply.expect(401)["error"]["code"], "unauthorized", "{wrong}");
    }
    let in_query = node.call_text("GET", &format!("/ojs/v1/queues?api_key={key}"), "").await.expect(401);
    let unknown = get(&node, &format!("/queues?api_key={key}"), &key).await.expect(400);
    let listed = get(&node, "/admin/keys", &key).await.expect(200);
    assert_eq!(listed["keys"][0]["secrets"][0]["begins_with"], head[..20]);
    let again = call(&node, "POST", "/admin/keys", &key, json!({ "name": "operator", "scopes": ["read"] })).await;
    let answers = [in_query, unknown, listed, again.expect(409)].map(|answer| answer.to_string());
    let log = node.log.lock().unwrap().join("\n");
    for shown in answers.iter().chain([&log, &format!("{:?}", node.server)]) {
        assert!(!shown.contains(secret), "{shown}");
    }
    let stored: Vec<_> = node.engine.list_runs(Default::default(), 10).await.unwrap();
    assert!(stored.iter().all(|run| !String::from_utf8_lossy(&run.state).contains(secret)));
    assert_eq!(stored.len(), 1);
}

#[tokio::test]
async fn what_is_wrong_with_a_key_is_listed_whole() {
    let (node, _) = nodes();
    let wrong = json!({
        "name": "a b", "scopes": ["read", "write"], "queues": ["A*", "m*l", "*x"], "expires_in": "soon", "quota": 1,
    });
    let refused = call(&node, "POST", "/admin/keys", "", wrong).await.expect(400);
    let paths: Vec<&str> =
        refused["error"]["details"]["problems"].as_array().unwrap().iter().filter_map(|p| p["path"].as_str()).collect();
    for path in ["/name", "/scopes", "/queues/0", "/queues/1", "/queues/2", "/expires_in", "/quota"] {
        assert!(paths.contains(&path), "{path} in {paths:?}");
    }
    let over = json!({ "name": "a", "scopes": ["admin"], "expires_at": "2020-01-01T00:00:00Z" });
    call(&node, "POST", "/admin/keys", "", over).await.expect(400);
    node.get("/queues").await.expect(200);
}

#[tokio::test]
async fn a_revoked_key_is_refused_at_once_here_and_within_a_second_on_other_nodes() {
    let (here, there) = nodes();
    let key = operator(&here).await;
    // The other node has not looked since it started, and it looks before it admits anyone.
    get(&there, "/queues", "").await.expect(401);
    let reader = make(&here, &key, json!({ "name": "reader", "scopes": ["read"] })).await;
    there.advance_clock_ms(1_000.0);
    get(&there, "/queues", &reader).await.expect(200);
    call(&here, "DELETE", "/admin/keys/reader", &key, Value::Null).await.expect(200);
    get(&here, "/queues", &reader).await.expect(401);
    there.advance_clock_ms(1_000.0);
    get(&there, "/queues", &reader).await.expect(401);
    call(&there, "DELETE", "/admin/keys/reader", &key, Value::Null).await.expect(404);
}

#[tokio::test]
async fn a_rotated_key_has_a_new_secret_and_the_old_one_as_long_as_it_is_granted() {
    let (node, _) = nodes();
    let key = operator(&node).await;
    let old = make(&node, &key, json!({ "name": "shop", "scopes": ["read"] })).await;
    let rotate = |grace: Value| call(&node, "POST", "/admin/keys/shop/rotate", &key, grace);
    let new = text(&rotate(json!({ "grace": "PT1H" })).await.expect(200)["secret"]);
    for valid in [&old, &new] {
        get(&node, "/queues", valid).await.expect(200);
    }
    node.advance_clock_ms(3_600_000.0);
    get(&node, "/queues", &old).await.expect(401);
    let newest = text(&rotate(json!({})).await.expect(200)["secret"]);
    get(&node, "/queues", &new).await.expect(401);
    get(&node, "/queues", &newest).await.expect(200);
    rotate(json!({ "grace": "P31D" })).await.expect(400);
}

#[tokio::test]
async fn a_key_expires_by_elapsed_time_whatever_the_wall_clock_is_set_to() {
    let (node, _) = nodes();
    let key = operator(&node).await;
    let temporary = make(&node, &key, json!({ "name": "t", "scopes": ["read"], "expires_in": "PT1H" })).await;
    node.step_clock_ms(86_400_000);
    get(&node, "/queues", &temporary).await.expect(200);
    node.advance_clock_ms(3_599_999.0);
    get(&node, "/queues", &temporary).await.expect(200);
    node.advance_clock_ms(1.0);
    get(&node, "/queues", &temporary).await.expect(401);
    node.step_clock_ms(-200_000_000);
    get(&node, "/queues", &temporary).await.expect(401);
    let listed = get(&node, "/admin/keys", &key).await.expect(200);
    assert_eq!(listed["keys"][1]["status"], "expired");
}

#[tokio::test]
async fn a_stream_and_a_fetch_that_are_open_end_when_their_key_is_revoked() {
    let (node, _) = nodes();
    let key = operator(&node).await;
    let worker = make(&node, &key, json!({ "name": "w", "scopes": ["work", "read"] })).await;
    let stream = node.server.router().oneshot(request("GET", "/events/stream", &worker, &Value::Null)).await.unwrap();
    assert_eq!(stream.status(), 200);
    let fetch = json!({ "queues": ["default"], "wait_ms": 30_000 });
    let fetch = node.server.router().oneshot(request("POST", "/workers/fetch", &worker, &fetch));
    let fetch = tokio::spawn(fetch);
    while node.server.waiting_fetches() == 0 {
        tokio::task::yield_now().await;
    }
    call(&node, "DELETE", "/admin/keys/w", &key, Value::Null).await.expect(200);
    let told = stream.into_body().collect().await.unwrap().to_bytes();
    let told = String::from_utf8(told.to_vec()).unwrap();
    assert!(told.contains("event: unauthorized"), "{told}");
    assert_eq!(fetch.await.unwrap().unwrap().status(), 401);
    assert_eq!((node.server.waiting_fetches(), node.server.open_streams()), (0, 0));
}

#[tokio::test]
async fn configured_keys_do_everything_and_outlive_all_others() {
    let keys = ApiKeys::read(CONFIGURED).unwrap();
    let node = Harness::at(Parts { keys, ..Parts::default() }, START);
    let reader = make(&node, CONFIGURED, json!({ "name": "r", "scopes": ["read"] })).await;
    get(&node, "/queues", &reader).await.expect(200);
    let refused = get(&node, "/admin/keys", &reader).await.expect(403);
    let details = &refused["error"]["details"];
    assert_eq!((&details["required_scope"], &details["scopes"]), (&json!("admin"), &json!(["read"])));
    call(&node, "DELETE", "/admin/keys/r", CONFIGURED, Value::Null).await.expect(200);
    get(&node, "/queues", &reader).await.expect(401);
    get(&node, "/admin/keys", CONFIGURED).await.expect(200);
}

#[tokio::test]
async fn where_anyone_may_call_nobody_needs_a_key_and_none_can_be_made() {
    let node = Harness::with(Parts { anyone_may_call: true, ..Parts::default() });
    get(&node, "/queues", "whatever").await.expect(200);
    let refused = call(&node, "POST", "/admin/keys", "", json!({ "name": "a", "scopes": ["admin"] })).await.expect(409);
    assert!(text(&refused["error"]["message"]).contains("anyone_may_call"));
}
