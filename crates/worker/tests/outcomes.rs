//! Every outcome, over HTTP and in-process, with the same handlers.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(feature = "embedded")]

mod common;

use common::{Folder, RunningWorker, TestServer, soon};
use redrive_policy::dialect::Dialect;
use redrive_worker::{Client, ClientError, Context, Failure, JobInfo, NewJob, Outcome, ResultExt, Retry, Worker};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;

/// Runs a test at both places.
macro_rules! everywhere {
    ($($test:ident),* $(,)?) => {
        mod over_http {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let server = super::TestServer::open().await;
                super::$test(server.client()).await;
                server.close().await;
            }
        )*}

        mod in_process {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let folder = super::Folder::new(stringify!($test));
                let client = super::Client::open(&folder.0).await.unwrap();
                super::$test(client.clone()).await;
                client.close().await.unwrap();
            }
        )*}
    };
}

everywhere! {
    done_with_a_result,
    done_without_a_result,
    failed_and_tried_again,
    errors_are_stored_as_a_server_stores_them,
    unrecoverable_is_a_dead_letter_at_once,
    a_discarded_job_is_not_a_dead_letter,
    snoozed_spends_no_attempt,
    retried_after_what_the_handler_says,
    a_panic_is_a_failure_with_its_message,
    a_run_that_takes_too_long_fails,
    arguments_that_do_not_fit_are_a_dead_letter,
    a_type_without_a_handler_spends_no_attempt,
    in_a_mixed_fleet_the_worker_with_the_handler_runs_them_all,
    a_job_that_its_handler_declines_spends_no_attempt,
    a_key_is_stored_once,
    a_priority_outside_of_the_range_and_a_lease_that_is_too_short_are_refused,
    dead_letters_are_listed_redriven_and_deleted,
    a_cancelled_job_ends_its_handler,
    many_are_stored_all_or_none,
    results_can_be_waited_for,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sum {
    total: i64,
}

/// Five tries without a wait, and a dead letter in the end.
fn eager() -> Retry {
    let policy = json!({ "max_attempts": 5, "initial_interval": "PT0.001S", "on_exhaustion": "dead_letter" });
    Retry::written(Dialect::Ojs, policy).unwrap()
}

fn job(kind: &str) -> NewJob {
    NewJob::new(kind, ()).unwrap().retry(eager())
}

async fn enqueued(client: &Client, job: NewJob) -> String {
    client.enqueue(job).await.unwrap().id().to_owned()
}

async fn settled(client: &Client, id: &str) -> JobInfo {
    soon(client.wait(id, common::TIMEOUT)).await.unwrap()
}

async fn done_with_a_result(client: Client) {
    async fn sum(numbers: Vec<i64>) -> Result<Sum, Failure> {
        Ok(Sum { total: numbers.iter().sum() })
    }
    let mut running = RunningWorker::start(Worker::builder(&client).handle("sum", sum));
    let id = enqueued(&client, NewJob::new("sum", [1, 2, 39]).unwrap()).await;
    running.wait_for_event("settled sum completed").await;
    let job = settled(&client, &id).await;
    assert_eq!((job.state(), job.attempt()), ("completed", 1));
    assert_eq!(job.result::<Sum>().unwrap(), Sum { total: 42 });
    assert_eq!(running.stop().await.done, 1);
}

async fn done_without_a_result(client: Client) {
    async fn nothing(_: (), _: Context) -> Result<(), Failure> {
        Ok(())
    }
    let running = RunningWorker::start(Worker::builder(&client).handle("nothing", nothing));
    let id = enqueued(&client, job("nothing")).await;
    let job = settled(&client, &id).await;
    assert_eq!(job.state(), "completed");
    assert!(job.envelope().get("result").is_none());
    running.stop().await;
}

async fn failed_and_tried_again(client: Client) {
    async fn twice(_: (), context: Context) -> Result<u32, Failure> {
        let attempt = context.job().attempt();
        if attempt < 3 {
            let details = json!({ "attempt": attempt });
            return Err(Failure::new("external.busy", "come back later").with_details(details));
        }
        Ok(attempt)
    }
    let running = RunningWorker::start(Worker::builder(&client).handle("twice", twice));
    let id = enqueued(&client, job("twice")).await;
    let job = settled(&client, &id).await;
    assert_eq!((job.state(), job.attempt(), job.result::<u32>().unwrap()), ("completed", 3, 3));
    let told: Vec<_> =
        job.errors().iter().map(|error| (&error["type"], &error["message"], &error["details"])).collect();
    let (kind, message) = (json!("external.busy"), json!("come back later"));
    assert_eq!(told[0], (&kind, &message, &json!({ "attempt": 1 })));
    assert_eq!(told[1], (&kind, &message, &json!({ "attempt": 2 })));
    assert_eq!(running.stop().await.failed, 2);
}

async fn errors_are_stored_as_a_server_stores_them(client: Client) {
    async fn fails(_: (), context: Context) -> Result<(), Failure> {
        let failure = Failure::new("external.busy", "é".repeat(20_000)).with_details("too long to be stored");
        match context.job().attempt() {
            1 => Err(Failure::new("external.busy", "later").with_details("a text")),
            2 => Err(failure),
            _ => Err(Failure::other("enough").unrecoverable()),
        }
    }
    let running = RunningWorker::start(Worker::builder(&client).handle("fails", fails));
    let id = enqueued(&client, job("fails")).await;
    let job = settled(&client, &id).await;
    let errors = job.errors();
    assert_eq!(errors[0]["details"], json!({ "value": "a text" }));
    assert_eq!((&errors[1]["type"], &errors[1]["truncated"]), (&json!("external.busy"), &json!(true)));
    assert_eq!((&errors[1]["message"], errors[1].get("details")), (&json!("é".repeat(500)), None));
    assert_eq!((&errors[2]["code"], &errors[2]["retryable"]), (&json!("DEAD_LETTER"), &json!(false)));
    running.stop().await;
}

async fn unrecoverable_is_a_dead_letter_at_once(client: Client) {
    async fn parsed(text: String) -> Result<u32, Failure> {
        text.parse::<u32>().unrecoverable()
    }
    let mut running = RunningWorker::start(Worker::builder(&client).handle("parse", parsed));
    let id = enqueued(&client, NewJob::new("parse", "seven").unwrap().retry(eager())).await;
    running.wait_for_event("settled parse discarded dead").await;
    let job = client.job(&id).await.unwrap();
    assert_eq!((job.state(), job.attempt()), ("discarded", 1));
    assert_eq!(job.errors()[0]["type"], "ParseIntError");
    assert_eq!(client.dead_letters().count().await.unwrap(), 1);
    running.stop().await;
}

async fn a_discarded_job_is_not_a_dead_letter(client: Client) {
    let dropped = |(): ()| async { Err::<(), _>(Failure::new("gone", "no longer needed").discard()) };
    let mut running = RunningWorker::start(Worker::builder(&client).handle("drop", dropped));
    let id = enqueued(&client, job("drop")).await;
    assert_eq!(running.wait_for_event("settled drop").await, "settled drop discarded");
    assert_eq!(client.job(&id).await.unwrap().attempt(), 1);
    assert_eq!(client.dead_letters().count().await.unwrap(), 0);
    running.stop().await;
}

async fn snoozed_spends_no_attempt(client: Client) {
    use std::sync::atomic::{AtomicU32, Ordering};
    let runs = AtomicU32::new(0);
    let worker = Worker::with_state(&client, runs).handle("snooze", async |_: (), context: Context<AtomicU32>| {
        if context.state().fetch_add(1, Ordering::Relaxed) < 3 {
            return Ok::<_, Failure>(Outcome::snooze(Duration::from_millis(1)));
        }
        Ok(Outcome::done(context.job().attempt()))
    });
    let running = RunningWorker::start(worker);
    let id = enqueued(&client, job("snooze")).await;
    let job = settled(&client, &id).await;
    assert_eq!((job.attempt(), job.result::<u32>().unwrap(), job.errors().len()), (1, 1, 0));
    assert_eq!(running.stop().await.released, 3);
}

async fn retried_after_what_the_handler_says(client: Client) {
    let later = |(): ()| async { Err::<(), _>(Failure::other("busy").retry_after(Duration::from_secs(3_600))) };
    let mut running = RunningWorker::start(Worker::builder(&client).handle("later", later));
    let id = enqueued(&client, job("later")).await;
    running.wait_for_event("settled later retryable").await;
    let job = client.job(&id).await.unwrap();
    assert_eq!(job.envelope()["retry_delay_ms"], 3_600_000);
    running.stop().await;
}

async fn a_panic_is_a_failure_with_its_message(client: Client) {
    async fn broken(_: (), context: Context) -> Result<(), Failure> {
        if context.job().attempt() == 1 {
            panic!("the {} is broken", "pump");
        }
        Ok(())
    }
    let running = RunningWorker::start(Worker::builder(&client).handle("pump", broken));
    let id = enqueued(&client, job("pump")).await;
    let job = settled(&client, &id).await;
    assert_eq!((job.state(), job.attempt()), ("completed", 2));
    assert_eq!(
        (&job.errors()[0]["type"], &job.errors()[0]["message"]),
        (&json!("panic"), &json!("the pump is broken"))
    );
    running.stop().await;
}

async fn a_run_that_takes_too_long_fails(client: Client) {
    async fn slow(_: (), context: Context) -> Result<(), Failure> {
        if context.job().attempt() == 1 {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
    let worker = Worker::builder(&client).handle("slow", slow).cancel_grace(Duration::from_millis(1));
    let mut running = RunningWorker::start(worker.timeout_of("slow", Duration::from_millis(20)));
    let id = enqueued(&client, job("slow")).await;
    running.wait_for_event("cancelled slow TimedOut").await;
    let job = settled(&client, &id).await;
    assert_eq!((job.state(), job.attempt()), ("completed", 2));
    assert_eq!(job.errors()[0]["type"], "timeout");
    running.stop().await;
}

async fn arguments_that_do_not_fit_are_a_dead_letter(client: Client) {
    let typed = |_: Sum| async { Ok::<_, Failure>(()) };
    let mut running = RunningWorker::start(Worker::builder(&client).handle("typed", typed));
    let id = enqueued(&client, NewJob::new("typed", (1, 2)).unwrap().retry(eager())).await;
    running.wait_for_event("settled typed discarded dead").await;
    let job = client.job(&id).await.unwrap();
    assert_eq!(job.errors()[0]["type"], "invalid_arguments");
    assert!(job.errors()[0]["message"].as_str().unwrap().contains("2 arguments found"));
    running.stop().await;
}

/// Twenty jobs of a type.
async fn twenty(client: &Client, kind: &str) -> Vec<String> {
    let jobs = client.enqueue_all((0..20).map(|_| job(kind)).collect()).await.unwrap();
    jobs.iter().map(|job| job.id().to_owned()).collect()
}

async fn a_type_without_a_handler_spends_no_attempt(client: Client) {
    let ids = twenty(&client, "unknown").await;
    let known = |(): ()| async { Ok::<_, Failure>(()) };
    let mut running =
        RunningWorker::start(Worker::builder(&client).handle("known", known).queue("default").queue("other"));
    let said = running.wait_for_event("paused default").await;
    assert!(said.contains("no handler for the type \"unknown\""), "{said}");
    running.wait_for_event("settled unknown retryable").await;
    let other = enqueued(&client, job("known").queue("other")).await;
    assert_eq!(settled(&client, &other).await.state(), "completed", "its other queue is served");
    let summary = running.stop().await;
    assert_eq!((summary.done, summary.failed, summary.lost), (1, 0, 0));
    for id in ids {
        let job = client.job(&id).await.unwrap();
        assert!(["available", "retryable"].contains(&job.state()), "{}", job.envelope());
        assert_eq!((job.attempt(), job.errors().len()), (0, 0), "{}", job.envelope());
    }
}

async fn in_a_mixed_fleet_the_worker_with_the_handler_runs_them_all(client: Client) {
    let ids = twenty(&client, "new").await;
    let done = |(): ()| async { Ok::<_, Failure>(()) };
    let mut old = RunningWorker::start(Worker::builder(&client).handle("old", done));
    old.wait_for_event("declined new").await;
    let new = RunningWorker::start(Worker::builder(&client).handle("old", done).handle("new", done));
    for id in ids {
        let job = settled(&client, &id).await;
        assert_eq!((job.state(), job.attempt(), job.errors().len()), ("completed", 1, 0));
    }
    assert_eq!((old.stop().await.failed, new.stop().await.done), (0, 20));
}

async fn a_job_that_its_handler_declines_spends_no_attempt(client: Client) {
    let gpu = |(): ()| async { Ok::<_, Failure>(Outcome::decline("there is no GPU here")) };
    let mut running = RunningWorker::start(Worker::builder(&client).handle("render", gpu));
    let id = enqueued(&client, job("render")).await;
    running.wait_for_event("declined render there is no GPU here").await;
    running.wait_for_event("paused default there is no GPU here").await;
    running.wait_for_event("settled render retryable").await;
    let job = client.job(&id).await.unwrap();
    assert_eq!((job.state(), job.attempt(), job.errors().len()), ("retryable", 0, 0));
    running.stop().await;
}

async fn a_key_is_stored_once(client: Client) {
    let (first, new) = client.enqueue_or_find(job("once").idempotency_key("k")).await.unwrap();
    let (second, newer) = client.enqueue_or_find(job("once").idempotency_key("k")).await.unwrap();
    assert_eq!((new, newer, first.id()), (true, false, second.id()));
    let key = |job: NewJob| job.idempotency_key("k");
    for other in [key(job("other")), key(job("once").queue("other")), key(NewJob::new("once", (7,)).unwrap())] {
        let error = client.enqueue(other).await.unwrap_err().to_string();
        assert!(error.contains(first.id()) && error.contains("another type, queue or arguments"), "{error}");
    }
}

async fn a_priority_outside_of_the_range_and_a_lease_that_is_too_short_are_refused(client: Client) {
    for wrong in [job("a").priority(101), job("a").priority(-101), job("a").lease(Duration::from_millis(99))] {
        let error = client.enqueue(wrong).await.unwrap_err().to_string();
        assert!(error.contains("100"), "{error}");
    }
    for right in [job("a").priority(100), job("a").priority(-100), job("a").lease(Duration::from_millis(100))] {
        client.enqueue(right).await.unwrap();
    }
}

async fn dead_letters_are_listed_redriven_and_deleted(client: Client) {
    let lost = |(): ()| async { Err::<(), _>(Failure::new("lost.cause", "no use").unrecoverable()) };
    let mut running = RunningWorker::start(Worker::builder(&client).handle("lost", lost).queue("a"));
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(enqueued(&client, job("lost").queue("a")).await);
        running.wait_for_event("settled lost discarded dead").await;
    }
    running.stop().await;
    let dead = client.dead_letters();
    let mut listed: Vec<String> = dead.list(0, 10).await.unwrap().iter().map(|job| job.id().to_owned()).collect();
    // Names of the same millisecond are in no order.
    listed.sort();
    ids.sort();
    assert_eq!(listed, ids);
    assert_eq!(dead.clone().queue("b").count().await.unwrap(), 0);
    assert_eq!(dead.clone().kind("lost").error_type("lost.cause").count().await.unwrap(), 3);
    let back = dead.retry(&ids[0]).await.unwrap();
    assert_eq!((back.state(), back.attempt()), ("available", 0));
    dead.delete(&ids[1]).await.unwrap();
    let error = dead.delete(&ids[1]).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(refused) if refused.status == 404));
    assert_eq!(dead.clone().error_type("other").retry_all().await.unwrap(), 0);
    assert_eq!(dead.retry_all().await.unwrap(), 1);
    assert_eq!(dead.count().await.unwrap(), 0);
}

