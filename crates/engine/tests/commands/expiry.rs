//! RET-12: a run that goes silent, or takes too long, is a failed attempt like any other.

use super::harness::{Harness, QUEUE, START, WORKER, failure, job, ms, refused, secs, with_ojs, with_policy};
use redrive_engine::{Ending, Submission};
use redrive_policy::dialect::Dialect;
use redrive_policy::{Moment, Outcome, Reason};
use redrive_store::{Job, Missing, Refusal, State};
use serde_json::{Value, json};

fn leased(lease_s: u32, policy: Value) -> Submission {
    Submission { lease: Some(secs(lease_s)), ..with_ojs(policy) }
}

fn error_of(job: &Job) -> Value {
    serde_json::from_slice(&job.failures.last().expect("an entry").error).expect("JSON")
}

#[tokio::test]
async fn ret_12_a_silent_run_is_a_failed_attempt_with_an_error_of_its_own() {
    let harness = Harness::new();
    harness.submit(leased(30, json!({"initial_interval": "PT1M", "jitter": false}))).await;
    let claimed = harness.claim().await;
    harness.at(Moment::from_micros(START.after(secs(30)).micros() - 1)).await;
    assert_eq!(harness.job(claimed.id).await, claimed, "a microsecond before its end the lease holds");
    harness.at(START.after(secs(30))).await;
    let waiting = harness.job(claimed.id).await;
    assert_eq!((waiting.state, waiting.attempt, &waiting.lease), (State::Retryable, 1, &None));
    assert_eq!(waiting.failures.len(), 1);
    assert_eq!((waiting.failures[0].attempt, waiting.failures[0].at), (1, START.after(secs(30))));
    let error = error_of(&waiting);
    assert_eq!((&error["type"], &error["code"]), (&json!("visibility_timeout"), &json!("timeout")));
    assert_eq!(error["details"], json!({"timeout_kind": "stalled", "worker_id": WORKER}));
    // The wait of a minute counts from the last heartbeat.
    assert_eq!(waiting.due, Some(START.after(secs(60))));
    assert_eq!(harness.claim_when_due(&waiting).await.attempt, 2);
}

#[tokio::test]
async fn ret_12_the_next_run_is_due_at_the_later_of_the_end_and_the_wait_since_the_last_heartbeat() {
    // (lease, wait, heartbeat, due), in seconds since the claim.
    for (lease, wait, alive, due) in
        [(30, 60, 0, 60), (30, 10, 0, 30), (30, 30, 0, 30), (30, 60, 20, 80), (30, 10, 20, 50)]
    {
        let harness = Harness::new();
        harness.submit(leased(lease, json!({"initial_interval": format!("PT{wait}S"), "jitter": false}))).await;
        let claimed = harness.claim().await;
        harness.at(START.after(secs(alive))).await;
        if alive > 0 {
            harness.extend(&claimed, None).await.expect("the run is this worker's");
        }
        let end = START.after(secs(alive + lease));
        harness.at(end).await;
        let ended = harness.job(claimed.id).await;
        let context = format!("lease {lease}, wait {wait}, alive at {alive}");
        if START.after(secs(due)) > end {
            assert_eq!((ended.state, ended.due), (State::Retryable, Some(START.after(secs(due)))), "{context}");
            harness.claim_when_due(&ended).await;
        } else {
            assert_eq!(ended.state, State::Available, "{context}");
        }
    }
}

#[tokio::test]
async fn ret_12_the_due_time_is_never_before_the_end_of_the_lease() {
    let harness = Harness::new();
    harness.submit(leased(30, json!({"initial_interval": "PT10S", "jitter": false}))).await;
    let claimed = harness.claim().await;
    // In a paused queue the job stays as the sweep left it.
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    harness.at(START.after(secs(300))).await;
    let held = harness.job(claimed.id).await;
    assert_eq!((held.state, held.due), (State::Retryable, Some(START.after(secs(30)))));
}

#[tokio::test]
async fn ret_12_a_late_sweep_does_not_move_the_due_time() {
    let harness = Harness::new();
    harness.submit(leased(30, json!({"initial_interval": "PT1M", "jitter": false}))).await;
    let claimed = harness.claim().await;
    harness.at(START.after(secs(55))).await;
    assert_eq!(harness.job(claimed.id).await.due, Some(START.after(secs(60))));
}

