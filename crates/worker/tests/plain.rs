//! A server of Open Job Spec without extensions: Redrive's own, with its extensions removed.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use common::{RunningWorker, TIMEOUT, TestServer};
use redrive_policy::dialect::Dialect;
use redrive_server::{Server, ServerSettings};
use redrive_worker::{Client, Failure, NewJob, Outcome, Retry, Worker};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpListener;

/// What only Redrive understands. A request with it fails the test by failing the worker.
const OURS: [&str; 5] = ["wait_ms", "lease_token", "snooze_ms", "retry_after", "settlements"];

async fn plainly(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = to_bytes(body, 1 << 20).await.unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if let Some(found) = OURS.iter().find(|key| document.get(key).is_some()) {
        return (axum::http::StatusCode::IM_A_TEAPOT, format!("what is {found}?")).into_response();
    }
    let manifest = parts.uri.path() == "/ojs/manifest";
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    if !manifest {
        return response;
    }
    let bytes = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    let mut told: Value = serde_json::from_slice(&bytes).unwrap();
    told["extensions"] = json!([]);
    told.to_string().into_response()
}

/// The engine of the test server behind an API without our extensions.
async fn plain_server(server: &TestServer) -> (String, tokio::task::JoinHandle<()>) {
    let server = Server::new(server.engine.clone(), ServerSettings::new("memory"));
    let router: Router = server.router().layer(middleware::from_fn(plainly));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        // Not dropped while it serves.
        let _server = server;
        axum::serve(listener, router).await.unwrap();
    });
    (url, serving)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_outcome_works_with_what_the_specification_has() {
    let server = TestServer::open().await;
    let (url, serving) = plain_server(&server).await;
    let client = Client::http(&url).unwrap();
    let eager = Retry::written(Dialect::Ojs, json!({ "max_attempts": 3, "initial_interval": "PT0.001S" })).unwrap();
    let handler = |(what, _): (String, u32)| async move {
        match what.as_str() {
            "done" => Ok(Outcome::done("fine")),
            "fail" => Err(Failure::other("no")),
            "dead" => Err(Failure::other("never").unrecoverable()),
            "later" => Err(Failure::other("later").retry_after(Duration::from_secs(3_600))),
            _ => Ok(Outcome::snooze(Duration::from_millis(1))),
        }
    };
    let mut running =
        RunningWorker::start(Worker::builder(&client).handle("do", handler).lease(Duration::from_millis(500)));
    let add = async |what: &str| {
        let job = NewJob::new("do", (what, 1)).unwrap().retry(eager.clone());
        client.enqueue(job).await.unwrap().id().to_owned()
    };
    for (what, state, attempt) in
        [("done", "completed", 1), ("fail", "discarded", 3), ("dead", "discarded", 1), ("later", "discarded", 3)]
    {
        let id = add(what).await;
        let job = client.wait(&id, TIMEOUT).await.unwrap();
        assert_eq!((job.state(), job.attempt()), (state, attempt), "{what}");
    }
    assert_eq!(client.dead_letters().count().await.unwrap(), 1, "DEAD_LETTER is in the specification");
    let snoozed = add("snooze").await;
    running.wait_for_event("released do").await;
    running.wait_for_event("settled do available").await;
    client.cancel(&snoozed).await.unwrap();
    running.stop().await;
    serving.abort();
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taskharbor_disabling_retries_on_a_server_without_the_extension() {
    let server = TestServer::open().await;
    let (url, serving) = plain_server(&server).await;
    let client = Client::http(&url).unwrap();
    let fails = |(): ()| async { Err::<(), _>(Failure::other("no")) };
    let two = Retry::written(Dialect::TaskHarbor, json!({ "policy": { "max_attempts": 2 } })).unwrap();
    for (retry, attempts) in [(Retry::none().unwrap(), 1), (two, 2)] {
        let running = RunningWorker::start(Worker::builder(&client).handle("fails", fails).retry(&retry));
        let eager = json!({ "max_attempts": 5, "initial_interval": "PT0.001S" });
        let job = NewJob::new("fails", ()).unwrap().retry(Retry::written(Dialect::Ojs, eager).unwrap());
        let id = client.enqueue(job).await.unwrap().id().to_owned();
        let job = client.wait(&id, TIMEOUT).await.unwrap();
        assert_eq!((job.state(), job.attempt()), ("discarded", attempts));
        running.stop().await;
    }
    serving.abort();
    server.close().await;
}