async fn a_cancelled_job_ends_its_handler(client: Client) {
    async fn endless(_: (), context: Context) -> Result<(), Failure> {
        context.cancellation().await;
        Ok(())
    }
    let worker = Worker::builder(&client).handle("endless", endless).lease(Duration::from_millis(200));
    let mut running = RunningWorker::start(worker);
    let id = enqueued(&client, job("endless")).await;
    running.wait_for_event("started endless").await;
    assert_eq!(client.cancel(&id).await.unwrap().state(), "cancelled");
    running.wait_for_event("cancelled endless JobCancelled").await;
    let summary = running.stop().await;
    assert_eq!((summary.cancelled, summary.lost), (1, 0));
    assert_eq!(client.job(&id).await.unwrap().state(), "cancelled");
}

async fn many_are_stored_all_or_none(client: Client) {
    let jobs = client.enqueue_all((0..50).map(|_| job("many")).collect()).await.unwrap();
    assert_eq!(jobs.len(), 50);
    let twice = jobs[7].id().to_owned();
    let error = client.enqueue_all(vec![job("many"), job("many").id(twice)]).await.unwrap_err();
    assert!(matches!(error, ClientError::Refused(refused) if refused.code == "duplicate"));
    let many = |(): ()| async { Ok::<_, Failure>(()) };
    let running = RunningWorker::start(Worker::builder(&client).handle("many", many));
    for job in &jobs {
        settled(&client, job.id()).await;
    }
    assert_eq!(running.stop().await.done, 50, "and not 51");
}

async fn results_can_be_waited_for(client: Client) {
    let half = |n: u32| async move {
        if n.is_multiple_of(2) { Ok(n / 2) } else { Err(Failure::other("odd").unrecoverable()) }
    };
    let id = enqueued(&client, NewJob::new("half", 8).unwrap()).await;
    let early = client.result::<u32>(&id, Duration::ZERO).await;
    assert!(matches!(early, Err(ClientError::TimedOut)), "{early:?}");
    let running = RunningWorker::start(Worker::builder(&client).handle("half", half));
    assert_eq!(client.result::<u32>(&id, common::TIMEOUT).await.unwrap(), 4);
    let id = enqueued(&client, NewJob::new("half", 7).unwrap()).await;
    let error = client.result::<u32>(&id, common::TIMEOUT).await.unwrap_err();
    assert_eq!(error.to_string(), format!("job {id} is discarded: odd"));
    running.stop().await;
}
