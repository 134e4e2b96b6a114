//! Enqueueing jobs.

use super::harness::{Harness, QUEUE, START, failure, job, secs, with_ojs};
use redrive_engine::{EngineError, JobPolicy, Layer, PolicyDocument, PolicyText, Submission};
use redrive_policy::dialect::Dialect;
use redrive_policy::{AttemptLimit, Span};
use redrive_store::{Enqueued, EventKind, JobId, Start, State};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_job_starts_available_scheduled_or_pending() {
    let harness = Harness::new();
    let at = START.after(secs(60));
    for (start, state, due) in [
        (Start::Available, State::Available, None),
        (Start::Scheduled(at), State::Scheduled, Some(at)),
        (Start::Scheduled(START), State::Available, None),
        (Start::Pending, State::Pending, None),
    ] {
        let job = harness.submit(Submission { start, ..job() }).await;
        assert_eq!((job.state, job.due, job.attempt), (state, due, 0), "{start:?}");
        assert_eq!(job.times.created, START);
        assert_eq!(harness.job(job.id).await, job);
    }
}

#[tokio::test]
async fn a_scheduled_job_starts_at_its_time_and_not_before() {
    let harness = Harness::new();
    let waiting = harness.submit(Submission { start: Start::Scheduled(START.after(secs(60))), ..job() }).await;
    let claimed = harness.claim_when_due(&waiting).await;
    assert_eq!(claimed.times.started, Some(START.after(secs(60))));
    assert_eq!(claimed.attempt, 1);
}

#[tokio::test]
async fn a_pending_job_starts_once_it_is_activated() {
    let harness = Harness::new();
    let pending = harness.submit(Submission { start: Start::Pending, ..job() }).await;
    harness.advance(secs(86_400)).await;
    assert_eq!(harness.try_claim().await, None);
    let activated = harness.engine.activate(pending.id).await.expect("it is pending");
    assert_eq!((activated.event, activated.from), (EventKind::Activated, Some(State::Pending)));
    assert_eq!(activated.job.state, State::Available);
    let again = harness.engine.activate(pending.id).await;
    assert!(matches!(again, Err(EngineError::Refused(id, _)) if id == pending.id), "{again:?}");
    assert_eq!(harness.claim().await.id, pending.id);
}

#[tokio::test]
async fn a_key_is_worth_one_job_however_often_it_is_sent() {
    let harness = Harness::new();
    let keyed = || Submission { idempotency_key: Some("order-1".into()), ..job() };
    let first = harness.submit(keyed()).await;
    let claimed = harness.claim().await;
    let answers = harness.engine.submit(vec![keyed(), keyed()]).await.expect("stored");
    assert_eq!(answers, [Enqueued::Existing(claimed.clone()), Enqueued::Existing(claimed.clone())]);
    assert_eq!(first.id, claimed.id);
    assert_eq!(harness.try_claim().await, None, "there is one job only");

    harness.done(&claimed).await;
    harness.engine.remove(first.id).await.expect("it has ended");
    let fresh = harness.submit(keyed()).await;
    assert_ne!(fresh.id, first.id, "a forgotten job frees its key");
}

#[tokio::test]
async fn a_batch_is_stored_whole_or_not_at_all() {
    let harness = Harness::new();
    let taken = harness.submit(job()).await;
    let batch = vec![job(), Submission { id: Some(taken.id), ..job() }, job()];
    let answer = harness.engine.submit(batch).await;
    assert_eq!(answer, Err(EngineError::Duplicate(taken.id)));
    assert_eq!(harness.claim_some(10).await.len(), 1, "only the first one is there");

    let batch = vec![job(), with_ojs(json!({"max_attempts": "three"}))];
    let answer = harness.engine.submit(batch).await;
    assert!(matches!(answer, Err(EngineError::InvalidPolicy(_))), "{answer:?}");
    assert_eq!(harness.try_claim().await, None);
}

