//! TaskHarbor's retry policy, section by section, on the worker and the engine behind it. The engine is
//! in memory, and the clock is that of the harness.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
#![cfg(feature = "embedded")]

mod common;

use common::{RunningWorker, TIMEOUT, TestServer};
use redrive_policy::dialect::Dialect;
use redrive_worker::testing::{Drained, Harness};
use redrive_worker::{Failure, NewJob, Retry, Worker};
use serde_json::{Value, json};
use std::time::Duration;

fn harbor(document: Value) -> Retry {
    Retry::written(Dialect::TaskHarbor, document).unwrap()
}

/// What happens to a job that always fails.
async fn failing(job: Retry, worker: Option<Retry>) -> Drained {
    failing_with(job, worker, || Failure::other("no")).await
}

async fn failing_with(job: Retry, worker: Option<Retry>, failure: fn() -> Failure) -> Drained {
    let harness = Harness::new().unwrap();
    let builder =
        Worker::builder(harness.client()).handle("email.send", move |(): ()| async move { Err::<(), _>(failure()) });
    let builder = worker.iter().fold(builder, |builder, retry| builder.retry(retry));
    harness.client().enqueue(NewJob::new("email.send", ()).unwrap().retry(job)).await.unwrap();
    harness.drain(&builder.build().unwrap()).await.unwrap()
}

fn waits(drained: &Drained) -> Vec<f64> {
    drained.runs.iter().filter_map(|run| run.retry_after).map(|wait| wait.as_secs_f64()).collect()
}

/// Whether every run but the last was retried, and the last one ended among the dead letters.
#[track_caller]
fn ends_dead_after(drained: &Drained, attempts: usize) {
    let states: Vec<(&str, bool)> = drained.runs.iter().map(|run| (run.state.as_str(), run.dead)).collect();
    assert_eq!(states.len(), attempts, "{states:?}");
    assert!(states[..attempts - 1].iter().all(|state| *state == ("retryable", false)), "{states:?}");
    assert_eq!(states[attempts - 1], ("discarded", true));
}

#[tokio::test]
async fn what_max_attempts_means_five_means_four_failures_and_a_dead_letter_on_the_fifth() {
    let drained = failing(Retry::by_worker(Some(5)).unwrap(), None).await;
    ends_dead_after(&drained, 5);
    let attempts: Vec<u32> = drained.runs.iter().map(|run| run.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn default_behavior_a_job_without_a_limit_takes_the_default_of_25() {
    let drained = failing(Retry::by_worker(None).unwrap(), None).await;
    ends_dead_after(&drained, 25);
    for (index, wait) in waits(&drained).into_iter().enumerate() {
        let plain = (0.2 * 2_f64.powi(index as i32)).min(5.0);
        assert!((plain * 0.8..=(plain * 1.2).min(5.0)).contains(&wait), "retry {}: {wait} s", index + 1);
    }
}

#[tokio::test]
async fn what_retry_policy_means_the_worker_decides_how_long_to_wait() {
    let policy = json!({ "policy": { "base_delay": "1s", "max_delay": "3s", "multiplier": 2.0, "jitter": 0.0 } });
    let drained = failing(Retry::by_worker(Some(5)).unwrap(), Some(harbor(policy))).await;
    ends_dead_after(&drained, 5);
    assert_eq!(waits(&drained), [1.0, 2.0, 3.0, 3.0], "doubled, and capped");
    assert_eq!(drained.waited, Duration::from_secs(9));
}

#[tokio::test]
async fn effective_max_attempts_is_the_smaller_of_the_two() {
    let worker = |limit: i64| harbor(json!({ "policy": { "max_attempts": limit } }));
    for (job, policy, attempts) in [
        (Some(4), worker(9), 4),
        (Some(9), worker(4), 4),
        (None, worker(3), 3),
        (Some(6), worker(0), 6),
        (None, worker(-1), 1),
    ] {
        let drained = failing(Retry::by_worker(job).unwrap(), Some(policy)).await;
        ends_dead_after(&drained, attempts);
    }
}

#[tokio::test]
async fn global_cap_smaller_than_job_cap_twenty_and_ten_are_ten() {
    let policy = harbor(json!({ "policy": { "max_attempts": 10 } }));
    ends_dead_after(&failing(Retry::by_worker(Some(20)).unwrap(), Some(policy)).await, 10);
}

#[tokio::test]
async fn dlq_rules_an_unrecoverable_error_skips_retries() {
    let unrecoverable = || Failure::other("no such address").unrecoverable();
    let drained = failing_with(Retry::by_worker(Some(5)).unwrap(), None, unrecoverable).await;
    ends_dead_after(&drained, 1);
}

#[tokio::test]
async fn disabling_retries_without_a_policy_the_first_failure_is_the_last() {
    let drained = failing(Retry::by_worker(Some(5)).unwrap(), Some(Retry::none().unwrap())).await;
    ends_dead_after(&drained, 1);
}

#[tokio::test]
async fn customize_retry_timing_and_cap() {
    let policy = json!({ "policy": {
        "base_delay": "200ms", "max_delay": "10s", "multiplier": 2.0, "jitter": 0.1, "max_attempts": 15,
    } });
    let drained = failing(Retry::by_worker(None).unwrap(), Some(harbor(policy))).await;
    ends_dead_after(&drained, 15);
    for (index, wait) in waits(&drained).into_iter().enumerate() {
        let plain = (0.2 * 2_f64.powi(index as i32)).min(10.0);
        assert!((plain * 0.9..=(plain * 1.1).min(10.0)).contains(&wait), "retry {}: {wait} s", index + 1);
    }
}

#[tokio::test]
async fn a_policy_that_the_job_brings_keeps_its_curve_and_the_worker_only_tightens() {
    let job = json!({ "max_attempts": 6, "initial_interval": "PT7S", "backoff_coefficient": 1.0, "jitter": false,
        "on_exhaustion": "dead_letter" });
    let job = Retry::written(Dialect::Ojs, job).unwrap();
    let worker = harbor(json!({ "policy": { "base_delay": "1ms", "max_attempts": 3 } }));
    let drained = failing(job, Some(worker)).await;
    ends_dead_after(&drained, 3);
    assert_eq!(waits(&drained), [7.0, 7.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_split_holds_over_http() {
    let server = TestServer::open().await;
    let client = server.client();
    let policy =
        harbor(json!({ "policy": { "base_delay": "1ms", "max_delay": "2ms", "jitter": 0.0, "max_attempts": 4 } }));
    let fails = |(): ()| async { Err::<(), _>(Failure::other("no")) };
    let mut running = RunningWorker::start(Worker::builder(&client).handle("email.send", fails).retry(&policy));
    let add = async |limit| {
        let job = NewJob::new("email.send", ()).unwrap().retry(Retry::by_worker(limit).unwrap());
        client.enqueue(job).await.unwrap().id().to_owned()
    };
    for (limit, attempts) in [(Some(20), 4), (Some(2), 2), (None, 4)] {
        let id = add(limit).await;
        running.wait_for_event("settled email.send discarded dead").await;
        assert_eq!(client.wait(&id, TIMEOUT).await.unwrap().attempt(), attempts);
    }
    running.stop().await;
    let running =
        RunningWorker::start(Worker::builder(&client).handle("email.send", fails).retry(&Retry::none().unwrap()));
    let id = add(Some(5)).await;
    assert_eq!(client.wait(&id, TIMEOUT).await.unwrap().attempt(), 1);
    running.stop().await;
    server.close().await;
}
