//! Every endpoint against every scope, by the registry of endpoints; and keys for some queues.

use crate::common::{Harness, text};
use axum::body::Body;
use axum::http::Request;
use redrive_server::{EndpointInfo, Server};
use serde_json::{Value, json};

const SCOPES: [&str; 4] = ["enqueue", "work", "read", "admin"];

async fn send(node: &Harness, method: &str, path: &str, key: &str, body: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("x-api-key", key);
    let response = {
        use tower::ServiceExt;
        let request = request.body(Body::from(body.to_owned())).unwrap();
        node.server.router().oneshot(request).await.unwrap()
    };
    let status = response.status().as_u16();
    // A stream does not end, and is not read.
    if status == 200 && path.contains("events") {
        return (status, Value::Null);
    }
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

async fn make(node: &Harness, by: &str, key: Value) -> String {
    let (status, answer) = send(node, "POST", "/ojs/v1/admin/keys", by, &key.to_string()).await;
    assert_eq!(status, 201, "{answer}");
    text(&answer["secret"])
}

/// A path that fits an endpoint.
fn path_of(endpoint: &EndpointInfo) -> String {
    let values = [("{id}", "01890000-0000-7000-8000-000000000001"), ("{page}", "1"), ("{size}", "1")];
    let mut path = endpoint.path.to_owned();
    for (parameter, value) in values {
        path = path.replace(parameter, value);
    }
    while let (Some(open), Some(close)) = (path.find('{'), path.find('}')) {
        path.replace_range(open..=close, "none");
    }
    path
}

#[tokio::test]
async fn every_endpoint_admits_the_scope_that_it_needs_and_no_other() {
    let node = Harness::new();
    let operator = make(&node, "", json!({ "name": "operator", "scopes": ["admin"] })).await;
    let mut keys = Vec::new();
    for scope in SCOPES {
        keys.push((scope, make(&node, &operator, json!({ "name": scope, "scopes": [scope] })).await));
    }
    let endpoints = Server::endpoints();
    assert!(endpoints.len() > 120, "the registry has {} endpoints", endpoints.len());
    let mut admitted = 0;
    for endpoint in &endpoints {
        let (path, method) = (path_of(endpoint), endpoint.method);
        // A body that no endpoint takes: what is admitted is refused for another reason, or does nothing.
        let status = async |key: &str| send(&node, method, &path, key, "[]").await.0;
        let without = status("").await;
        assert_eq!(without == 401, endpoint.scope.is_some(), "{method} {path} without a key: {without}");
        for (scope, key) in &keys {
            let status = status(key).await;
            let is_admitted = endpoint.scope.is_none_or(|needed| needed == *scope || *scope == "admin");
            assert_eq!(status != 403, is_admitted, "{method} {path} with the scope {scope}: {status}");
            assert_ne!(status, 401, "{method} {path} with the scope {scope}");
            admitted += usize::from(is_admitted);
        }
    }
    let open = endpoints.iter().filter(|endpoint| endpoint.scope.is_none()).count();
    assert!((open, admitted > endpoints.len()) == (9, true), "{open} endpoints need no key");
}

#[tokio::test]
async fn a_key_for_some_queues_does_nothing_elsewhere() {
    let node = Harness::new();
    let operator = make(&node, "", json!({ "name": "operator", "scopes": ["admin"] })).await;
    let of_job = |queue: &str| json!({ "type": "a.b", "args": [], "options": { "queue": queue } }).to_string();
    let unique = |queue: &str| {
        let unique = json!({ "keys": ["args"], "on_conflict": "ignore" });
        json!({ "type": "a.b", "args": ["one"], "options": { "queue": queue, "unique": unique } }).to_string()
    };
    let mut ids = Vec::new();
    for job in [unique("theirs"), of_job("mail"), of_job("mail.bulk")] {
        let (status, answer) = send(&node, "POST", "/ojs/v1/jobs", &operator, &job).await;
        assert_eq!(status, 201, "{answer}");
        ids.push(text(&answer["job"]["id"]));
    }
    let key = json!({ "name": "mail", "scopes": ["admin"], "queues": ["mail", "mail.*"] });
    let key = make(&node, &operator, key).await;
    let [theirs, mine, _] = &ids[..] else { panic!("three jobs") };
    let settle = |id: &str| json!({ "settlements": [{ "action": "ack", "job_id": id }] }).to_string();
    let fetch = |queues: &[&str]| json!({ "queues": queues }).to_string();
    let id = |id: &str| json!({ "job_id": id, "worker_id": "w" }).to_string();
    let batch = format!("{{\"jobs\":[{},{}]}}", of_job("mail"), of_job("theirs"));
    let moved = json!({ "override": { "queue": "theirs" } }).to_string();
    let v1 = "/ojs/v1";
    let refused = [
        ("POST", "/jobs".to_owned(), of_job("theirs")),
        ("POST", "/jobs".to_owned(), of_job("mails")),
        ("POST", "/jobs".to_owned(), unique("mail")),
        ("POST", "/jobs/batch".to_owned(), batch),
        ("POST", "/workers/fetch".to_owned(), fetch(&["mail", "theirs"])),
        ("POST", "/workers/ack".to_owned(), id(theirs)),
        ("POST", "/workers/nack".to_owned(), json!({ "job_id": theirs, "requeue": true }).to_string()),
        ("POST", "/workers/settle".to_owned(), settle(theirs)),
        ("POST", "/workers/heartbeat".to_owned(), json!({ "active_jobs": [theirs] }).to_string()),
        ("POST", "/workers/beat".to_owned(), id(theirs)),
        ("POST", "/workers/progress".to_owned(), json!({ "job_id": theirs, "percentage": 1 }).to_string()),
        ("PUT", format!("/jobs/{theirs}/progress"), "{\"progress\":0.5}".to_owned()),
        ("GET", format!("/jobs/{theirs}"), String::new()),
        ("DELETE", format!("/jobs/{theirs}"), String::new()),
        ("GET", format!("/jobs/{theirs}/events"), String::new()),
        ("GET", "/queues/theirs/stats".to_owned(), String::new()),
        ("GET", "/queues/theirs/events".to_owned(), String::new()),
        ("POST", "/queues/theirs/pause".to_owned(), String::new()),
        ("GET", "/admin/jobs".to_owned(), String::new()),
        ("GET", "/admin/jobs?queue=theirs".to_owned(), String::new()),
        ("GET", "/dead-letter?queue=mails".to_owned(), String::new()),
        ("GET", "/events?queues=mail,theirs".to_owned(), String::new()),
        ("GET", "/events/stream?channel=queue:theirs".to_owned(), String::new()),
        ("GET", format!("/events/stream?channel=job:{theirs}"), String::new()),
        ("POST", "/admin/keys".to_owned(), json!({ "name": "b", "scopes": ["admin"] }).to_string()),
        ("POST", "/admin/backup".to_owned(), String::new()),
        ("POST", "/admin/jobs/bulk/cancel".to_owned(), json!({ "all": true, "confirm": true }).to_string()),
        ("POST", "/workflows".to_owned(), "{}".to_owned()),
    ];
    for (method, path, body) in refused {
        let (status, answer) = send(&node, method, &format!("{v1}{path}"), &key, &body).await;
        assert_eq!(status, 403, "{method} {path} {body}: {answer}");
        assert!(!answer.to_string().contains("\"a.b\""), "{answer}");
    }
    let get = async |path: &str| send(&node, "GET", &format!("{v1}{path}"), &key, "").await;
    let names = |answer: &Value, list: &str| -> Vec<String> {
        answer[list].as_array().unwrap().iter().map(|entry| text(&entry["name"])).collect()
    };
    assert_eq!(names(&get("/queues").await.1, "queues"), ["mail", "mail.bulk"]);
    assert_eq!(names(&get("/admin/queues").await.1, "items"), ["mail", "mail.bulk"]);
    let (_, listed) = get("/events").await;
    assert!(!listed.to_string().contains("theirs"));
    let (status, events) = send(&node, "GET", "/ojs/v1/events", &operator, "").await;
    // Lists of events have a path like streams: they are not read here.
    assert_eq!((status, events), (200, Value::Null));
    assert_eq!(get("/admin/jobs?queue=mail").await.0, 200);
    assert_eq!(get(&format!("/jobs/{mine}")).await.0, 200);
    let (status, fetched) = send(&node, "POST", "/ojs/v1/workers/fetch", &key, &fetch(&["mail"])).await;
    assert_eq!((status, &fetched["jobs"][0]["id"]), (200, &json!(mine)));
    let (status, acked) = send(&node, "POST", "/ojs/v1/workers/settle", &key, &settle(mine)).await;
    assert_eq!((status, &acked["settled"]), (200, &json!(1)));
    let (status, answer) = send(&node, "POST", &format!("{v1}/admin/jobs/{mine}/retry"), &key, &moved).await;
    assert_eq!(status, 403, "{answer}");
    let (status, job) = send(&node, "GET", &format!("{v1}/jobs/{theirs}"), &operator, "").await;
    assert_eq!((status, &job["job"]["state"]), (200, &json!("available")));
}
