//! Misspelt, repeated or missing parameters destroy nothing.

use crate::common::Harness;
use serde_json::{Value, json};

/// Two dead letters, in the queues `mine` and `other`.
async fn two_dead_letters(harness: &Harness) {
    for queue in ["mine", "other"] {
        let retry = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
        let id = harness.enqueue_with(json!({ "queue": queue, "retry": retry })).await;
        harness.post("/workers/fetch", json!({ "queues": [queue] })).await.expect(200);
        harness.fail(&id).await;
    }
    assert_eq!(harness.dead().await.len(), 2);
}

/// The first problem of a refusal: its path and its message.
fn problem(error: &Value) -> (&str, &str) {
    let problem = &error["error"]["details"]["problems"][0];
    (problem["path"].as_str().unwrap(), problem["message"].as_str().unwrap())
}

#[tokio::test]
async fn a_misspelt_filter_in_a_query_deletes_nothing() {
    let harness = Harness::new();
    two_dead_letters(&harness).await;
    for (query, path, expected) in [
        ("confirm=true&qeue=other", "?qeue", "did you mean \"queue\"?"),
        ("confirm=true&queue=other&queue=mine", "?queue", "twice"),
        ("confirm=true&queue=", "?queue", "no value"),
        ("confirm=true&queue", "?queue", "no value"),
        ("confirm=true&queue=other&dry-run=true", "?dry-run", "did you mean \"dry_run\"?"),
        ("confirm=true&queue=other&dry_run=1", "?dry_run", "true or false"),
        ("confirm=yes&queue=other", "?confirm", "true or false"),
        ("confirm=true", "/filter", "\"all\": true"),
        ("confirm=true&all=true&queue=other", "/filter", "contradicts"),
    ] {
        let error = harness.delete(&format!("/dead-letter?{query}")).await.expect(400);
        let (at, message) = problem(&error);
        assert_eq!(at, path, "{query}");
        assert!(message.contains(expected), "{query}: {message}");
        assert_eq!(error["error"]["code"], "invalid_request");
    }
    assert_eq!(harness.dead().await.len(), 2);
}

#[tokio::test]
async fn a_misspelt_filter_in_a_body_changes_nothing() {
    let harness = Harness::new();
    two_dead_letters(&harness).await;
    for (body, path, expected) in [
        (json!({ "confirm": true, "queue": "other" }), "/queue", "unknown field"),
        (json!({ "confirm": true, "filters": { "queue": "other" } }), "/filters", "did you mean \"filter\"?"),
        (json!({ "confirm": true, "dry-run": true, "all": true }), "/dry-run", "did you mean \"dry_run\"?"),
        (json!({ "confirm": true, "filter": { "qeue": "other" } }), "/filter/qeue", "did you mean \"queue\"?"),
        (json!({ "confirm": true, "filter": {} }), "/filter", "\"all\": true"),
        (json!({ "confirm": true }), "/filter", "\"all\": true"),
        (json!({ "confirm": true, "all": false }), "/filter", "\"all\": true"),
    ] {
        for (method, address) in [("DELETE", "/ojs/v1/dead-letter"), ("POST", "/ojs/v1/dead-letter/retry")] {
            let error = harness.call(method, address, &body).await.expect(400);
            let (at, message) = problem(&error);
            assert_eq!(at, path, "{body}");
            assert!(message.contains(expected), "{body}: {message}");
        }
    }
    assert_eq!(harness.dead().await.len(), 2);
}

#[tokio::test]
async fn a_filter_in_the_query_is_never_ignored_in_favour_of_the_body() {
    let harness = Harness::new();
    two_dead_letters(&harness).await;
    let everything = json!({ "filter": {}, "all": true, "confirm": true });
    for (method, address, body) in [
        ("DELETE", "/ojs/v1/dead-letter?queue=other", &everything),
        ("DELETE", "/ojs/v1/dead-letter?queue=other", &json!({ "filter": { "queue": "mine" }, "confirm": true })),
        ("DELETE", "/ojs/v1/dead-letter?dry_run=true", &json!({ "all": true, "confirm": true, "dry_run": false })),
        ("POST", "/ojs/v1/dead-letter/retry?queue=other", &everything),
        ("POST", "/ojs/v1/dead-letter/retry?dry_run=true", &everything),
    ] {
        harness.call(method, address, body).await.expect(400);
    }
    assert_eq!(harness.dead().await.len(), 2);
    let confirmed = json!({ "confirm": true });
    harness.call("DELETE", "/ojs/v1/dead-letter?queue=other", &confirmed).await.expect(200);
    assert_eq!(harness.dead().await.len(), 1, "the filter of the query, confirmed in the body");
}

#[tokio::test]
async fn all_dead_letters_are_selected_if_the_request_says_so() {
    let harness = Harness::new();
    two_dead_letters(&harness).await;
    let counted = harness.post("/dead-letter/retry", json!({ "dry_run": true })).await.expect(200);
    assert_eq!(counted["matched"], 2, "counting destroys nothing and needs no more words");
    harness.delete("/dead-letter?all=true&confirm=true").await.expect(200);
    assert!(harness.dead().await.is_empty());
    // On another server, where no worker can fetch what was redriven.
    let harness = Harness::new();
    two_dead_letters(&harness).await;
    harness.post("/dead-letter/retry", json!({ "all": true, "confirm": true })).await.expect(200);
    assert!(harness.dead().await.is_empty());
}

