//! Faults between a worker and a server: nothing is lost, and no job runs under two leases.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use common::proxy::Proxy;
use common::{RunningWorker, TIMEOUT, TestServer, soon};
use redrive_policy::dialect::Dialect;
use redrive_store::Memory;
use redrive_worker::{Client, Context, Failure, NewJob, Retry, Worker};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const LEASE: Duration = Duration::from_millis(300);

/// This many tries, almost without a wait.
fn tries(most: u32) -> Retry {
    Retry::written(Dialect::Ojs, json!({ "max_attempts": most, "initial_interval": "PT0.001S" })).unwrap()
}

fn job(kind: &str) -> NewJob {
    NewJob::new(kind, ()).unwrap().retry(tries(5))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disconnection_longer_than_a_lease_ends_the_handler_before_the_next_run() {
    let server = TestServer::open().await;
    let proxy = Proxy::to(server.address).await;
    let far = Client::http(&proxy.url()).unwrap();
    // The first run ignores its cancellation, and returns a result in the end.
    async fn stubborn(_: (), context: Context) -> Result<&'static str, Failure> {
        if context.job().attempt() > 1 {
            return Ok("second");
        }
        assert!(context.lease_left() > Duration::ZERO);
        context.cancellation().await;
        assert_eq!(context.lease_left(), Duration::ZERO);
        Ok("late")
    }
    let mut running = RunningWorker::start(Worker::builder(&far).handle("stubborn", stubborn).lease(LEASE));
    let client = server.client();
    let id = client.enqueue(job("stubborn")).await.unwrap().id().to_owned();
    running.wait_for_event("started stubborn 1").await;
    proxy.cut();
    running.wait_for_event("cancelled stubborn LeaseLost").await;
    proxy.restore();
    running.wait_for_event("started stubborn 2").await;
    running.wait_for_event("settled stubborn completed").await;
    let job = client.job(&id).await.unwrap();
    assert_eq!((job.attempt(), job.result::<String>().unwrap().as_str()), (2, "second"));
    assert_eq!((job.errors().len(), &job.errors()[0]["type"]), (1, &json!("visibility_timeout")));
    let summary = running.stop().await;
    assert_eq!((summary.done, summary.lost), (1, 1));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_was_sent_when_the_connection_broke_is_delivered_later() {
    let server = TestServer::open().await;
    let proxy = Arc::new(Proxy::to(server.address).await);
    let far = Client::http(&proxy.url()).unwrap();
    let cable = Arc::clone(&proxy);
    let worker = Worker::builder(&far).handle("cut", move |(): ()| {
        cable.cut();
        async { Ok::<_, Failure>("done") }
    });
    let mut running = RunningWorker::start(worker);
    let id = server.client().enqueue(job("cut")).await.unwrap().id().to_owned();
    running.wait_for_event("done cut").await;
    running.wait_for_event("unreachable").await;
    proxy.restore();
    running.wait_for_event("settled cut completed").await;
    let job = server.client().job(&id).await.unwrap();
    assert_eq!((job.attempt(), job.result::<String>().unwrap().as_str()), (1, "done"));
    running.stop().await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_wait_for_a_server_that_dies_and_comes_back() {
    const JOBS: u32 = 300;
    let store = Arc::new(Memory::new());
    let server = TestServer::on(Arc::clone(&store) as _, None).await;
    let (address, client) = (server.address, server.client());
    let runs = Arc::new(AtomicU32::new(0));
    let (reached, half_way) = tokio::sync::oneshot::channel();
    let (counted, reached) = (Arc::clone(&runs), Mutex::new(Some(reached)));
    let (gone, noticed) = tokio::sync::watch::channel(false);
    let worker = Worker::builder(&client).lease(Duration::from_secs(2)).handle("count", move |(): ()| {
        let late = counted.fetch_add(1, Ordering::Relaxed) >= JOBS / 2;
        let reached = if late { reached.lock().unwrap().take() } else { None };
        let _ = reached.map(|reached| reached.send(()));
        let mut noticed = noticed.clone();
        async move {
            // Half of the jobs are not done yet when the server stops.
            if late {
                let _ = noticed.wait_for(|gone| *gone).await;
            }
            Ok::<_, Failure>(())
        }
    });
    let jobs = client.enqueue_all((0..JOBS).map(|_| job("count")).collect()).await.unwrap();
    let mut running = RunningWorker::start(worker);
    soon(half_way).await.unwrap();
    server.close().await;
    running.wait_for_event("unreachable").await;
    gone.send_replace(true);
    let server = TestServer::on(store, Some(address)).await;
    running.wait_for_event("back").await;
    for job in &jobs {
        let job = client.wait(job.id(), TIMEOUT).await.unwrap();
        assert_eq!(job.state(), "completed");
        assert!(job.attempt() <= 5, "{}", job.attempt());
    }
    running.stop().await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_job_of_a_worker_that_vanishes_runs_again() {
    const JOBS: u32 = 200;
    let server = TestServer::open().await;
    let client = server.client();
    let jobs = client.enqueue_all((0..JOBS).map(|_| job("vanish")).collect()).await.unwrap();
    let (some, mut done) = tokio::sync::mpsc::unbounded_channel();
    let runs = AtomicU32::new(0);
    let worker = Worker::builder(&client).lease(LEASE).handle("vanish", move |(): ()| {
        let (some, run) = (some.clone(), runs.fetch_add(1, Ordering::Relaxed));
        async move {
            let _ = some.send(());
            // Some reports are being sent when the worker vanishes, others never are.
            if run.is_multiple_of(2) { std::future::pending().await } else { Ok::<_, Failure>(()) }
        }
    });
    let running = tokio::spawn(worker.build().unwrap().run());
    for _ in 0..8 {
        soon(done.recv()).await.unwrap();
    }
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let survivor = |(): ()| async { Ok::<_, Failure>(()) };
    let running = RunningWorker::start(Worker::builder(&client).handle("vanish", survivor));
    for job in &jobs {
        let job = client.wait(job.id(), TIMEOUT).await.unwrap();
        assert_eq!(job.state(), "completed");
        assert!(job.attempt() <= 2, "one that vanished, and one that did not: {}", job.attempt());
    }
    running.stop().await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handler_that_blocks_a_thread_keeps_its_lease() {
    let server = TestServer::open().await;
    let client = server.client();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = Arc::new(Mutex::new(blocked));
    let worker = Worker::builder(&client).lease(LEASE).handle("block", move |(): ()| {
        let blocked = Arc::clone(&blocked);
        async move {
            blocked.lock().unwrap().recv_timeout(TIMEOUT)?;
            Ok::<_, Failure>(())
        }
    });
    let mut running = RunningWorker::start(worker);
    let id = client.enqueue(job("block")).await.unwrap().id().to_owned();
    running.wait_for_event("started block").await;
    let expires = async || client.job(&id).await.unwrap().envelope()["lease_expires_at"].clone();
    let mut seen = vec![expires().await];
    let extended = async {
        while seen.len() < 6 {
            let now = expires().await;
            if seen.last() != Some(&now) {
                seen.push(now);
            }
            tokio::task::yield_now().await;
        }
    };
    soon(extended).await;
    release.send(()).unwrap();
    running.wait_for_event("settled block completed").await;
    let job = client.job(&id).await.unwrap();
    assert_eq!((job.attempt(), job.errors().len()), (1, 0), "five heartbeats are more than one lease");
    running.stop().await;
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_another_kind_ends_the_worker() {
    let server = TestServer::open().await;
    let client = Client::http(&format!("{}/nowhere", server.url())).unwrap();
    let handler = |(): ()| async { Ok::<_, Failure>(()) };
    let running = RunningWorker::start(Worker::builder(&client).handle("x", handler));
    let error = running.ended().await.unwrap_err();
    assert!(error.to_string().contains("there is no path /nowhere"), "{error}");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_is_too_long_is_reported_and_affects_no_other() {
    let server = TestServer::open().await;
    let client = server.client();
    let text = |length: usize| async move { Ok::<_, Failure>("x".repeat(length)) };
    let long = 3 << 20;
    let jobs = [10, long, 20, 30].map(|length| NewJob::new("text", length).unwrap().retry(tries(5)));
    let jobs = client.enqueue_all(jobs.into()).await.unwrap();
    let running = RunningWorker::start(Worker::builder(&client).handle("text", text));
    for (job, length) in jobs.iter().zip([10, long, 20, 30]) {
        let job = client.wait(job.id(), TIMEOUT).await.unwrap();
        if length == long {
            assert_eq!((job.state(), job.attempt()), ("discarded", 1), "it would be as long again");
            assert_eq!(job.errors()[0]["type"], "report_refused");
        } else {
            assert_eq!(job.result::<String>().unwrap().len(), length);
        }
    }
    let summary = running.stop().await;
    assert_eq!((summary.done, summary.failed), (3, 1));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_stops_when_the_server_says_so() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let server = TestServer::open().await;
    // The server sends the directive for a job that asks for it, which is how the protocol is tested.
    let body = json!({ "type": "end", "args": [], "options": { "metadata": { "test_directive": "terminate" } } });
    let (address, body) = (server.address, body.to_string());
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let head = format!("POST /ojs/v1/jobs HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let request = format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    let client = server.client();
    let patient = |(): ()| std::future::pending::<Result<(), Failure>>();
    let worker = Worker::builder(&client).handle("end", patient).lease(LEASE);
    let running = RunningWorker::start(worker.stop_within(Duration::ZERO).cancel_grace(Duration::from_millis(1)));
    assert_eq!(running.ended().await.unwrap().released, 1);
    server.close().await;
}
