//! Live and ready: what load balancers and supervisors see.

use crate::common::{Harness, Parts, Reply};
use crate::faulty::{Behaviour, Faulty};
use crate::scratch::Scratch;
use axum::body::Body;
use axum::http::Request;
use redrive_server::{ApiKeys, LocalStore};
use redrive_store::embedded::Options;
use redrive_store::{Embedded, StoreError};
use serde_json::{Value, json};
use std::sync::Arc;

async fn get(harness: &Harness, path: &str) -> Reply {
    harness.call_text("GET", path, "").await
}

fn codes(body: &Value) -> Vec<&str> {
    body["reasons"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_server_whose_store_does_not_write_lives_and_is_not_ready() {
    let store = Faulty::new();
    let harness = Harness::with(Parts { store: store.clone(), ..Parts::default() });
    assert_eq!(get(&harness, "/ready").await.expect(200), json!({ "status": "ready", "reasons": [] }));
    let harness = Harness::with(Parts { store: store.clone(), ..Parts::default() });
    store.set(Behaviour::Fails(StoreError::Unavailable("the disk is full".into())));
    let body = get(&harness, "/ready").await.expect(503);
    assert_eq!((&body["status"], codes(&body)), (&json!("not_ready"), vec!["store_does_not_write"]));
    assert!(body["reasons"][0]["message"].as_str().unwrap().contains("the disk is full"));
    get(&harness, "/live").await.expect(200);
}

#[tokio::test]
async fn maintenance_and_a_failing_compaction_are_named_and_take_no_server_away() {
    let scratch = Scratch::new();
    let data = scratch.path().join("data");
    let (store, _) = Embedded::open(&data, Options::default()).unwrap();
    let store = Arc::new(store);
    let local = Some(LocalStore::new(Arc::clone(&store), None));
    let harness = Harness::with(Parts { store: Arc::clone(&store) as _, local, ..Parts::default() });
    std::fs::create_dir(data.join("00000002.draft")).unwrap();
    assert!(store.compact().is_err());
    harness.post("/admin/system/maintenance", json!({ "enabled": true, "reason": "a new disk" })).await.expect(200);
    let body = get(&harness, "/ready").await.expect(200);
    assert_eq!((&body["status"], codes(&body)), (&json!("degraded"), vec!["compaction_fails", "maintenance"]));
    assert!(body["reasons"].as_array().unwrap().iter().all(|reason| reason["blocks"] == false));
}

#[tokio::test]
async fn a_store_that_is_closed_is_not_ready() {
    let scratch = Scratch::new();
    let (store, _) = Embedded::open(scratch.path().join("data"), Options::default()).unwrap();
    let store = Arc::new(store);
    let harness = Harness::with(Parts { store: Arc::clone(&store) as _, ..Parts::default() });
    store.close().unwrap();
    let body = get(&harness, "/ready").await.expect(503);
    assert_eq!(codes(&body), ["store_does_not_write"]);
}

#[tokio::test]
async fn callers_without_a_key_learn_what_is_wrong_and_no_place_of_the_machine() {
    let key = "0123456789abcdef0123456789abcdef";
    let store = Faulty::new();
    store.set(Behaviour::Fails(StoreError::Unavailable("/var/lib/redrive is gone".into())));
    let keys = ApiKeys::read(key).unwrap();
    let harness = Harness::with(Parts { store, keys, ..Parts::default() });
    let body = get(&harness, "/ready").await.expect(503);
    assert_eq!(body["reasons"], json!([{ "code": "store_does_not_write", "blocks": true }]));
    let insider = Request::get("/ready").header("x-api-key", key).body(Body::empty()).unwrap();
    let body = harness.send(insider).await.expect(503);
    assert!(body["reasons"][0]["message"].as_str().unwrap().contains("/var/lib/redrive"));
    get(&harness, "/live").await.expect(200);
}