#[tokio::test]
async fn a_misspelt_override_redrives_nothing() {
    let harness = Harness::new();
    two_dead_letters(&harness).await;
    let id = harness.dead().await.remove(0);
    let body = json!({ "overide": { "args": ["safe"] } });
    let error = harness.post(&format!("/dead-letter/{id}/retry"), body).await.expect(400);
    assert_eq!(problem(&error).0, "/overide");
    assert_eq!(harness.dead().await.len(), 2);
}

#[tokio::test]
async fn no_endpoint_ignores_an_unknown_parameter() {
    let harness = Harness::new();
    let id = harness.enqueue_with(json!({})).await;
    for (method, path) in ENDPOINTS {
        let path = path.replace("{id}", &id);
        let error = harness.call_text(method, &format!("{path}?colour=red"), "").await.expect(400);
        let (at, message) = problem(&error);
        assert_eq!(at, "?colour", "{method} {path}");
        assert!(message.starts_with("unknown parameter; "), "{message}");
    }
    assert_eq!(harness.job(&id).await["state"], "available");
    harness.call_text("HEAD", "/ojs/v1/queues?colour=red", "").await.expect(400);
    harness.call_text("PATCH", "/ojs/v1/queues?colour=red", "").await.expect(405);
    harness.call_text("GET", "/ojs/v1/nothing?colour=red", "").await.expect(404);
}

const ENDPOINTS: [(&str, &str); 62] = [
    ("GET", "/ojs/v1/health"),
    ("GET", "/health"),
    ("GET", "/ojs/manifest"),
    ("GET", "/ojs/v1/errors/not_found"),
    ("POST", "/ojs/v1/jobs"),
    ("POST", "/ojs/v1/jobs/batch"),
    ("GET", "/ojs/v1/jobs/{id}"),
    ("DELETE", "/ojs/v1/jobs/{id}"),
    ("POST", "/ojs/v1/jobs/{id}/activate"),
    ("GET", "/ojs/v1/jobs/{id}/progress"),
    ("PUT", "/ojs/v1/jobs/{id}/progress"),
    ("POST", "/ojs/v1/workers/fetch"),
    ("POST", "/ojs/v1/workers/ack"),
    ("POST", "/ojs/v1/workers/nack"),
    ("POST", "/ojs/v1/workers/settle"),
    ("POST", "/ojs/v1/workers/heartbeat"),
    ("POST", "/ojs/v1/workers/beat"),
    ("GET", "/ojs/v1/workers/w1/health"),
    ("POST", "/ojs/v1/workers/progress"),
    ("GET", "/ojs/v1/queues"),
    ("DELETE", "/ojs/v1/queues/default"),
    ("GET", "/ojs/v1/queues/default/stats"),
    ("POST", "/ojs/v1/queues/default/pause"),
    ("POST", "/ojs/v1/queues/default/resume"),
    ("GET", "/ojs/v1/dead-letter"),
    ("DELETE", "/ojs/v1/dead-letter"),
    ("GET", "/ojs/v1/dead-letter/stats"),
    ("POST", "/ojs/v1/dead-letter/retry"),
    ("GET", "/ojs/v1/dead-letter/{id}"),
    ("DELETE", "/ojs/v1/dead-letter/{id}"),
    ("POST", "/ojs/v1/dead-letter/{id}/retry"),
    ("GET", "/ojs/v1/events"),
    ("GET", "/ojs/v1/events/stream"),
    ("GET", "/ojs/v1/jobs/{id}/events"),
    ("GET", "/ojs/v1/queues/default/events"),
    ("GET", "/ojs/v1/admin/jobs"),
    ("POST", "/ojs/v1/admin/jobs/bulk/retry"),
    ("POST", "/ojs/v1/admin/jobs/bulk/delete"),
    ("POST", "/ojs/v1/admin/jobs/{id}/retry"),
    ("GET", "/ojs/v1/admin/stats"),
    ("GET", "/ojs/v1/admin/queues"),
    ("GET", "/ojs/v1/admin/queues/default"),
    ("POST", "/ojs/v1/admin/queues/default/pause"),
    ("POST", "/ojs/v1/admin/queues/default/resume"),
    ("DELETE", "/ojs/v1/admin/queues/default/jobs"),
    ("POST", "/ojs/v1/admin/jobs/bulk/cancel"),
    ("GET", "/ojs/v1/admin/jobs/{id}"),
    ("POST", "/ojs/v1/admin/jobs/{id}/cancel"),
    ("GET", "/ojs/v1/admin/workers"),
    ("GET", "/ojs/v1/admin/workers/w1"),
    ("DELETE", "/ojs/v1/admin/workers/w1"),
    ("POST", "/ojs/v1/admin/workers/w1/quiet"),
    ("POST", "/ojs/v1/admin/workers/w1/terminate"),
    ("POST", "/ojs/v1/admin/workers/w1/resume"),
    ("GET", "/ojs/v1/admin/dead-letter"),
    ("DELETE", "/ojs/v1/admin/dead-letter"),
    ("GET", "/ojs/v1/admin/dead-letter/stats"),
    ("GET", "/ojs/v1/admin/dead-letter/{id}"),
    ("DELETE", "/ojs/v1/admin/dead-letter/{id}"),
    ("POST", "/ojs/v1/admin/dead-letter/{id}/retry"),
    ("GET", "/ojs/v1/admin/system/config"),
    ("POST", "/ojs/v1/admin/backup"),
];
