//! TaskHarbor's split: the job has the limit, the worker has the curve. Names of tests start with the
//! heading in the document.

use super::harness::{Harness, failure, ms, runs_until_ended, wait_ms, with_ojs, with_policy};
use redrive_engine::{Clock, FailureReport, Layer, PolicyDocument, Settings, Submission};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Outcome, Policy};
use redrive_store::{Job, State};
use serde_json::{Value, json};
use std::sync::Arc;

fn on_worker(dialect: Dialect, policy: Value) -> FailureReport {
    let policy: Policy = dialect.read(&policy).expect("valid").policy;
    FailureReport { worker_policy: Some(Arc::new(policy)), ..failure() }
}

/// A failure on a worker with this policy of TaskHarbor.
fn harbor(policy: Value) -> FailureReport {
    on_worker(Dialect::TaskHarbor, json!({ "policy": policy }))
}

/// The delays of a job that always fails, and how it ends.
async fn run_to_end(harness: &Harness, submission: Submission, report: &FailureReport) -> (Vec<f64>, Job) {
    let id = harness.submit(submission).await.id;
    let mut waits = Vec::new();
    runs_until_ended(harness, id, async |harness: &Harness, job: &Job, _| {
        let failed = harness.fail(job, report.clone()).await;
        waits.extend(failed.due.map(|due| wait_ms(harness.clock.now(), due)));
    })
    .await;
    (waits, harness.job(id).await)
}

fn job(document: Value) -> Submission {
    with_policy(Dialect::TaskHarbor, document)
}

fn reason(job: &Job) -> &'static str {
    match job.failures.last().expect("a failure").verdict.outcome {
        Outcome::Stop { reason, .. } => reason.name(),
        Outcome::Retry { .. } => "retry",
    }
}

#[tokio::test]
async fn what_max_attempts_means_5_fails_4_times_and_is_dlqd_on_the_5th() {
    let report = harbor(json!({"base_delay": "1s", "max_delay": "3s", "jitter": 0}));
    let (waits, ended) = run_to_end(&Harness::new(), job(json!({"job": {"max_attempts": 5}})), &report).await;
    assert_eq!(waits, [1_000.0, 2_000.0, 3_000.0, 3_000.0], "the worker's curve and cap");
    assert_eq!((ended.attempt, ended.state, ended.dead, reason(&ended)), (5, State::Discarded, true, "max_attempts"));
}

#[tokio::test]
async fn default_behavior_applies_if_the_worker_says_nothing() {
    let (waits, ended) = run_to_end(&Harness::new(), job(json!({"job": {"max_attempts": 4}})), &failure()).await;
    let bounds = [160.0..=240.0, 320.0..=480.0, 640.0..=960.0];
    assert!(waits.len() == 3 && waits.iter().zip(&bounds).all(|(wait, bounds)| bounds.contains(wait)), "{waits:?}");
    assert!(ended.dead);
    let (waits, _) = run_to_end(&Harness::new(), job(json!({})), &failure()).await;
    assert_eq!(waits.len(), 24, "25 attempts by default");
}

#[tokio::test]
async fn how_the_effective_max_attempts_is_chosen() {
    for (limit, worker, runs) in [
        (json!(5), json!({}), 5),
        (json!(0), json!({"max_attempts": 7}), 7),
        (json!(5), json!({"max_attempts": 0}), 5),
        (json!(20), json!({"max_attempts": 10}), 10),
        (json!(0), json!({"max_attempts": 0}), 1),
    ] {
        let (waits, ended) =
            run_to_end(&Harness::new(), job(json!({"job": {"max_attempts": limit}})), &harbor(worker)).await;
        assert_eq!((waits.len(), ended.attempt, ended.dead), (runs as usize - 1, runs, true), "{limit}");
    }
}

#[tokio::test]
async fn disabling_retries_with_no_policy_on_the_worker() {
    for submission in [job(json!({"job": {"max_attempts": 5}})), job(json!({})), with_ojs(json!({}))] {
        let (waits, ended) = run_to_end(&Harness::new(), submission, &harbor(json!(null))).await;
        assert_eq!((waits.len(), ended.state, reason(&ended)), (0, State::Discarded, "retries_disabled"));
    }
}

