//! State, middleware, limits and progress.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(feature = "embedded")]

mod common;

use common::{Folder, RunningWorker, TestServer, soon};
use redrive_store::embedded::Options;
use redrive_worker::testing::Harness;
use redrive_worker::{Client, Context, Failure, NewJob, Next, Outcome, Retry, Worker};
use serde_json::json;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Barrier, Notify};

#[derive(Default)]
struct Journal {
    lines: Mutex<Vec<String>>,
}

impl Journal {
    fn note(&self, line: &str) {
        self.lines.lock().unwrap().push(line.to_owned());
    }
}

async fn outer(context: Context<Journal>, next: Next<Journal>) -> Outcome {
    context.state().note("outer in");
    let outcome = next.run(context.clone()).await;
    context.state().note("outer out");
    outcome
}

async fn inner(context: Context<Journal>, next: Next<Journal>) -> Outcome {
    if context.job().kind() == "refused" {
        return Outcome::Failed(Failure::new("maintenance", "not today").discard());
    }
    context.state().note("inner in");
    next.run(context).await
}

#[tokio::test]
async fn middleware_is_called_around_every_run_and_may_refuse_it() {
    let harness = Harness::new().unwrap();
    let worker = Worker::with_state(harness.client(), Journal::default())
        .middleware(outer)
        .middleware(inner)
        .handle_all(async |context: Context<Journal>| {
            context.state().note(context.job().kind());
            Ok::<_, Failure>(())
        })
        .handle("state", async |_: (), context: Context<Journal>| {
            let lines: Vec<String> = context.state().lines.lock().unwrap().clone();
            Ok::<_, Failure>(lines)
        })
        .build()
        .unwrap();
    let add = async |kind| harness.client().enqueue(NewJob::new(kind, ()).unwrap()).await.unwrap().id().to_owned();
    for kind in ["welcome", "refused"] {
        add(kind).await;
        harness.drain(&worker).await.unwrap();
    }
    let id = add("state").await;
    harness.drain(&worker).await.unwrap();
    let lines: Vec<String> = harness.client().job(&id).await.unwrap().result().unwrap();
    let expected = ["outer in", "inner in", "welcome", "outer out", "outer in", "outer out", "outer in", "inner in"];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn failing_twice_and_then_succeeding_takes_no_time_at_all() {
    let harness = Harness::new().unwrap();
    let worker = Worker::with_state(harness.client(), AtomicU32::new(0))
        .handle("flaky", async |_: (), context: Context<AtomicU32>| {
            if context.state().fetch_add(1, Ordering::Relaxed) < 2 {
                return Err(Failure::new("external.timeout", "not yet"));
            }
            Ok(context.job().attempt())
        })
        .build()
        .unwrap();
    let policy = redrive_policy::Policy::builder().fixed(Duration::from_secs(3_600)).max_attempts(3).build().unwrap();
    let job = NewJob::new("flaky", ()).unwrap().retry(Retry::policy(&policy).unwrap());
    let id = harness.client().enqueue(job).await.unwrap().id().to_owned();
    let started = Instant::now();
    let drained = harness.drain(&worker).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(1), "two hours took {:?}", started.elapsed());
    assert_eq!(drained.waited, Duration::from_secs(7_200));
    let told: Vec<_> =
        drained.runs.iter().map(|run| (run.attempt, run.state.as_str(), run.failure.as_deref())).collect();
    let timeout = Some("external.timeout");
    assert_eq!(told, [(1, "retryable", timeout), (2, "retryable", timeout), (3, "completed", None)]);
    assert_eq!(harness.client().job(&id).await.unwrap().result::<u32>().unwrap(), 3);
}

#[tokio::test]
async fn a_drain_waits_for_delays_and_gives_up_on_jobs_without_end() {
    let harness = Harness::new().unwrap();
    let snoozes = |(): ()| async { Ok::<_, Failure>(Outcome::snooze(Duration::from_secs(1))) };
    let done = |(): ()| async { Ok::<_, Failure>(()) };
    let worker = Worker::builder(harness.client()).handle("snooze", snoozes).handle("done", done).build().unwrap();
    let later = NewJob::new("done", ()).unwrap().delay(Duration::from_secs(60));
    harness.client().enqueue(later).await.unwrap();
    harness.advance(Duration::from_secs(20)).await.unwrap();
    assert_eq!(harness.drain(&worker).await.unwrap().waited, Duration::from_secs(40));
    // The engine itself bounds how often in a row a job may be released.
    harness.client().enqueue(NewJob::new("snooze", ()).unwrap()).await.unwrap();
    let drained = harness.drain(&worker).await.unwrap();
    assert!(drained.runs.len() >= 100, "{}", drained.runs.len());
}

