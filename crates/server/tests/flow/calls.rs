//! Calls of services, against a receiver on loopback.

use crate::common::{Harness, Parts};
use crate::receiver::Receiver;
use crate::world::{around, get, put, retrying, run, start};
use redrive_engine::advance_runs;
use redrive_server::WebhookSettings;
use serde_json::{Value, json};
use std::future::pending;
use std::sync::Arc;

const HTTP: &str = "mwl:provider.call/redrive/http/v1";

fn with(webhooks: WebhookSettings) -> Harness {
    Harness::with(Parts { webhooks, ..Parts::default() })
}

fn open() -> Harness {
    with(WebhookSettings { allow_private: true, allow_http: true })
}

/// Runs a test beside the loops of a server.
async fn beside(harness: &Harness, test: impl Future<Output = ()>) {
    let advancer = advance_runs(Arc::clone(&harness.engine), pending(), |notice| panic!("{notice}"));
    tokio::select! {
        () = harness.server.call_services(pending()) => {}
        () = advancer => {}
        () = test => {}
    }
}

/// Starts a run of a definition, and waits for its end or its gap.
async fn settled(harness: &Harness, definition: &Value, input: &Value) -> Value {
    put(harness, "order", definition).await;
    let started = start(harness, &json!({ "definition": "order", "input": input })).await.expect(201);
    settled_of(harness, started["id"].as_str().expect("an id")).await
}

async fn settled_of(harness: &Harness, id: &str) -> Value {
    let mut advances = harness.engine.watch_runs();
    loop {
        let found = run(harness, id).await;
        let waits = &found["positions"][0]["waits"];
        if found["state"] != "running" || waits == "retry" {
            return found;
        }
        advances.changed().await.expect("the engine lives");
    }
}

fn calling(url: &str, middleware: &Value) -> Value {
    let with = json!({ "url": url, "headers": { "Authorization": "Bearer hunter2" } });
    around(middleware, &json!({ "provider": HTTP, "with": with }))
}

#[tokio::test]
async fn a_service_gets_the_input_and_a_key_and_its_answer_is_the_result() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    beside(&harness, async {
        let definition = calling(&format!("{}/charge?x=1", receiver.address), &json!([]));
        let ended = settled(&harness, &definition, &json!({ "amount": 5 })).await;
        assert_eq!(ended["result"], json!({ "type": "success", "value": { "status": 200, "body": "ok" } }));
        let arrived = receiver.next().await;
        assert_eq!((arrived.path.as_str(), arrived.body.as_str()), ("/charge?x=1", "{\"amount\":5}"));
        let id = ended["id"].as_str().expect("an id");
        assert_eq!(arrived.headers["idempotency-key"], format!("{id}.0"));
        assert_eq!(arrived.headers["content-type"], "application/json");
        assert_eq!(arrived.headers["authorization"], "Bearer hunter2");
        let history = get(&harness, &format!("runs/{id}/history")).await.expect(200);
        assert!(!history.to_string().contains("hunter2"));
    })
    .await;
    assert!(!harness.log.lock().expect("no panic").join("\n").contains("hunter2"));
}

#[tokio::test]
async fn a_retry_of_the_flow_calls_again_with_another_key() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    receiver.answers("503 Service Unavailable");
    beside(&harness, async {
        let definition = calling(&format!("{}/charge", receiver.address), &json!([retrying(3)]));
        let waiting = settled(&harness, &definition, &Value::Null).await;
        let failed = &waiting["retries"][0]["attempts"][0]["failure"];
        assert_eq!((&failed["code"], &failed["type"]), (&json!("Redrive.Http.Server.503"), &json!("error")));
        let first = receiver.next().await.headers["idempotency-key"].clone();
        harness.advance_ms(2_000.0).await;
        let ended = settled_of(&harness, waiting["id"].as_str().expect("an id")).await;
        assert_eq!(ended["state"], "completed", "{ended}");
        assert_ne!(receiver.next().await.headers["idempotency-key"], first);
    })
    .await;
}

#[tokio::test]
async fn redirects_are_not_followed_and_private_addresses_not_reached() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    receiver.answers("302 Found\r\nlocation: http://169.254.169.254/latest");
    beside(&harness, async {
        let ended = settled(&harness, &calling(&receiver.address, &json!([])), &Value::Null).await;
        assert_eq!(ended["result"]["code"], "Redrive.Http.Redirect.302");
        assert_eq!(ended["result"]["details"]["location"], "http://169.254.169.254/latest");
        receiver.next().await;
    })
    .await;
    for (settings, url) in [
        (WebhookSettings::default(), receiver.address.clone()),
        (WebhookSettings { allow_http: true, ..WebhookSettings::default() }, receiver.address.clone()),
        (WebhookSettings { allow_http: true, ..WebhookSettings::default() }, "http://localhost:9999/".to_owned()),
    ] {
        let harness = with(settings);
        beside(&harness, async {
            let ended = settled(&harness, &calling(&url, &json!([])), &Value::Null).await;
            assert_eq!(ended["result"]["code"], "Redrive.Http.NotAllowed", "{url}: {ended}");
            assert_eq!(ended["result"]["retryable"], false);
        })
        .await;
    }
    assert!(receiver.is_quiet());
}
