//! RET-14: what is tracked; RET-15: how much of the history is stored; RET-17: both dispositions of exhausted jobs.

use super::harness::{Harness, START, blob, failure, runs_until_ended, secs, with_ojs};
use redrive_engine::{FailureReport, Submission};
use redrive_policy::{Moment, Origin, Outcome};
use redrive_store::{Filter, KEPT_FAILURES, Page, State};
use serde_json::json;

#[tokio::test]
async fn ret_14_every_failure_is_recorded_with_its_attempt_time_error_and_decision() {
    let harness = Harness::new();
    let id = harness.submit(with_ojs(json!({"max_attempts": 4}))).await.id;
    let mut failed_at: Vec<Moment> = Vec::new();
    runs_until_ended(&harness, id, async |harness, job, runs| {
        harness.clock.advance(secs(3));
        failed_at.push(job.times.started.expect("it started").after(secs(3)));
        let error = blob(&format!("error {runs}"));
        harness.fail(job, FailureReport { error, ..failure() }).await;
    })
    .await;
    let job = harness.job(id).await;
    assert_eq!((job.attempt, job.history.failures()), (4, 4));
    for (index, run) in job.failures.iter().enumerate() {
        assert_eq!((run.generation, run.attempt, run.at), (0, index as u32 + 1, failed_at[index]));
        assert_eq!(&*run.error, format!("error {index}").as_bytes());
        let waits = failed_at.get(index + 1).map(|next| next.since(run.at).ms() - 3_000.0);
        match (run.verdict.outcome, waits) {
            (Outcome::Retry { delay, origin: Origin::Backoff(computed) }, Some(waits)) => {
                assert_eq!(computed.retry, index as u32 + 1);
                assert!(computed.draw.is_some(), "the draw is stored, so that the delay can be computed again");
                assert!((delay.ms() - waits).abs() < 0.002, "waited {waits} ms in place of {delay}");
            }
            (Outcome::Stop { .. }, None) => assert_eq!(index, 3),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn ret_15_the_newest_failures_are_stored_and_at_least_ten() {
    const { assert!(KEPT_FAILURES >= 10) };
    let harness = Harness::new();
    let id = harness.submit(with_ojs(json!({"max_attempts": 60}))).await.id;
    runs_until_ended(&harness, id, async |harness, job, runs| {
        harness.fail(job, FailureReport { error: blob(&runs.to_string()), ..failure() }).await;
    })
    .await;
    let job = harness.job(id).await;
    assert_eq!((job.attempt, job.failures.len()), (60, KEPT_FAILURES));
    let attempts: Vec<u32> = job.failures.iter().map(|run| run.attempt).collect();
    let expected: Vec<u32> = (60 - KEPT_FAILURES as u32 + 1..=60).collect();
    assert_eq!(attempts, expected, "oldest first, the newest stored");
    assert_eq!(job.failures.last().map(|run| run.error.clone()), Some(blob("59")));
}

#[tokio::test]
async fn ret_17_an_exhausted_job_is_a_dead_letter_only_if_its_policy_says_so() {
    let harness = Harness::new();
    for on_exhaustion in ["discard", "dead_letter"] {
        let policy = json!({"max_attempts": 2, "on_exhaustion": on_exhaustion});
        let id = harness.submit(Submission { kind: on_exhaustion.into(), ..with_ojs(policy) }).await.id;
        runs_until_ended(&harness, id, async |harness, job, _| drop(harness.fail(job, failure()).await)).await;
    }
    for (dead, kind) in [(true, "dead_letter"), (false, "discard")] {
        let filter = Filter { dead: Some(dead), state: Some(State::Discarded), ..Filter::default() };
        let listed = harness.engine.list(filter, Page::new(0, 10)).await.expect("an answer");
        assert_eq!((listed.jobs.len(), &*listed.jobs[0].spec.kind), (1, kind));
    }
}

#[tokio::test]
async fn ret_14_success_keeps_the_errors_and_the_result() {
    let harness = Harness::new();
    let answers = harness.engine.submit(vec![with_ojs(json!({}))]).await.expect("stored");
    assert_eq!(answers.len(), 1);
    let claimed = harness.claim().await;
    let waiting = harness.fail(&claimed, failure()).await;
    let claimed = harness.claim_when_due(&waiting).await;
    let done = harness.settle(&claimed, redrive_engine::Ending::Done(Some(blob("42")))).await.expect("accepted");
    assert_eq!((done.state, done.attempt, done.failures.len()), (State::Completed, 2, 1));
    assert_eq!((done.result, done.times.created), (Some(blob("42")), START));
    assert_eq!(done.times.finished, claimed.times.started);
}