#[tokio::test]
async fn exponential_backoff_with_jitter_is_drawn_from_the_workers_range() {
    let report = harbor(json!({"base_delay": "1s", "jitter": 0.5, "max_attempts": 2}));
    let harness = Harness::seeded(7);
    let mut waits = Vec::new();
    for _ in 0..400 {
        waits.extend(run_to_end(&harness, job(json!({})), &report).await.0);
    }
    assert!(waits.len() == 400 && waits.iter().all(|wait| (500.0..=1_500.0).contains(wait)));
    // Uniform with a deviation of 289 ms: the standard error of 400 is 14 ms.
    let mean = waits.iter().sum::<f64>() / 400.0;
    assert!((mean - 1_000.0).abs() < 60.0, "{mean}");
}

#[tokio::test]
async fn semantics_a_job_with_its_own_policy_is_only_tightened() {
    let submission = || with_ojs(json!({"max_attempts": 4, "initial_interval": "PT9S", "jitter": false}));
    let report = harbor(json!({"base_delay": "1ms", "max_attempts": 2}));
    let (waits, ended) = run_to_end(&Harness::new(), submission(), &report).await;
    assert_eq!((waits, ended.dead), (vec![9_000.0], false), "its own curve and its own end");
    let (waits, _) = run_to_end(&Harness::new(), submission(), &harbor(json!({"max_attempts": 50}))).await;
    assert_eq!(waits.len(), 3);
    let (waits, _) = run_to_end(&Harness::new(), with_ojs(json!({})), &harbor(json!({"base_delay": "1ms"}))).await;
    assert_eq!(waits.len(), 2, "RET-09: the default of OJS, whatever the worker says");
    assert!(waits[0] >= 500.0 && waits[1] >= 1_000.0, "{waits:?}");
}

#[tokio::test]
async fn semantics_a_policy_of_the_queue_comes_before_the_workers_curve() {
    let written = PolicyDocument { dialect: Dialect::Ojs, value: json!({"initial_interval": "PT2S", "jitter": false}) };
    let layer = Layer::read(written).expect("valid");
    let configure = |settings: &mut Settings| {
        settings.layers.queues.insert("default".into(), layer.clone());
    };
    let report = harbor(json!({"base_delay": "1ms", "max_attempts": 9}));
    let (waits, ended) = run_to_end(&Harness::with(configure), job(json!({"job": {"max_attempts": 2}})), &report).await;
    assert_eq!((waits, ended.attempt), (vec![2_000.0], 2), "the queue's curve with the job's limit");
}

#[tokio::test]
async fn semantics_a_run_without_a_report_follows_the_documents_default() {
    let harness = Harness::new();
    let id = harness.submit(job(json!({"job": {"max_attempts": 2}}))).await.id;
    for _ in 0..2 {
        harness.claim().await;
        harness.advance(ms(1_800_000.0)).await;
        harness.advance(ms(10_000.0)).await;
    }
    let ended = harness.job(id).await;
    assert_eq!((ended.state, ended.dead, reason(&ended)), (State::Discarded, true, "max_attempts"));
}

#[tokio::test]
async fn each_failure_is_decided_by_the_worker_that_reports_it() {
    let harness = Harness::new();
    harness.submit(job(json!({"job": {"max_attempts": 5}}))).await;
    let slow = harbor(json!({"base_delay": "10s", "max_delay": "1h", "jitter": 0}));
    let fast = on_worker(Dialect::Exosphere, json!({"max_retries": 9, "strategy": "FIXED", "backoff_factor": 50}));
    let mut waiting = harness.fail(&harness.claim().await, slow.clone()).await;
    let mut waits = Vec::new();
    for report in [fast, slow] {
        waits.push(wait_ms(harness.clock.now(), waiting.due.expect("a retry")));
        let claimed = harness.claim_when_due(&waiting).await;
        waiting = harness.fail(&claimed, report).await;
    }
    waits.push(wait_ms(harness.clock.now(), waiting.due.expect("a retry")));
    assert_eq!(waits, [10_000.0, 50.0, 40_000.0], "the third failure is the third step of the curve");
}
