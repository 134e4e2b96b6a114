//! Webhooks against a receiver on loopback: what is sent, how it is signed, when it is tried again, and where to.

use crate::common::{Harness, Parts, text};
use crate::receiver::{Receiver, is_signed};
use redrive_engine::advance_runs;
use redrive_server::WebhookSettings;
use serde_json::{Value, json};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

fn open() -> Harness {
    let webhooks = WebhookSettings { allow_private: true, allow_http: true };
    Harness::with(Parts { webhooks, ..Parts::default() })
}

/// Runs a test beside the loops of a server.
async fn beside(harness: &Harness, test: impl Future<Output = ()>) {
    let advancer = advance_runs(Arc::clone(&harness.engine), pending(), |notice| panic!("{notice}"));
    tokio::select! {
        () = harness.server.deliver_webhooks(pending()) => {}
        () = advancer => {}
        () = test => {}
    }
}

async fn subscribe(harness: &Harness, url: &str, more: Value) -> Value {
    let mut body = json!({ "url": url, "events": ["job.completed"] });
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    harness.post("/webhooks/subscriptions", body).await.expect(201)
}

async fn complete(harness: &Harness, options: Value) -> String {
    let id = harness.enqueue_with(options).await;
    harness.fetch().await.expect("a job");
    harness.post("/workers/ack", json!({ "job_id": id, "result": { "n": 1 } })).await.expect(200);
    id
}

async fn show(harness: &Harness, id: &Value) -> Value {
    harness.get(&format!("/webhooks/subscriptions/{}", text(id))).await.expect(200)
}

