//! Keys: who may call.

use crate::common::{Harness, Parts, Reply};
use axum::body::Body;
use axum::http::Request;
use redrive_server::ApiKeys;

const KEY: &str = "0123456789abcdef0123456789abcdef";

async fn get(harness: &Harness, path: &str, key: Option<&str>) -> Reply {
    let mut request = Request::get(path);
    if let Some(key) = key {
        request = request.header("Authorization", key);
    }
    harness.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn only_callers_with_a_key_pass() {
    let harness = Harness::with(Parts { keys: ApiKeys::read(KEY).unwrap(), ..Parts::default() });
    get(&harness, "/ojs/v1/queues", Some(&format!("Bearer {KEY}"))).await.expect(200);
    for wrong in [None, Some("Bearer 0123456789abcdef0123456789abcdee"), Some(KEY), Some("Basic 0123")] {
        let reply = get(&harness, "/ojs/v1/queues", wrong).await;
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert_eq!(reply.expect(401)["error"]["code"], "unauthorized", "{wrong:?}");
    }
    get(&harness, "/nowhere", None).await.expect(401);
}

#[tokio::test]
async fn health_and_manifest_need_no_key_and_keys_are_not_logged() {
    let harness = Harness::with(Parts { keys: ApiKeys::read(KEY).unwrap(), ..Parts::default() });
    get(&harness, "/ojs/v1/health", None).await.expect(200);
    get(&harness, "/ojs/manifest", None).await.expect(200);
    get(&harness, "/ojs/v1/queues", Some("Bearer ffffffffffffffffffffffffffffffff")).await.expect(401);
    assert!(harness.log.lock().unwrap().iter().all(|line| !line.contains("ffff") && !line.contains(KEY)));
}