#[tokio::test]
async fn a_run_that_takes_too_long_waits_from_its_end_however_alive_it_is() {
    let harness = Harness::new();
    let submission =
        Submission { timeout: Some(secs(100)), ..leased(30, json!({"jitter": false, "initial_interval": "PT1M"})) };
    harness.submit(submission).await;
    let claimed = harness.claim().await;
    for number in 1..=4 {
        harness.at(START.after(secs(number * 24))).await;
        harness.extend(&claimed, None).await.expect("the run is this worker's");
    }
    harness.at(START.after(ms(99_999.999))).await;
    assert_eq!(harness.job(claimed.id).await.state, State::Active);
    harness.at(START.after(secs(100))).await;
    let waiting = harness.job(claimed.id).await;
    assert_eq!((waiting.state, waiting.due), (State::Retryable, Some(START.after(secs(160)))));
    let error = error_of(&waiting);
    assert_eq!((&error["type"], &error["details"]["timeout_kind"]), (&json!("timeout"), &json!("execution")));
    assert_eq!(refused(harness.extend(&claimed, None).await), Refusal::StaleLease);
}

#[tokio::test]
async fn overdue_runs_meet_the_limit_and_the_exhaustion_of_their_policy() {
    for (on_exhaustion, dead) in [("discard", false), ("dead_letter", true)] {
        let harness = Harness::new();
        harness.submit(leased(30, json!({"max_attempts": 1, "on_exhaustion": on_exhaustion}))).await;
        let claimed = harness.claim().await;
        harness.at(START.after(secs(30))).await;
        let job = harness.job(claimed.id).await;
        assert_eq!((job.state, job.dead, job.times.finished), (State::Discarded, dead, Some(START.after(secs(30)))));
    }
}

#[tokio::test]
async fn overdue_runs_are_retried_whatever_the_lists_say() {
    // OJS §9.2: a timeout is not an error type; Azolla's list of retried errors does not know it either.
    for (dialect, policy) in [
        (Dialect::Ojs, json!({"non_retryable_errors": ["visibility_timeout", "timeout", "error"]})),
        (Dialect::Azolla, json!({"retry": {"include_errors": ["IoError"]}})),
        (Dialect::Mwl, json!({"policies": [{"match": {"types": ["IoError"]}, "attempts": 3}]})),
    ] {
        let harness = Harness::new();
        harness.submit(Submission { lease: Some(secs(30)), ..with_policy(dialect, policy) }).await;
        let claimed = harness.claim().await;
        harness.at(START.after(secs(30))).await;
        let job = harness.job(claimed.id).await;
        assert!(!job.state.is_terminal(), "{dialect}: {job:?}");
        assert_eq!((job.failures.len(), job.attempt), (1, 1), "{dialect}");
    }
}

#[tokio::test]
async fn ret_12_a_settlement_after_the_end_is_refused_and_changes_nothing() {
    let harness = Harness::new();
    harness.submit(leased(30, json!({}))).await;
    let silent = harness.claim().await;
    harness.at(START.after(secs(31))).await;
    let other = harness.claim().await;
    assert_eq!((other.id, other.attempt), (silent.id, 2));
    for ending in [Ending::Done(None), Ending::Failed(failure()), Ending::Released(secs(1))] {
        assert_eq!(refused(harness.settle(&silent, ending).await), Refusal::StaleLease);
    }
    assert_eq!(refused(harness.extend(&silent, None).await), Refusal::StaleLease);
    assert_eq!(harness.job(silent.id).await, other);
    harness.done(&other).await;
}

#[tokio::test]
async fn an_expired_lease_is_valid_until_it_is_reclaimed() {
    let harness = Harness::new();
    harness.submit(leased(30, json!({}))).await;
    let claimed = harness.claim().await;
    harness.clock.set(START.after(secs(45)));
    let extended = harness.extend(&claimed, None).await.expect("it was not reclaimed");
    assert_eq!(extended.lease.expect("a lease").until, START.after(secs(75)));
    harness.at(START.after(secs(74))).await;
    harness.clock.set(START.after(secs(80)));
    assert_eq!(harness.done(&claimed).await.state, State::Completed);
}

#[tokio::test]
async fn an_elapsed_limit_stops_an_overdue_run_too() {
    let harness = Harness::with(|settings| settings.layers.cap.max_elapsed = Some(secs(20)));
    harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = harness.claim().await;
    harness.at(START.after(secs(30))).await;
    let job = harness.job(claimed.id).await;
    let outcome = job.failures[0].verdict.outcome;
    assert!(matches!(outcome, Outcome::Stop { reason: Reason::MaxElapsed { .. }, .. }), "{outcome:?}");
}