#[tokio::test]
async fn ret_16_every_problem_of_a_policy_is_reported_at_the_enqueue() {
    let harness = Harness::new();
    let bad = json!({"max_attempts": -1, "initial_interval": "1s", "backoff_coefficient": 0.5, "surprise": true});
    let Err(EngineError::InvalidPolicy(problems)) = harness.engine.submit(vec![with_ojs(bad)]).await else {
        panic!("the policy must be refused");
    };
    let mut paths: Vec<&str> = problems.0.iter().map(|problem| problem.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/backoff_coefficient", "/initial_interval", "/max_attempts", "/surprise"]);
    assert!(harness.engine.queues().await.expect("an answer").is_empty(), "not even the queue is known");
}

#[tokio::test]
async fn ids_differ_and_sort_by_time() {
    let harness = Harness::new();
    let mut names: Vec<JobId> = Vec::new();
    for _ in 0..50 {
        harness.clock.advance(Span::from_millis(1));
        names.push(harness.submit(job()).await.id);
    }
    assert!(names.is_sorted(), "{names:?}");
    names.dedup();
    assert_eq!(names.len(), 50);
}

#[tokio::test]
async fn the_effective_policy_is_known_before_the_job_is_enqueued() {
    let harness = Harness::new();
    let read =
        |text: &str| Ok(PolicyDocument { dialect: Dialect::Ojs, value: serde_json::from_str(text).expect("JSON") });
    let own = |text| Some(PolicyText { text, read });
    for (own, layer, attempts) in [(None, "server", 3), (own(r#"{"max_attempts": 7}"#), "job", 7)] {
        let effective = harness.engine.effective(own, "mail.send", QUEUE).expect("valid");
        assert_eq!((effective.layer, effective.policy.attempts), (layer, AttemptLimit::AtMost(attempts)));
        let enqueued =
            harness.submit(Submission { policy: JobPolicy::Effective(Arc::clone(&effective)), ..job() }).await;
        assert_eq!(enqueued.spec.policy, effective.policy);
    }
    let problems = harness.engine.effective(own(r#"{"max_attempts": -1}"#), "mail.send", QUEUE).expect_err("not valid");
    assert_eq!(problems.0[0].path, "/max_attempts");
}

#[tokio::test]
async fn the_same_text_of_a_policy_is_resolved_once() {
    let harness = Harness::with(|settings| {
        let layer = Layer::read(PolicyDocument { dialect: Dialect::Ojs, value: json!({"max_attempts": 9}) });
        settings.layers.queues.insert("slow".into(), layer.expect("valid"));
    });
    let azolla = |_: &str| Ok(PolicyDocument { dialect: Dialect::Azolla, value: json!({}) });
    let harbor = |_: &str| Ok(PolicyDocument { dialect: Dialect::TaskHarbor, value: json!({}) });
    let text = |read| Some(PolicyText { text: "{}", read });
    let effective = |own, queue| harness.engine.effective(own, "a.b", queue).expect("valid");
    assert!(Arc::ptr_eq(&effective(text(azolla), "x"), &effective(text(azolla), "y")), "neither queue has a policy");
    assert_ne!(effective(text(azolla), "x").written, effective(text(harbor), "x").written, "read in another way");
    assert_ne!(effective(None, "x").policy, effective(None, "slow").policy);
}

#[tokio::test]
async fn an_expired_job_never_runs() {
    let harness = Harness::new();
    let expires = START.after(secs(60));
    let submitted = harness.submit(Submission { expires: Some(expires), ..job() }).await;
    harness.clock.set(expires);
    assert_eq!(harness.try_claim().await, None, "not even before the sweep");
    harness.advance(Span::ZERO).await;
    let gone = harness.job(submitted.id).await;
    assert_eq!((gone.state, gone.dead, gone.attempt), (State::Discarded, false, 0));

    let retried =
        Submission { expires: Some(expires.after(secs(60))), ..with_ojs(json!({"initial_interval": "PT2M"})) };
    let retried = harness.submit(retried).await;
    let claimed = harness.claim().await;
    harness.fail(&claimed, failure()).await;
    harness.advance(secs(300)).await;
    assert_eq!(harness.job(retried.id).await.state, State::Discarded, "neither does its retry");
    let queues = harness.engine.queues().await.expect("an answer");
    assert_eq!((&*queues[0].name, queues[0].count(State::Discarded)), (QUEUE, 2));
}
