//! Releasing a run: it spends no attempt, does not advance the backoff, and is limited.

use super::harness::{Harness, START, failure, job, refused, secs, wait_ms, with_ojs, with_policy};
use redrive_engine::FailureReport;
use redrive_policy::dialect::Dialect;
use redrive_policy::{Signal, Span};
use redrive_store::{Refusal, State};
use serde_json::json;

#[tokio::test]
async fn a_release_without_a_wait_is_available_at_once_and_one_with_a_wait_is_not_early() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    let released = harness.release(&claimed, Span::ZERO).await.expect("accepted");
    assert_eq!((released.state, released.attempt, released.due), (State::Available, 0, None));
    let claimed = harness.claim().await;
    assert_eq!((claimed.attempt, claimed.leases), (1, 2));
    let snoozed = harness.release(&claimed, secs(90)).await.expect("accepted");
    assert_eq!((snoozed.state, snoozed.attempt, snoozed.due), (State::Retryable, 0, Some(START.after(secs(90)))));
    assert_eq!(harness.claim_when_due(&snoozed).await.attempt, 1);
}

#[tokio::test]
async fn a_release_does_not_move_the_curve() {
    let harness = Harness::new();
    harness.submit(with_ojs(json!({"max_attempts": 4, "jitter": false}))).await;
    for waits in [1_000.0, 2_000.0, 4_000.0] {
        for _ in 0..3 {
            let claimed = harness.claim().await;
            let before = (claimed.last_delay, claimed.failures.clone());
            let snoozed = harness.release(&claimed, secs(700)).await.expect("accepted");
            assert_eq!((snoozed.last_delay, &snoozed.failures), (before.0, &before.1), "nothing is recorded");
            harness.advance_to_next_sweep().await;
        }
        let claimed = harness.claim().await;
        let failed_at = claimed.times.started.expect("it started");
        let waiting = harness.fail(&claimed, failure()).await;
        assert_eq!(wait_ms(failed_at, waiting.due.expect("a time")), waits);
        harness.advance_to_next_sweep().await;
    }
    let claimed = harness.claim().await;
    assert_eq!((claimed.attempt, claimed.leases), (4, 13));
    assert_eq!(harness.fail(&claimed, failure()).await.state, State::Discarded);
}

#[tokio::test]
async fn releases_have_a_bound_which_a_failure_renews() {
    let harness = Harness::with(|settings| settings.most_releases = 3);
    harness.submit(job()).await;
    for _ in 0..2 {
        for _ in 0..3 {
            let claimed = harness.claim().await;
            harness.release(&claimed, Span::ZERO).await.expect("accepted");
        }
        let claimed = harness.claim().await;
        assert_eq!(refused(harness.release(&claimed, Span::ZERO).await), Refusal::TooManyReleases(3));
        assert_eq!(harness.job(claimed.id).await, claimed, "a refusal changes nothing: the worker still has it");
        let waiting = harness.fail(&claimed, failure()).await;
        harness.at(waiting.due.expect("a time")).await;
    }
}

#[tokio::test]
async fn a_requeue_signal_keeps_the_count_and_is_not_a_failure() {
    let harness = Harness::new();
    harness
        .submit(with_policy(Dialect::Exosphere, json!({"max_retries": 1, "strategy": "FIXED", "backoff_factor": 2000})))
        .await;
    let mut claimed = harness.claim().await;
    for _ in 0..5 {
        let asked_at = claimed.times.started.expect("it started");
        let report = FailureReport { signal: Signal::RequeueAfter(secs(45)), ..failure() };
        let waiting = harness.fail(&claimed, report).await;
        assert_eq!(waiting.due, Some(asked_at.after(secs(45))));
        assert_eq!((waiting.state, waiting.failures.len(), waiting.attempt), (State::Retryable, 0, 0));
        claimed = harness.claim_when_due(&waiting).await;
        assert_eq!(claimed.attempt, 1);
    }
    let waiting = harness.fail(&claimed, failure()).await;
    assert_eq!(waiting.last_delay, Some(secs(2)), "the first retry, as if nothing had been");
    let claimed = harness.claim_when_due(&waiting).await;
    assert_eq!(harness.fail(&claimed, failure()).await.state, State::Discarded);
}
