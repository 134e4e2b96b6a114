//! RET-11: no job becomes available before its delay has elapsed; RET-14: until when is known.

use super::harness::{Harness, START, failure, job, ms, secs, wait_ms, with_ojs, with_policy};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Origin, Outcome, Span};
use redrive_store::{Job, State};
use serde_json::json;

/// The delay that the policy chose for the last failure.
fn last_delay(job: &Job) -> Span {
    job.failures.last().expect("a failure").verdict.delay().expect("a retry")
}

#[tokio::test]
async fn ret_11_a_microsecond_early_is_too_early() {
    // Every dialect, with the jitter that it has by default, under many draws.
    let policies = [
        (Dialect::Ojs, json!({"max_attempts": 9})),
        (Dialect::Azolla, json!({"retry": {"include_errors": ["external.timeout"]}, "stop": {"max_attempts": 9}})),
        (Dialect::TaskHarbor, json!({})),
        (Dialect::Exosphere, json!({"max_retries": 8, "strategy": "EXPONENTIAL_FULL_JITTER"})),
        (
            Dialect::Mwl,
            json!({"policies": [{"match": {"types": ["external.timeout"]}, "attempts": 9,
                "backoff": {"initial": "PT1S", "max": "PT1M", "jitter": "decorrelated"}}]}),
        ),
    ];
    for seed in 0..20 {
        for (dialect, policy) in &policies {
            let harness = Harness::seeded(seed);
            harness.submit(with_policy(*dialect, policy.clone())).await;
            let mut claimed = harness.claim().await;
            for attempt in 1..=6 {
                let failed_at = claimed.times.started.expect("it started").after(ms(7.0));
                harness.clock.set(failed_at);
                let waiting = harness.fail(&claimed, failure()).await;
                assert_eq!((waiting.state, waiting.attempt), (State::Retryable, attempt), "{dialect}");
                let waits = wait_ms(failed_at, waiting.due.expect("a time"));
                let delay = last_delay(&waiting).ms();
                // Due times are whole microseconds.
                assert!((waits - delay).abs() < 0.001, "{dialect}: waits {waits} ms in place of {delay}");
                claimed = harness.claim_when_due(&waiting).await;
                assert_eq!(claimed.due, None);
            }
        }
    }
}

#[tokio::test]
async fn ret_11_a_clock_that_steps_back_starts_no_run_early() {
    let harness = Harness::new();
    harness.submit(with_ojs(json!({"initial_interval": "PT10S", "jitter": false}))).await;
    let claimed = harness.claim().await;
    let waiting = harness.fail(&claimed, failure()).await;
    harness.at(START.after(secs(9))).await;
    harness.at(START).await;
    harness.at(START.after(secs(9))).await;
    assert_eq!(harness.try_claim().await, None);
    harness.claim_when_due(&waiting).await;
}

#[tokio::test]
async fn a_wait_of_nothing_is_over_at_once() {
    let harness = Harness::new();
    let mwl = json!({"policies": [{"match": {"types": ["external.timeout"]}, "attempts": 3}]});
    harness.submit(with_policy(Dialect::Mwl, mwl)).await;
    let claimed = harness.claim().await;
    let waiting = harness.fail(&claimed, failure()).await;
    assert_eq!((waiting.state, waiting.due), (State::Retryable, Some(START)));
    harness.at(START).await;
    assert_eq!(harness.claim().await.attempt, 2);
}

#[tokio::test]
async fn a_failure_can_bring_its_own_delay_and_the_curve_moves_on() {
    let harness = Harness::new();
    harness.submit(with_ojs(json!({"jitter": false, "max_attempts": 5, "max_interval": "PT1M"}))).await;
    let mut claimed = harness.claim().await;
    // Retries 1 and 3 follow the curve; 2 brings a wait above the cap, and is used as it is.
    for (delay, waits, by_policy) in
        [(None, 1_000.0, true), (Some(secs(3_600)), 3_600_000.0, false), (None, 4_000.0, true)]
    {
        let failed_at = claimed.times.started.expect("it started");
        let waiting = harness.fail(&claimed, redrive_engine::FailureReport { delay, ..failure() }).await;
        assert_eq!(wait_ms(failed_at, waiting.due.expect("a time")), waits);
        let outcome = waiting.failures.last().expect("a failure").verdict.outcome;
        let computed = matches!(outcome, Outcome::Retry { origin: Origin::Backoff(_), .. });
        assert_eq!(computed, by_policy, "{outcome:?}");
        claimed = harness.claim_when_due(&waiting).await;
    }
    assert_eq!(claimed.attempt, 4);
}

#[tokio::test]
async fn ret_14_a_waiting_job_names_its_next_run_and_no_other_job_does() {
    let harness = Harness::new();
    let submitted = harness.submit(job()).await;
    assert_eq!((submitted.due, submitted.last_delay), (None, None));
    let claimed = harness.claim().await;
    assert_eq!((claimed.due, claimed.attempt), (None, 1));
    let waiting = harness.fail(&claimed, failure()).await;
    assert_eq!(waiting.due, Some(START.after(last_delay(&waiting))));
    let claimed = harness.claim_when_due(&waiting).await;
    assert_eq!(claimed.last_delay, Some(last_delay(&waiting)), "the wait that is over is still told");
    let done = harness.done(&claimed).await;
    assert_eq!((done.due, done.state), (None, State::Completed));
}
