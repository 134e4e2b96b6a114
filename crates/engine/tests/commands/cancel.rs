//! Cancelling a job, also while a worker runs it.

use super::harness::{Harness, failure, job, refused, secs, with_ojs};
use redrive_engine::{Ending, EngineError, Submission};
use redrive_policy::Span;
use redrive_store::{Refusal, Start, State};
use serde_json::json;

#[tokio::test]
async fn every_job_that_has_not_ended_can_be_cancelled() {
    let harness = Harness::new();
    let later = Start::Scheduled(super::harness::START.after(secs(60)));
    for (start, previous) in
        [(Start::Available, State::Available), (later, State::Scheduled), (Start::Pending, State::Pending)]
    {
        let submitted = harness.submit(Submission { start, ..job() }).await;
        let cancelled = harness.engine.cancel(submitted.id).await.expect("it waits");
        assert_eq!((cancelled.from, cancelled.job.state), (Some(previous), State::Cancelled));
        assert_eq!(cancelled.job.due, None);
    }
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    harness.fail(&claimed, failure()).await;
    let cancelled = harness.engine.cancel(claimed.id).await.expect("it waits for its retry");
    assert_eq!((cancelled.from, cancelled.job.failures.len()), (Some(State::Retryable), 1));
    harness.advance(secs(86_400)).await;
    assert_eq!(harness.try_claim().await, None, "none of them runs again");
}

#[tokio::test]
async fn a_settlement_after_a_cancellation_is_refused_and_changes_nothing() {
    for ending in [
        Ending::Done(Some(super::harness::blob("42"))),
        Ending::Failed(failure()),
        Ending::Released(Span::ZERO),
        Ending::Released(secs(1)),
    ] {
        let harness = Harness::new();
        harness.submit(job()).await;
        let claimed = harness.claim().await;
        let cancelled = harness.engine.cancel(claimed.id).await.expect("it runs");
        assert_eq!((cancelled.from, &cancelled.job.lease), (Some(State::Active), &None));
        harness.clock.advance(secs(1));
        assert_eq!(refused(harness.settle(&claimed, ending).await), Refusal::StaleLease);
        assert_eq!(refused(harness.extend(&claimed, None).await), Refusal::StaleLease);
        harness.advance(secs(86_400)).await;
        assert_eq!(harness.job(claimed.id).await, cancelled.job);
    }
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled() {
    let harness = Harness::new();
    harness.submit(with_ojs(json!({"max_attempts": 1}))).await;
    let claimed = harness.claim().await;
    let ended = harness.fail(&claimed, failure()).await;
    let answer = harness.engine.cancel(ended.id).await;
    assert_eq!(answer, Err(EngineError::Refused(ended.id, Refusal::WrongState(State::Discarded))));
    assert_eq!(harness.job(ended.id).await, ended);
}