/// Waits until a number of a subscription is what it should be.
async fn counted(harness: &Harness, id: &Value, key: &str, expected: u64) {
    for _ in 0..2_000 {
        if show(harness, id).await["deliveries"][key] == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{key} is not {expected}: {}", show(harness, id).await);
}

/// Waits until the one delivery that has failed waits for its next attempt; when that is.
async fn next_attempt(harness: &Harness) -> String {
    for _ in 0..2_000 {
        let listed = harness.get("/webhooks/deliveries?status=retrying").await.expect(200);
        if let Some(at) = listed["deliveries"][0]["next_attempt_at"].as_str() {
            return at.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no delivery waits for its next attempt");
}

/// Whether every event that was recorded has become a delivery, and every delivery has ended: nothing is left to send.
async fn nothing_is_owed(harness: &Harness) -> bool {
    while harness.engine.advance().await.expect("advanced") > 0 {}
    let mut open = Vec::new();
    for status in ["waiting", "retrying", "sending"] {
        let listed = harness.get(&format!("/webhooks/deliveries?status={status}")).await.expect(200);
        open.extend(listed["deliveries"].as_array().cloned().unwrap_or_default());
    }
    open.is_empty()
}

#[tokio::test]
async fn an_event_is_sent_signed_and_sent_again_after_an_error_of_the_server() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let made = subscribe(&harness, &format!("{}/hooks?a=1", receiver.address), json!({})).await;
    let secret = text(&made["secret"]);
    receiver.answers("503 Service Unavailable");
    beside(&harness, async {
        let job = complete(&harness, json!({})).await;
        let first = receiver.next().await;
        assert_eq!(first.path, "/hooks?a=1");
        let event: Value = serde_json::from_str(&first.body).unwrap();
        assert_eq!((&event["type"], &event["subject"]), (&json!("job.completed"), &json!(job)));
        assert_eq!((&event["data"]["result"], &event["specversion"]), (&json!({ "n": 1 }), &json!("1.0")));
        assert_eq!(first.headers["content-type"], "application/json");
        assert_eq!(first.headers["x-ojs-event-type"], "job.completed");
        assert_eq!(first.headers["x-ojs-subscription-id"], text(&made["id"]));
        assert_eq!(first.headers["x-ojs-timestamp"], "1770976800", "2026-02-13 10:00:00 UTC");
        assert!(is_signed(&secret, &first, &first.headers["x-ojs-signature"]));
        assert!(!is_signed("whsec_other", &first, &first.headers["x-ojs-signature"]));
        assert_eq!(next_attempt(&harness).await, "2026-02-13T10:00:30.000000Z");
        assert!(receiver.is_quiet());
        harness.advance_ms(30_000.0).await;
        let second = receiver.next().await;
        assert_eq!(second.headers["x-ojs-delivery-id"], first.headers["x-ojs-delivery-id"]);
        assert_eq!(second.body, first.body);
        assert_eq!(second.headers["x-ojs-timestamp"], "1770976830");
        assert!(is_signed(&secret, &second, &second.headers["x-ojs-signature"]));
        counted(&harness, &made["id"], "delivered", 1).await;
        let told = harness.get("/events?types=webhook.*").await.expect(200)["events"].clone();
        let types: Vec<String> = told.as_array().unwrap().iter().map(|event| text(&event["type"])).collect();
        assert_eq!(types, ["webhook.subscription.created", "webhook.failed", "webhook.delivered"]);
        assert_eq!(told[2]["data"]["delivery_id"], first.headers["x-ojs-delivery-id"].as_str());
    })
    .await;
}

#[tokio::test]
async fn errors_of_the_client_are_dead_at_once_and_can_be_sent_again_or_dropped() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let made = subscribe(&harness, &receiver.address, json!({})).await;
    let id = text(&made["id"]);
    receiver.answers("404 Not Found");
    beside(&harness, async {
        complete(&harness, json!({})).await;
        receiver.next().await;
        counted(&harness, &made["id"], "dead", 1).await;
        let list = harness.get(&format!("/webhooks/deliveries?subscription_id={id}&status=dead")).await.expect(200);
        let dead = &list["deliveries"][0];
        assert_eq!((&dead["attempts"], &dead["event_type"]), (&json!(1), &json!("job.completed")));
        assert_eq!(dead["last_error"]["details"]["status_code"], 404);
        assert_eq!(harness.dead().await, Vec::<String>::new(), "a dead delivery is no dead letter");
        for (path, list) in [("/queues", "queues"), ("/admin/queues", "items")] {
            let listed = harness.get(path).await.expect(200);
            let names: Vec<String> =
                listed[list].as_array().unwrap().iter().map(|queue| text(&queue["name"])).collect();
            assert_eq!(names, ["default"], "the queue of the deliveries is the server's own");
        }
        assert_eq!(harness.get("/admin/stats").await.expect(200)["queues"], 1);
        let path = format!("/webhooks/deliveries/{}", text(&dead["id"]));
        harness.post(&format!("{path}/retry"), json!({})).await.expect(200);
        let again = receiver.next().await;
        assert_eq!(again.headers["x-ojs-delivery-id"], text(&dead["id"]));
        counted(&harness, &made["id"], "delivered", 1).await;
        assert_eq!(harness.get(&path).await.expect(200)["event"]["type"], "job.completed");
        harness.delete(&path).await.expect(200);
        harness.get(&path).await.expect(404);
    })
    .await;
}

#[tokio::test]
async fn a_policy_with_dead_letters_makes_none_of_deliveries() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    let made = subscribe(&harness, &receiver.address, json!({ "retry": retry })).await;
    receiver.answers("503 Service Unavailable");
    beside(&harness, async {
        complete(&harness, json!({})).await;
        receiver.next().await;
        counted(&harness, &made["id"], "dead", 1).await;
        let dead = harness.get("/webhooks/deliveries?status=dead").await.expect(200);
        assert_eq!(dead["deliveries"].as_array().map(Vec::len), Some(1), "{dead}");
        assert_eq!(harness.dead().await, Vec::<String>::new());
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_is_busy_says_when_to_come_again_and_redirects_are_followed() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let made = subscribe(&harness, &receiver.address, json!({})).await;
    receiver.answers("429 Too Many Requests\r\nretry-after: 7");
    receiver.answers("308 Permanent Redirect\r\nlocation: /moved");
    beside(&harness, async {
        complete(&harness, json!({})).await;
        receiver.next().await;
        assert_eq!(next_attempt(&harness).await, "2026-02-13T10:00:07.000000Z");
        assert!(receiver.is_quiet());
        harness.advance_ms(7_000.0).await;
        let (first, second) = (receiver.next().await, receiver.next().await);
        assert_eq!((first.path.as_str(), second.path.as_str()), ("/", "/moved"));
        assert_eq!(first.body, second.body);
        counted(&harness, &made["id"], "delivered", 1).await;
    })
    .await;
}

#[tokio::test]
async fn the_secret_is_shown_once_and_two_secrets_sign_for_a_day() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let made = subscribe(&harness, &receiver.address, json!({ "metadata": { "owner": "x" } })).await;
    let (id, old) = (text(&made["id"]), text(&made["secret"]));
    assert!(old.starts_with("whsec_") && old.len() == 70, "{old}");
    let path = format!("/webhooks/subscriptions/{id}");
    let new = text(&harness.post(&format!("{path}/rotate-secret"), json!({})).await.expect(200)["secret"]);
    for body in [harness.get(&path).await.body, harness.get("/webhooks/subscriptions").await.body] {
        assert!(!body.to_string().contains("whsec_"), "{body}");
    }
    assert!(!harness.get("/events?limit=1000").await.body.to_string().contains("whsec_"));
    beside(&harness, async {
        for (day, secrets) in [(0, vec![&new, &old]), (1, vec![&new])] {
            harness.advance_ms(86_400_000.0 * f64::from(day)).await;
            complete(&harness, json!({})).await;
            let arrived = receiver.next().await;
            let signatures: Vec<&str> = arrived.headers["x-ojs-signature"].split(',').collect();
            assert_eq!(signatures.len(), secrets.len());
            for (secret, signature) in secrets.into_iter().zip(signatures) {
                assert!(is_signed(secret, &arrived, signature));
            }
        }
    })
    .await;
    assert!(!harness.log.lock().unwrap().concat().contains("whsec_"));
}

#[tokio::test]
async fn only_what_is_wanted_is_sent_and_nothing_while_it_is_paused() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let more = json!({ "events": ["queue.*", "job.enqueued"], "filter": { "queues": ["mail"] } });
    let made = subscribe(&harness, &receiver.address, more).await;
    let path = format!("/webhooks/subscriptions/{}", text(&made["id"]));
    beside(&harness, async {
        harness.enqueue_with(json!({ "queue": "other" })).await;
        harness.enqueue_with(json!({ "queue": "mail" })).await;
        harness.post("/queues/mail/pause", json!({})).await.expect(200);
        let mut types =
            [receiver.next().await, receiver.next().await].map(|one| one.headers["x-ojs-event-type"].clone());
        types.sort();
        assert_eq!(types, ["job.enqueued", "queue.paused"]);
        let paused = harness.call("PATCH", &format!("/ojs/v1{path}"), &json!({ "active": false })).await.expect(200);
        assert_eq!(paused["active"], false);
        counted(&harness, &made["id"], "delivered", 2).await;
        harness.enqueue_with(json!({ "queue": "mail" })).await;
        assert!(nothing_is_owed(&harness).await && receiver.is_quiet());
        assert_eq!(show(&harness, &made["id"]).await["deliveries"]["total"], 2);
        harness.call("PATCH", &format!("/ojs/v1{path}"), &json!({ "active": true })).await.expect(200);
        harness.enqueue_with(json!({ "queue": "mail" })).await;
        receiver.next().await;
        counted(&harness, &made["id"], "delivered", 3).await;
        harness.delete(&path).await.expect(200);
        harness.enqueue_with(json!({ "queue": "mail" })).await;
        assert!(nothing_is_owed(&harness).await && receiver.is_quiet());
        harness.get(&path).await.expect(404);
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_is_gone_delays_no_other() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    // It accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let first = subscribe(&harness, &url, json!({ "timeout_ms": 60_000 })).await;
    subscribe(&harness, &receiver.address, json!({})).await;
    beside(&harness, async {
        for _ in 0..10 {
            complete(&harness, json!({})).await;
        }
        for _ in 0..10 {
            receiver.next().await;
        }
        assert_eq!(show(&harness, &first["id"]).await["deliveries"]["outstanding"], 10);
        harness.delete(&format!("/webhooks/subscriptions/{}", text(&first["id"]))).await.expect(200);
        let left = harness.get("/webhooks/deliveries?status=waiting").await.expect(200);
        assert_eq!(left["deliveries"], json!([]), "deliveries of a deleted subscription are cancelled");
    })
    .await;
}

#[tokio::test]
async fn a_test_answers_what_the_endpoint_said() {
    let (harness, mut receiver) = (open(), Receiver::start().await);
    let made = subscribe(&harness, &receiver.address, json!({})).await;
    receiver.answers("418 I'm a teapot");
    let path = format!("/webhooks/subscriptions/{}/test", text(&made["id"]));
    let answer = harness.post(&path, json!({})).await.expect(200);
    assert_eq!((&answer["success"], &answer["status_code"]), (&json!(false), &json!(418)));
    assert_eq!(answer["response_body"], "ok");
    assert_eq!(receiver.next().await.headers["x-ojs-event-type"], "webhook.test");
    assert_eq!(harness.post(&path, json!({})).await.expect(200)["success"], true);
}

#[tokio::test]
async fn nothing_is_sent_to_addresses_that_are_not_allowed() {
    let strict = Harness::new();
    for url in
        ["http://example.org/", "https://127.0.0.1/", "https://[::ffff:10.0.0.1]/", "https://a:b@example.org/", ""]
    {
        let refused = strict.post("/webhooks/subscriptions", json!({ "url": url, "events": ["*"] })).await.expect(400);
        assert!(text(&refused["error"]["message"]).contains("/url"), "{refused}");
    }
    // A name that leads to this machine is refused when it is connected to.
    let https = WebhookSettings { allow_private: false, allow_http: true };
    let harness = Harness::with(Parts { webhooks: https, ..Parts::default() });
    let made = subscribe(&harness, "http://localhost:9999", json!({})).await;
    beside(&harness, async {
        complete(&harness, json!({})).await;
        counted(&harness, &made["id"], "dead", 1).await;
        let dead = harness.get("/webhooks/deliveries?status=dead").await.expect(200)["deliveries"][0].clone();
        assert_eq!(dead["last_error"]["code"], "address_not_allowed");
        assert_eq!(dead["attempts"], 1);
    })
    .await;
}

#[tokio::test]
async fn requests_that_are_not_valid_list_every_problem() {
    let harness = open();
    let body = json!({
        "url": "nowhere", "events": ["job.complete", "webhook.*", 7], "filter": { "queue": ["x"] },
        "timeout_ms": 1, "retry": { "max_attempts": -1 }, "secret": "mine",
    });
    let refused = harness.post("/webhooks/subscriptions", body).await.expect(400);
    let message = text(&refused["error"]["message"]) + &refused["error"]["details"].to_string();
    for part in ["url", "did you mean job.completed", "webhook.*", "queues", "timeout_ms", "max_attempts", "secret"] {
        assert!(message.contains(part), "{part} is missing in {message}");
    }
    harness.get("/webhooks/subscriptions/sub_nothing").await.expect(404);
    harness.get("/webhooks/deliveries?status=lost").await.expect(400);
}

#[tokio::test]
async fn queues_of_deliveries_are_the_servers_own() {
    let harness = open();
    let made = subscribe(&harness, "http://127.0.0.1:9999", json!({})).await;
    let queue = text(&made["id"]).replace("sub_", "webhook:");
    let job = json!({ "type": "a.b", "args": [], "options": { "queue": queue } });
    let refused = harness.post("/jobs", job).await.expect(400);
    assert!(text(&refused["error"]["message"]).contains("queue"), "{refused}");
    harness.post("/workers/fetch", json!({ "queues": [queue], "worker_id": "w" })).await.expect(400);
}