#[tokio::test]
async fn a_drain_names_the_handler_that_is_missing_and_the_job_is_still_there() {
    let harness = Harness::new().unwrap();
    let worker = Worker::builder(harness.client()).handle("known", |(): ()| async { Ok::<_, Failure>(()) });
    let worker = worker.build().unwrap();
    let id = harness.client().enqueue(NewJob::new("unknown", ()).unwrap()).await.unwrap().id().to_owned();
    let error = harness.drain(&worker).await.unwrap_err().to_string();
    assert!(error.contains("no handler for the type \"unknown\""), "{error}");
    assert_eq!(harness.client().job(&id).await.unwrap().attempt(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrency_is_limited_in_all_and_by_type() {
    let server = TestServer::open().await;
    let client = server.client();
    struct Gauge {
        together: Barrier,
        running: AtomicUsize,
        most: AtomicUsize,
    }
    let gauge = Gauge { together: Barrier::new(4), running: AtomicUsize::new(0), most: AtomicUsize::new(0) };
    let gauge = Arc::new(gauge);
    let worker = Worker::with_state(&client, Arc::clone(&gauge))
        .concurrency(6)
        .concurrency_of("two", 2)
        .handle("four", async |_: (), context: Context<Arc<Gauge>>| {
            // None passes before four are here.
            context.state().together.wait().await;
            Ok::<_, Failure>(())
        })
        .handle("two", async |_: (), context: Context<Arc<Gauge>>| {
            let gauge = context.state();
            let running = gauge.running.fetch_add(1, Ordering::SeqCst) + 1;
            gauge.most.fetch_max(running, Ordering::SeqCst);
            tokio::task::yield_now().await;
            gauge.running.fetch_sub(1, Ordering::SeqCst);
            Ok::<_, Failure>(())
        });
    let twos = (0..40).map(|_| NewJob::new("two", ()).unwrap());
    let fours = (0..8).map(|_| NewJob::new("four", ()).unwrap());
    let jobs = client.enqueue_all(twos.chain(fours).collect()).await.unwrap();
    let running = RunningWorker::start(worker);
    for job in &jobs {
        client.wait(job.id(), common::TIMEOUT).await.unwrap();
    }
    assert_eq!(running.stop().await.done, 48);
    assert!((1..=2).contains(&gauge.most.load(Ordering::SeqCst)));
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefetched_jobs_are_released_when_every_handler_is_stuck() {
    let server = TestServer::open().await;
    let client = server.client();
    let go_on = Arc::new(Notify::new());
    let worker = || {
        Worker::with_state(&client, Arc::clone(&go_on))
            .concurrency(1)
            .lease(Duration::from_millis(300))
            .handle("quick", |(): ()| async { Ok::<_, Failure>(()) })
            .handle("slow", async |_: (), context: Context<Arc<Notify>>| {
                context.state().notified().await;
                Ok::<_, Failure>(())
            })
    };
    let quick = |count: usize| (0..count).map(|_| NewJob::new("quick", ()).unwrap());
    let ended = async |jobs: &[redrive_worker::JobInfo]| {
        for job in jobs {
            assert_eq!(client.wait(job.id(), common::TIMEOUT).await.unwrap().attempt(), 1);
        }
    };
    let mut first = RunningWorker::start(worker());
    // So that it thinks that all handlers are quick, and takes jobs ahead.
    ended(&client.enqueue_all(quick(50).collect()).await.unwrap()).await;
    let slow = NewJob::new("slow", ()).unwrap().priority(1);
    let jobs = client.enqueue_all(std::iter::once(slow).chain(quick(30)).collect()).await.unwrap();
    first.wait_for_event("started slow").await;
    let second = RunningWorker::start(worker());
    ended(&jobs[1..]).await;
    go_on.notify_one();
    ended(&jobs[..1]).await;
    let (first, second) = (first.stop().await, second.stop().await);
    assert_eq!((first.done + second.done, first.lost + second.lost), (81, 0));
    assert!(second.done >= 30, "{second:?}");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_can_be_read_in_both_places() {
    let folder = Folder::new("progress");
    let server = TestServer::open().await;
    for client in [server.client(), Client::open(&folder.0).await.unwrap()] {
        let go_on = Arc::new(Notify::new());
        let worker = Worker::with_state(&client, Arc::clone(&go_on)).handle(
            "slow",
            async |_: (), context: Context<Arc<Notify>>| {
                context.progress_with(25.0, "a quarter", json!({ "rows": 10 })).await?;
                context.state().notify_one();
                context.cancellation().await;
                Ok::<_, Failure>(())
            },
        );
        let running = RunningWorker::start(worker.stop_within(Duration::ZERO));
        let id = client.enqueue(NewJob::new("slow", ()).unwrap()).await.unwrap().id().to_owned();
        soon(go_on.notified()).await;
        let job = client.job(&id).await.unwrap();
        assert_eq!(job.envelope()["progress"], json!(0.25));
        assert_eq!(job.envelope()["progress_message"], "a quarter");
        assert_eq!(job.envelope()["progress_data"], json!({ "rows": 10 }));
        running.stop().await;
        client.close().await.unwrap();
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_its_jobs_and_a_server_can_take_it_over() {
    let folder = Folder::new("taken-over");
    let client = Client::open(&folder.0).await.unwrap();
    let job = NewJob::new("greet", json!({ "name": "Ada" })).unwrap().meta("trace", "t-1").tag("vip");
    let job = job.retry(Retry::by_worker(Some(4)).unwrap()).priority(3);
    let plain = client.enqueue(NewJob::new("greet", json!({ "name": "Bob" })).unwrap()).await.unwrap();
    let job = client.enqueue(job).await.unwrap();
    let second = Client::open(&folder.0).await;
    assert!(second.is_err(), "one process at a time");
    client.close().await.unwrap();
    drop(client);

    let (store, opened) = redrive_store::Embedded::open(&folder.0, Options::default()).unwrap();
    assert_eq!(opened.jobs.iter().sum::<usize>(), 2);
    let server = TestServer::on(Arc::new(store), None).await;
    let client = server.client();
    for (before, id) in [(&job, job.id()), (&plain, plain.id())] {
        let after = client.job(id).await.unwrap();
        for key in
            ["type", "queue", "args", "meta", "tags", "priority", "attempt", "max_attempts", "created_at", "state"]
        {
            assert_eq!(after.envelope()[key], before.envelope()[key], "{key}");
        }
    }
    let from = &client.job(job.id()).await.unwrap().envelope()["redrive"]["policy_from"].clone();
    assert_eq!((&from["layer"], &from["dialect"]), (&json!("job"), &json!("taskharbor")));
    #[derive(serde::Deserialize)]
    struct Person {
        name: String,
    }
    let greet = |person: Person| async move { Ok::<_, Failure>(format!("hello {}", person.name)) };
    let running = RunningWorker::start(Worker::builder(&client).handle("greet", greet));
    assert_eq!(client.result::<String>(job.id(), common::TIMEOUT).await.unwrap(), "hello Ada");
    assert_eq!(client.result::<String>(plain.id(), common::TIMEOUT).await.unwrap(), "hello Bob");
    running.stop().await;
    server.close().await;
}

#[test]
fn a_builder_names_everything_that_is_wrong() {
    let client = Client::http("http://127.0.0.1:1").unwrap();
    let nothing = |(): ()| async { Ok::<_, Failure>(()) };
    let error = Worker::builder(&client)
        .handle("a", nothing)
        .handle("a", nothing)
        .concurrency(0)
        .concurrency_of("b", 0)
        .lease(Duration::from_millis(1))
        .build()
        .unwrap_err()
        .to_string();
    for part in
        ["two handlers for the type \"a\"", "concurrency of 0", "for \"b\"", "lease of 1ms", "without a handler: b"]
    {
        assert!(error.contains(part), "{part:?} is missing in {error}");
    }
    let error = Worker::builder(&client).build().unwrap_err();
    assert!(error.to_string().contains("there is no handler"), "{error}");
    let error = Client::http("localhost:8080").unwrap_err();
    assert!(error.to_string().contains("allowed is http://HOST:PORT or https://HOST:PORT"), "{error}");
}
