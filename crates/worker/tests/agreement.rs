//! An engine in this process checks and answers as a server does: the same jobs, the same refusals, the same envelopes.

#![cfg(all(feature = "http", feature = "embedded"))]
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{TestServer, soon};
use redrive_policy::dialect::Dialect;
use redrive_worker::testing::Harness;
use redrive_worker::{Client, ClientError, NewJob, OnConflict, Retry, Unique};
use serde_json::{Value, json};
use std::time::Duration;

fn job() -> NewJob {
    NewJob::new("mail.send", (1, "two")).expect("it can be written")
}

fn unique(args: Value, on_conflict: OnConflict) -> NewJob {
    let policy = Unique::by_type().queue().args(["user"]).period(Duration::from_secs(60)).on_conflict(on_conflict);
    NewJob::new("report.make", args).expect("it can be written").unique(policy)
}

/// Jobs that are enqueued, and jobs that are refused, each with a name for messages.
fn jobs() -> Vec<(&'static str, NewJob)> {
    let args = |args: Value| NewJob::new("mail.send", args).expect("it can be written");
    let retry = |dialect, policy| Retry::written(dialect, policy).expect("a valid policy");
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    vec![
        ("plain", job()),
        ("type in upper case", NewJob::new("Mail", ()).expect("it can be written")),
        ("empty type", NewJob::new("", ()).expect("it can be written")),
        ("type that is too long", NewJob::new("a".repeat(256), ()).expect("it can be written")),
        ("queue", job().queue("reports.eu-1")),
        ("queue with a blank", job().queue("my queue")),
        ("queue that is too long", job().queue("q".repeat(256))),
        ("id", job().id("01890f5e-6f00-7000-8000-000000000001")),
        ("id of another version", job().id("01890f5e-6f00-4000-8000-000000000001")),
        ("id in upper case", job().id("01890F5E-6F00-7000-8000-000000000002")),
        ("priority", job().priority(-100)),
        ("priority that is too high", job().priority(101)),
        ("delay", job().delay(Duration::from_millis(90_500))),
        ("no delay", job().delay(Duration::ZERO)),
        ("expiry", job().expires_after(Duration::from_secs(60))),
        ("expiry that is over", job().expires_after(Duration::ZERO)),
        ("timeout", job().timeout(Duration::from_millis(1_500))),
        ("no timeout", job().timeout(Duration::ZERO)),
        ("lease", job().lease(Duration::from_secs(5))),
        ("lease that is too short", job().lease(Duration::from_millis(99))),
        ("key", job().idempotency_key("once")),
        ("empty key", job().idempotency_key("")),
        ("key that is too long", job().idempotency_key("k".repeat(256))),
        ("metadata and tags", job().meta("trace", "1").tag("a").tag("b")),
        ("metadata that is too deep", job().meta("deep", deep.clone())),
        ("arguments that are too deep", args(deep)),
        ("arguments that are too long", args(json!(["x".repeat(512 << 10)]))),
        ("metadata that is too long", job().meta("text", "x".repeat(1 << 20))),
        ("policy of OJS", job().retry(retry(Dialect::Ojs, json!({ "max_attempts": 7 })))),
        ("policy of another dialect", job().retry(retry(Dialect::Exosphere, json!({ "max_retries": 2 })))),
        ("policy of the worker", job().retry(Retry::by_worker(Some(4)).expect("a limit"))),
        ("unique", unique(json!({ "user": 1 }), OnConflict::Reject).id("01890f5e-6f00-7000-8000-000000000003")),
        ("duplicate", unique(json!({ "user": 1, "text": "b" }), OnConflict::Reject)),
        ("duplicate that is ignored", unique(json!({ "user": 1 }), OnConflict::Ignore)),
        ("unique by a member that is missing", unique(json!({ "text": "a" }), OnConflict::Reject)),
        ("several problems", job().queue("-").priority(200).lease(Duration::from_millis(1))),
    ]
}

/// What differs between servers, and over time.
const OWN: [&str; 6] = ["id", "created_at", "enqueued_at", "scheduled_at", "expires_at", "redrive"];

