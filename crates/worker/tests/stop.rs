//! Stopping gracefully.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use common::{RunningWorker, TestServer};
use redrive_worker::{Context, Failure, NewJob, Worker};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

fn job(kind: &str) -> NewJob {
    NewJob::new(kind, ()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_handler_may_finish() {
    let server = TestServer::open().await;
    let client = server.client();
    let go_on = Arc::new(Notify::new());
    let worker =
        Worker::with_state(&client, Arc::clone(&go_on)).handle("long", async |_: (), context: Context<Arc<Notify>>| {
            context.state().notified().await;
            Ok::<_, Failure>(context.is_stopping())
        });
    let mut running = RunningWorker::start(worker);
    let id = client.enqueue(job("long")).await.unwrap().id().to_owned();
    running.wait_for_event("started long").await;
    running.ask_to_stop();
    running.wait_for_event("stopping").await;
    let second = client.enqueue(job("long")).await.unwrap();
    go_on.notify_one();
    assert_eq!(running.ended().await.unwrap().done, 1);
    let second = client.job(second.id()).await.unwrap();
    assert_eq!((second.state(), second.attempt()), ("available", 0), "it was not started, or it was released");
    assert!(client.job(&id).await.unwrap().result::<bool>().unwrap(), "it saw that the worker stops");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_does_not_finish_in_time_is_released_and_spends_no_attempt() {
    let server = TestServer::open().await;
    let client = server.client();
    let endless = |(): ()| std::future::pending::<Result<(), Failure>>();
    let worker = Worker::builder(&client).handle("endless", endless);
    let mut running = RunningWorker::start(worker.stop_within(Duration::ZERO).cancel_grace(Duration::from_millis(1)));
    let id = client.enqueue(job("endless")).await.unwrap().id().to_owned();
    running.wait_for_event("started endless").await;
    running.ask_to_stop();
    running.wait_for_event("cancelled endless Stopping").await;
    running.wait_for_event("settled endless available").await;
    assert_eq!(running.ended().await.unwrap().released, 1);
    let job = client.job(&id).await.unwrap();
    assert_eq!((job.state(), job.attempt(), job.errors().len()), ("available", 0, 0));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_wait_in_the_worker_are_released_at_once() {
    let server = TestServer::open().await;
    let client = server.client();
    client.enqueue_all((0..4).map(|_| job("one")).collect()).await.unwrap();
    let go_on = Arc::new(Notify::new());
    let worker = Worker::with_state(&client, Arc::clone(&go_on))
        .handle("one", async |_: (), context: Context<Arc<Notify>>| {
            context.state().notified().await;
            Ok::<_, Failure>(())
        })
        .concurrency(4)
        .concurrency_of("one", 1);
    let mut running = RunningWorker::start(worker);
    running.wait_for_event("started one").await;
    running.ask_to_stop();
    for _ in 0..3 {
        running.wait_for_event("settled one available").await;
    }
    go_on.notify_one();
    let summary = running.ended().await.unwrap();
    assert_eq!((summary.done, summary.released), (1, 3));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_ends_running_handlers_and_releases_their_jobs() {
    let server = TestServer::open().await;
    let client = server.client();
    let started = Arc::new(Notify::new());
    let worker = Worker::with_state(&client, Arc::clone(&started))
        .handle("endless", async |_: (), context: Context<Arc<Notify>>| {
            context.state().notify_one();
            std::future::pending::<Result<(), Failure>>().await
        })
        // No fetch is under way that could get the job once more.
        .concurrency(1)
        .stop_within(Duration::from_secs(3_600))
        .cancel_grace(Duration::from_millis(1));
    let id = client.enqueue(job("endless")).await.unwrap().id().to_owned();
    let abort = std::future::ready(());
    let ended = worker.build().unwrap().run_until_aborted(started.notified(), abort);
    let summary = common::soon(ended).await.unwrap();
    assert_eq!((summary.released, summary.lost), (1, 0));
    let job = client.job(&id).await.unwrap();
    assert_eq!((job.state(), job.attempt(), job.errors().len()), ("available", 0, 0));
    server.close().await;
}
