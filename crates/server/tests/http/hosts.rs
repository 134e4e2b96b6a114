//! A page of another origin whose name leads to this machine reads nothing.

use crate::common::{Harness, Parts};
use axum::body::Body;
use axum::http::Request;
use redrive_server::{ApiKeys, Hosts};

const KEY: &str = "0123456789abcdef0123456789abcdef";

async fn status(harness: &Harness, uri: &str, hosts: &[&str], key: bool) -> u16 {
    let mut request = Request::builder().uri(uri);
    for host in hosts {
        request = request.header("host", *host);
    }
    if key {
        request = request.header("authorization", format!("Bearer {KEY}"));
    }
    harness.send(request.body(Body::empty()).unwrap()).await.status.as_u16()
}

#[tokio::test]
async fn a_name_that_was_rebound_to_loopback_is_refused() {
    let harness = Harness::new();
    for (hosts, expected) in [
        (&["localhost:8080"][..], 200),
        (&["127.0.0.1:8080"], 200),
        (&["[::1]:8080"], 200),
        (&[], 200),
        (&["evil.example"], 421),
        (&["evil.example:8080"], 421),
        (&["localhost.evil.example"], 421),
        (&["localhost", "evil.example"], 421),
        (&[""], 421),
    ] {
        for path in ["/ojs/v1/queues", "/ojs/v1/health", "/ojs/manifest"] {
            assert_eq!(status(&harness, path, hosts, false).await, expected, "{hosts:?} {path}");
        }
    }
    assert_eq!(status(&harness, "http://evil.example/ojs/v1/queues", &["localhost"], false).await, 421);
    assert_eq!(status(&harness, "http://localhost:1/ojs/v1/queues", &["localhost"], false).await, 200);
    let request = Request::builder().uri("/ojs/v1/queues").header("host", "evil.example").body(Body::empty()).unwrap();
    let error = harness.send(request).await.expect(421)["error"].clone();
    assert_eq!(error["code"], "misdirected");
    assert!(error["message"].as_str().unwrap().contains("\"evil.example\""), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("--set hosts="), "{error}");
}

#[tokio::test]
async fn names_of_the_operator_are_known_and_with_keys_they_are_asked_for_only_then() {
    let hosts = || Hosts::read("jobs.internal", "127.0.0.1:8080").unwrap();
    let harness = Harness::with(Parts { hosts: hosts(), ..Parts::default() });
    assert_eq!(status(&harness, "/ojs/v1/queues", &["jobs.internal"], false).await, 200);
    assert_eq!(status(&harness, "/ojs/v1/queues", &["evil.example"], false).await, 421);
    let keys = || ApiKeys::read(KEY).unwrap();
    let harness = Harness::with(Parts { keys: keys(), ..Parts::default() });
    assert_eq!(status(&harness, "/ojs/v1/queues", &["anything.example"], true).await, 200);
    let harness = Harness::with(Parts { keys: keys(), hosts: hosts(), ..Parts::default() });
    assert_eq!(status(&harness, "/ojs/v1/queues", &["anything.example"], true).await, 421);
    assert_eq!(status(&harness, "/ojs/v1/queues", &["jobs.internal"], true).await, 200);
}
