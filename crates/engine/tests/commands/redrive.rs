//! Manual retry: a job that has ended begins another generation.

use super::harness::{Harness, failure, job, refused, runs_until_ended, secs, wait_ms, with_ojs};
use redrive_engine::{Ending, EngineError, Submission};
use redrive_store::{EventKind, Redrive, Refusal, Spec, State};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn any_ended_job_can_be_redriven_and_no_other() {
    let harness = Harness::new();
    for ends in [State::Completed, State::Cancelled, State::Discarded] {
        let submitted = harness.submit(with_ojs(json!({"max_attempts": 1}))).await;
        let refusal = |state| Err(EngineError::Refused(submitted.id, Refusal::WrongState(state)));
        assert_eq!(harness.engine.redrive(submitted.id, Redrive::default()).await, refusal(State::Available));
        let claimed = harness.claim().await;
        assert_eq!(harness.engine.redrive(submitted.id, Redrive::default()).await, refusal(State::Active));
        match ends {
            State::Completed => drop(harness.done(&claimed).await),
            State::Cancelled => drop(harness.engine.cancel(claimed.id).await.expect("it runs")),
            _ => drop(harness.fail(&claimed, failure()).await),
        }
        let ended = harness.job(submitted.id).await;
        assert_eq!(ended.state, ends);
        let transition = harness.engine.redrive(submitted.id, Redrive::default()).await.expect("it has ended");
        assert_eq!((transition.event, transition.from), (EventKind::Redriven, Some(ends)));
        let redriven = transition.job;
        assert_eq!((redriven.state, redriven.attempt, redriven.generation), (State::Available, 0, 1));
        assert_eq!((redriven.dead, redriven.times.finished, &redriven.result), (false, None, &None));
        assert_eq!(redriven.failures, ended.failures, "what happened is kept");
        let claimed = harness.claim().await;
        assert_eq!((claimed.attempt, claimed.leases), (1, 2));
        harness.done(&claimed).await;
    }
}

#[tokio::test]
async fn a_new_generation_begins_the_curve_and_the_clock_anew() {
    let harness = Harness::with(|settings| settings.layers.cap.max_elapsed = Some(secs(100)));
    let id = harness.submit(with_ojs(json!({"max_attempts": 3, "jitter": false}))).await.id;
    for generation in 0..2 {
        let mut waits = Vec::new();
        runs_until_ended(&harness, id, async |harness, job, _| {
            let failed_at = job.times.started.expect("it started");
            let failed = harness.fail(job, failure()).await;
            waits.extend(failed.due.map(|due| wait_ms(failed_at, due)));
        })
        .await;
        assert_eq!(waits, [1_000.0, 2_000.0], "generation {generation}");
        // Far beyond the limit on elapsed time of the generation before.
        harness.clock.advance(secs(86_400));
        harness.engine.redrive(id, Redrive::default()).await.expect("it has ended");
    }
    let generations: Vec<(u32, u32)> =
        harness.job(id).await.failures.iter().map(|run| (run.generation, run.attempt)).collect();
    assert_eq!(generations, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]);
}

#[tokio::test]
async fn a_new_generation_can_bring_another_specification() {
    let harness = Harness::new();
    let submitted = harness.submit(with_ojs(json!({"max_attempts": 1}))).await;
    let claimed = harness.claim().await;
    harness.fail(&claimed, failure()).await;
    let effective = harness.engine.settings().layers.resolve(None, "mail.send", "other").expect("valid");
    let spec = Spec { queue: "other".into(), policy: effective.policy, ..Spec::clone(&submitted.spec) };
    harness
        .engine
        .redrive(submitted.id, Redrive { spec: Some(Arc::new(spec)), ..Redrive::default() })
        .await
        .expect("it has ended");
    assert_eq!(harness.try_claim().await, None, "it left its queue");
    let request = redrive_engine::ClaimRequest { queues: vec!["other".into()], ..super::harness::request(1) };
    let claimed = harness.engine.claim(&request).await.expect("an answer").remove(0);
    assert_eq!(
        harness.fail(&claimed, failure()).await.state,
        State::Retryable,
        "by its new policy it has three attempts"
    );
}

#[tokio::test]
async fn tokens_of_an_earlier_generation_are_stale() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    harness.done(&claimed).await;
    harness.engine.redrive(claimed.id, Redrive::default()).await.expect("it has ended");
    for ending in [Ending::Done(None), Ending::Failed(failure())] {
        assert_eq!(refused(harness.settle(&claimed, ending).await), Refusal::StaleLease);
    }
    let second = harness.claim().await;
    assert_eq!(refused(harness.settle(&claimed, Ending::Done(None)).await), Refusal::StaleLease);
    assert_eq!(harness.job(second.id).await, second);
}

#[tokio::test]
async fn a_redriven_job_keeps_its_idempotency_key() {
    let harness = Harness::new();
    let keyed = || Submission { idempotency_key: Some("k".into()), ..job() };
    let submitted = harness.submit(keyed()).await;
    harness.engine.cancel(submitted.id).await.expect("it waits");
    let redriven = harness.engine.redrive(submitted.id, Redrive::default()).await.expect("it has ended").job;
    let answers = harness.engine.submit(vec![keyed()]).await.expect("stored");
    assert_eq!(answers, [redrive_store::Enqueued::Existing(redriven)]);
}
