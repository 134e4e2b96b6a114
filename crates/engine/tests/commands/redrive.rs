//! Manual retry: a job that has ended begins another generation.

use super::rig::{Rig, failure, job, refused, runs_until_ended, secs, wait_ms, with_ojs};
use redrive_engine::{Ending, EngineError, Submission};
use redrive_store::{EventKind, Redrive, Refusal, Spec, State};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn any_ended_job_can_be_redriven_and_no_other() {
    let rig = Rig::new();
    for ends in [State::Completed, State::Cancelled, State::Discarded] {
        let submitted = rig.submit(with_ojs(json!({"max_attempts": 1}))).await;
        let refusal = |state| Err(EngineError::Refused(submitted.id, Refusal::WrongState(state)));
        assert_eq!(rig.engine.redrive(submitted.id, Redrive::default()).await, refusal(State::Available));
        let claimed = rig.claim().await;
        assert_eq!(rig.engine.redrive(submitted.id, Redrive::default()).await, refusal(State::Active));
        match ends {
            State::Completed => drop(rig.done(&claimed).await),
            State::Cancelled => drop(rig.engine.cancel(claimed.id).await.expect("it runs")),
            _ => drop(rig.fail(&claimed, failure()).await),
        }
        let ended = rig.job(submitted.id).await;
        assert_eq!(ended.state, ends);
        let transition = rig.engine.redrive(submitted.id, Redrive::default()).await.expect("it has ended");
        assert_eq!((transition.event, transition.from), (EventKind::Redriven, Some(ends)));
        let redriven = transition.job;
        assert_eq!((redriven.state, redriven.attempt, redriven.generation), (State::Available, 0, 1));
        assert_eq!((redriven.dead, redriven.times.finished, &redriven.result), (false, None, &None));
        assert_eq!(redriven.failures, ended.failures, "what happened is kept");
        let claimed = rig.claim().await;
        assert_eq!((claimed.attempt, claimed.leases), (1, 2));
        rig.done(&claimed).await;
    }
}

#[tokio::test]
async fn a_new_generation_begins_the_curve_and_the_clock_anew() {
    let rig = Rig::with(|settings| settings.layers.cap.max_elapsed = Some(secs(100)));
    let id = rig.submit(with_ojs(json!({"max_attempts": 3, "jitter": false}))).await.id;
    for generation in 0..2 {
        let mut waits = Vec::new();
        runs_until_ended(&rig, id, async |rig, job, _| {
            let failed_at = job.times.started.expect("it started");
            let failed = rig.fail(job, failure()).await;
            waits.extend(failed.due.map(|due| wait_ms(failed_at, due)));
        })
        .await;
        assert_eq!(waits, [1_000.0, 2_000.0], "life {generation}");
        // Far beyond the limit on elapsed time of the generation before.
        rig.clock.advance(secs(86_400));
        rig.engine.redrive(id, Redrive::default()).await.expect("it has ended");
    }
    let generations: Vec<(u32, u32)> =
        rig.job(id).await.failures.iter().map(|run| (run.generation, run.attempt)).collect();
    assert_eq!(generations, [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)]);
}

#[tokio::test]
async fn a_new_generation_can_bring_another_specification() {
    let rig = Rig::new();
    let submitted = rig.submit(with_ojs(json!({"max_attempts": 1}))).await;
    let claimed = rig.claim().await;
    rig.fail(&claimed, failure()).await;
    let effective = rig.engine.settings().layers.resolve(None, "mail.send", "other").expect("valid");
    let spec = Spec { queue: "other".into(), policy: effective.policy, ..Spec::clone(&submitted.spec) };
    rig.engine
        .redrive(submitted.id, Redrive { spec: Some(Arc::new(spec)), ..Redrive::default() })
        .await
        .expect("it has ended");
    assert_eq!(rig.look().await, None, "it left its queue");
    let request = redrive_engine::ClaimRequest { queues: vec!["other".into()], ..super::rig::request(1) };
    let claimed = rig.engine.claim(&request).await.expect("an answer").remove(0);
    assert_eq!(rig.fail(&claimed, failure()).await.state, State::Retryable, "by its new policy it has three attempts");
}

#[tokio::test]
async fn tokens_of_an_earlier_generation_are_stale() {
    let rig = Rig::new();
    rig.submit(job()).await;
    let claimed = rig.claim().await;
    rig.done(&claimed).await;
    rig.engine.redrive(claimed.id, Redrive::default()).await.expect("it has ended");
    for ending in [Ending::Done(None), Ending::Failed(failure())] {
        assert_eq!(refused(rig.settle(&claimed, ending).await), Refusal::StaleLease);
    }
    let second = rig.claim().await;
    assert_eq!(refused(rig.settle(&claimed, Ending::Done(None)).await), Refusal::StaleLease);
    assert_eq!(rig.job(second.id).await, second);
}

#[tokio::test]
async fn a_redriven_job_keeps_its_idempotency_key() {
    let rig = Rig::new();
    let keyed = || Submission { idempotency_key: Some("k".into()), ..job() };
    let submitted = rig.submit(keyed()).await;
    rig.engine.cancel(submitted.id).await.expect("it waits");
    let redriven = rig.engine.redrive(submitted.id, Redrive::default()).await.expect("it has ended").job;
    let answers = rig.engine.submit(vec![keyed()]).await.expect("kept");
    assert_eq!(answers, [redrive_store::Enqueued::Existing(redriven)]);
}
