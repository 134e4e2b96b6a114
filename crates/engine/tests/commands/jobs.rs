//! Reading and removing jobs and queues.

use super::harness::{Harness, START, failure, job, secs, with_ojs};
use redrive_engine::{EngineError, Submission};
use redrive_policy::Span;
use redrive_store::{EventKind, Filter, JobId, Page, Redrive, Refusal, State};
use serde_json::json;

const ALL: Page = Page::new(0, 100);

#[tokio::test]
async fn an_unknown_job_is_not_found_by_any_command() {
    let harness = Harness::new();
    let id = JobId::new(START, 7);
    let missing = || EngineError::Refused(id, Refusal::NotFound);
    assert_eq!(harness.engine.job(id).await, Err(missing()));
    assert_eq!(harness.engine.cancel(id).await, Err(missing()));
    assert_eq!(harness.engine.activate(id).await, Err(missing()));
    assert_eq!(harness.engine.redrive(id, Redrive::default()).await, Err(missing()));
    assert_eq!(harness.engine.remove(id).await, Err(missing()));
}

#[tokio::test]
async fn jobs_are_listed_newest_first_in_pages() {
    let harness = Harness::new();
    let mut ids = Vec::new();
    for kind in ["a.b", "a.c", "a.b", "a.b"] {
        harness.clock.advance(Span::from_millis(1));
        ids.push(harness.submit(Submission { kind: kind.into(), ..job() }).await.id);
    }
    let filter = Filter { kind: Some("a.b".into()), ..Filter::default() };
    let listed = harness.engine.list(filter.clone(), Page::new(1, 1)).await.expect("an answer");
    assert_eq!((listed.total, listed.jobs.len(), listed.jobs[0].id), (None, 1, ids[2]));
    let listed = harness.engine.list(filter, Page::new(9, 1)).await.expect("an answer");
    assert_eq!((listed.next, listed.jobs.len()), (None, 0));
}

#[tokio::test]
async fn queues_count_their_jobs_by_state() {
    let harness = Harness::new();
    harness.engine.submit(vec![job(), job(), job()]).await.expect("stored");
    harness.submit(Submission { queue: "other".into(), ..job() }).await;
    let claimed = harness.claim_some(2).await;
    harness.done(&claimed[0]).await;
    let queues = harness.engine.queues().await.expect("an answer");
    let counts = |index: usize| State::ALL.map(|state| queues[index].count(state));
    assert_eq!((&*queues[0].name, counts(0)), ("default", [0, 0, 1, 1, 0, 1, 0, 0]));
    assert_eq!((&*queues[1].name, counts(1)), ("other", [0, 0, 1, 0, 0, 0, 0, 0]));
}

#[tokio::test]
async fn only_what_has_ended_can_be_removed() {
    let harness = Harness::new();
    let submitted = harness.submit(job()).await;
    let refused = |state| Err(EngineError::Refused(submitted.id, Refusal::WrongState(state)));
    assert_eq!(harness.engine.remove(submitted.id).await, refused(State::Available));
    let claimed = harness.claim().await;
    assert_eq!(harness.engine.remove(submitted.id).await, refused(State::Active));
    let done = harness.done(&claimed).await;
    let removed = harness.engine.remove(submitted.id).await.expect("it has ended");
    assert_eq!((removed.event, removed.from, removed.job), (EventKind::Removed, Some(State::Completed), done));
    assert!(harness.engine.job(submitted.id).await.is_err());
}

#[tokio::test]
async fn ended_jobs_are_pruned_after_their_retention_and_dead_letters_later() {
    let harness = Harness::with(|settings| {
        settings.retention.finished = secs(100);
        settings.retention.dead = secs(1_000);
        // Less than there is to prune, so that one call takes several steps.
        settings.sweep_step = 2;
    });
    for _ in 0..5 {
        harness.submit(job()).await;
        let claimed = harness.claim().await;
        harness.done(&claimed).await;
    }
    let dead = harness.submit(with_ojs(json!({"max_attempts": 1, "on_exhaustion": "dead_letter"}))).await;
    let claimed = harness.claim().await;
    harness.fail(&claimed, failure()).await;
    let waiting = harness.submit(job()).await;

    harness.clock.advance(Span::saturating_ms(99_999.999));
    assert_eq!(harness.engine.prune().await, Ok(0), "a microsecond early");
    harness.clock.advance(Span::saturating_ms(0.001));
    assert_eq!(harness.engine.prune().await, Ok(5));
    let left = harness.engine.list(Filter::default(), ALL).await.expect("an answer");
    assert_eq!(left.jobs.iter().map(|job| job.id).collect::<Vec<_>>().len(), 2);
    harness.clock.advance(secs(900));
    assert_eq!(harness.engine.prune().await, Ok(1));
    assert!(harness.engine.job(dead.id).await.is_err());
    harness.clock.advance(secs(86_400 * 365));
    assert_eq!(harness.engine.prune().await, Ok(0));
    assert_eq!(harness.job(waiting.id).await.state, State::Available, "what has not ended stays");
}
