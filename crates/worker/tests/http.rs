//! The worker and the client against a real server over HTTP.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use common::{TestServer, soon};
use redrive_worker::{Client, Context, Failure, NewJob, Worker};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_run_and_its_result_is_stored() {
    let server = TestServer::open().await;
    let client = server.client();
    let added = |(a, b): (u32, u32)| async move { Ok::<_, Failure>(a + b) };
    let (told, mut settled) = mpsc::unbounded_channel();
    let worker = Worker::builder(&client).handle("sum", added).on_event(move |event| {
        if let redrive_worker::Event::Settled { job, state, .. } = event {
            let _ = told.send((job.id().to_owned(), (*state).to_owned()));
        }
    });
    let stop = Arc::new(Notify::new());
    let stopped = Arc::clone(&stop);
    let running = tokio::spawn(worker.build().unwrap().run_until(async move { stopped.notified().await }));
    let job = client.enqueue(NewJob::new("sum", (2, 3)).unwrap()).await.unwrap();
    assert_eq!(soon(settled.recv()).await, Some((job.id().to_owned(), "completed".to_owned())));
    let job = client.job(job.id()).await.unwrap();
    assert_eq!((job.state(), job.attempt()), ("completed", 1));
    assert_eq!(job.result::<u32>().unwrap(), 5);
    stop.notify_one();
    let summary = soon(running).await.unwrap().unwrap();
    assert_eq!((summary.done, summary.failed, summary.lost), (1, 0, 0));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_handler_takes_every_type_and_sees_the_envelope() {
    let server = TestServer::open().await;
    let client: Client = server.client();
    let (told, mut seen) = mpsc::unbounded_channel();
    let worker = Worker::builder(&client).handle_all(move |context: Context| {
        let told = told.clone();
        async move {
            let envelope: serde_json::Value = serde_json::from_str(&context.job().envelope_json())?;
            let _ = told.send((context.job().kind().to_owned(), context.job().attempt(), envelope));
            Ok::<_, Failure>(())
        }
    });
    let running = tokio::spawn(worker.build().unwrap().run());
    client.enqueue(NewJob::new("any.thing", json!({ "a": 1 })).unwrap().meta("trace", "t1")).await.unwrap();
    let (kind, attempt, envelope) = soon(seen.recv()).await.unwrap();
    assert_eq!((kind.as_str(), attempt), ("any.thing", 1));
    assert_eq!((&envelope["args"], &envelope["meta"]["trace"]), (&json!([{ "a": 1 }]), &json!("t1")));
    running.abort();
    server.close().await;
}