/// The answer: the envelope without what is specific to the server, or the refusal.
async fn answer(client: &Client, job: NewJob) -> Result<Value, (u16, String, String)> {
    match soon(client.enqueue(job)).await {
        Ok(enqueued) => {
            let mut envelope = enqueued.envelope().clone();
            let times: Vec<(&str, usize)> =
                OWN.iter().filter_map(|key| Some((*key, envelope[*key].as_str()?.len()))).collect();
            for key in OWN {
                envelope.as_object_mut().expect("an object").remove(key);
            }
            envelope["own"] = json!(times);
            Ok(envelope)
        }
        Err(ClientError::Refused(refused)) => Err((refused.status, refused.code, refused.message)),
        Err(error) => panic!("neither enqueued nor refused: {error}"),
    }
}

/// A time in a message is another one on another clock.
fn without_times(answer: Result<Value, (u16, String, String)>) -> Result<Value, (u16, String, String)> {
    answer.map_err(|(status, code, message)| {
        let words = message.split(' ').filter(|word| !(word.contains('T') && word.contains("Z")));
        let message = words.collect::<Vec<_>>().join(" ");
        (status, code, message)
    })
}

#[tokio::test]
async fn an_engine_in_process_checks_and_answers_as_a_server_does() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    let client = server.client();
    let mut refused = 0;
    for (name, job) in jobs() {
        let over_http = without_times(answer(&client, job.clone()).await);
        let in_process = without_times(answer(harness.client(), job).await);
        match (&over_http, &in_process) {
            // A request that is too long is not read, so the server cannot say which job it was.
            (Err((413, http, _)), Err((413, local, _))) => assert_eq!(http, local, "{name}"),
            // The client adds the hint that the server sends beside the message.
            (Err(http), Err(local)) => {
                assert_eq!((http.0, &http.1), (local.0, &local.1), "{name}");
                assert!(http.2.starts_with(&local.2), "{name}: {:?} and {:?}", http.2, local.2);
            }
            _ => assert_eq!(over_http, in_process, "{name}"),
        }
        refused += usize::from(over_http.is_err());
    }
    assert_eq!(refused, 19, "as many of them are refused as are meant to be");
    server.close().await;
}

#[tokio::test]
async fn a_reused_key_and_a_batch_with_problems_are_refused_alike() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    let over_http = server.client();
    for client in [&over_http, harness.client()] {
        let (first, new) = soon(client.enqueue_or_find(job().idempotency_key("k"))).await.expect("enqueued");
        assert!(new);
        let (again, new) = soon(client.enqueue_or_find(job().idempotency_key("k"))).await.expect("found");
        assert!(!new && again.id() == first.id());
        let other = NewJob::new("mail.send", (3,)).expect("it can be written").idempotency_key("k");
        let Err(ClientError::Refused(refused)) = soon(client.enqueue(other)).await else { panic!("another job") };
        assert_eq!((refused.status, &*refused.code), (409, "conflict"));
        assert!(refused.message.contains(first.id()) && refused.message.contains("another key"), "{}", refused.message);

        let batch = vec![job(), job().queue("Q"), job().priority(101)];
        let Err(ClientError::Refused(refused)) = soon(client.enqueue_all(batch)).await else { panic!("two problems") };
        assert_eq!((refused.status, &*refused.code), (400, "invalid_request"));
        for path in ["/jobs/1/options/queue: found \"Q\"", "/jobs/2/options/priority: found 101"] {
            assert!(refused.message.contains(path), "{path} in {}", refused.message);
        }
    }
    server.close().await;
}

#[tokio::test]
async fn a_job_is_looked_up_alike() {
    let (server, harness) = (TestServer::open().await, Harness::new().expect("an engine"));
    let retry = || Retry::written(Dialect::Azolla, json!({ "stop": { "max_attempts": 7 } })).expect("a valid policy");
    let mut explained = Vec::new();
    for client in [&server.client(), harness.client()] {
        let enqueued = soon(client.enqueue(job().retry(retry()))).await.expect("enqueued");
        let envelope = soon(client.job(enqueued.id())).await.expect("it is there").envelope().clone();
        let mut keys: Vec<String> = envelope.as_object().expect("an object").keys().cloned().collect();
        keys.sort_unstable();
        explained.push((keys, envelope["redrive"].clone(), envelope["retry"].clone(), envelope["args"].clone()));
    }
    assert_eq!(explained[0], explained[1]);
    assert_eq!(explained[0].1["policy_from"], json!({ "layer": "job", "dialect": "azolla", "capped_by": [] }));
    server.close().await;
}
