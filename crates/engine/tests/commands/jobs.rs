//! Looking at jobs and queues, and forgetting them.

use super::rig::{Rig, START, failure, job, secs, with_ojs};
use redrive_engine::{EngineError, Submission};
use redrive_policy::Span;
use redrive_store::{EventKind, Filter, JobId, Page, Redrive, Refusal, State};
use serde_json::json;

const ALL: Page = Page::new(0, 100);

#[tokio::test]
async fn what_is_not_there_is_not_found_by_any_command() {
    let rig = Rig::new();
    let id = JobId::new(START, 7);
    let missing = || EngineError::Refused(id, Refusal::NotFound);
    assert_eq!(rig.engine.job(id).await, Err(missing()));
    assert_eq!(rig.engine.cancel(id).await, Err(missing()));
    assert_eq!(rig.engine.activate(id).await, Err(missing()));
    assert_eq!(rig.engine.redrive(id, Redrive::default()).await, Err(missing()));
    assert_eq!(rig.engine.remove(id).await, Err(missing()));
}

#[tokio::test]
async fn jobs_are_listed_newest_first_in_pages() {
    let rig = Rig::new();
    let mut ids = Vec::new();
    for kind in ["a.b", "a.c", "a.b", "a.b"] {
        rig.clock.advance(Span::from_millis(1));
        ids.push(rig.submit(Submission { kind: kind.into(), ..job() }).await.id);
    }
    let filter = Filter { kind: Some("a.b".into()), ..Filter::default() };
    let listed = rig.engine.list(filter.clone(), Page::new(1, 1)).await.expect("an answer");
    assert_eq!((listed.total, listed.jobs.len(), listed.jobs[0].id), (None, 1, ids[2]));
    let listed = rig.engine.list(filter, Page::new(9, 1)).await.expect("an answer");
    assert_eq!((listed.next, listed.jobs.len()), (None, 0));
}

#[tokio::test]
async fn queues_count_their_jobs_by_state() {
    let rig = Rig::new();
    rig.engine.submit(vec![job(), job(), job()]).await.expect("kept");
    rig.submit(Submission { queue: "other".into(), ..job() }).await;
    let claimed = rig.claim_some(2).await;
    rig.done(&claimed[0]).await;
    let queues = rig.engine.queues().await.expect("an answer");
    let counts = |index: usize| State::ALL.map(|state| queues[index].count(state));
    assert_eq!((&*queues[0].name, counts(0)), ("default", [0, 0, 1, 1, 0, 1, 0, 0]));
    assert_eq!((&*queues[1].name, counts(1)), ("other", [0, 0, 1, 0, 0, 0, 0, 0]));
}

#[tokio::test]
async fn only_what_has_ended_can_be_removed() {
    let rig = Rig::new();
    let submitted = rig.submit(job()).await;
    let refused = |state| Err(EngineError::Refused(submitted.id, Refusal::WrongState(state)));
    assert_eq!(rig.engine.remove(submitted.id).await, refused(State::Available));
    let claimed = rig.claim().await;
    assert_eq!(rig.engine.remove(submitted.id).await, refused(State::Active));
    let done = rig.done(&claimed).await;
    let removed = rig.engine.remove(submitted.id).await.expect("it has ended");
    assert_eq!((removed.event, removed.from, removed.job), (EventKind::Removed, Some(State::Completed), done));
    assert!(rig.engine.job(submitted.id).await.is_err());
}

#[tokio::test]
async fn what_has_ended_leaves_when_its_time_is_over_and_dead_letters_stay_longer() {
    let rig = Rig::with(|settings| {
        settings.retention.finished = secs(100);
        settings.retention.dead = secs(1_000);
        // Smaller than what is to be pruned, so that one call takes several steps.
        settings.sweep_step = 2;
    });
    for _ in 0..5 {
        rig.submit(job()).await;
        let claimed = rig.claim().await;
        rig.done(&claimed).await;
    }
    let dead = rig.submit(with_ojs(json!({"max_attempts": 1, "on_exhaustion": "dead_letter"}))).await;
    let claimed = rig.claim().await;
    rig.fail(&claimed, failure()).await;
    let waiting = rig.submit(job()).await;

    rig.clock.advance(Span::saturating_ms(99_999.999));
    assert_eq!(rig.engine.prune().await, Ok(0), "a microsecond early");
    rig.clock.advance(Span::saturating_ms(0.001));
    assert_eq!(rig.engine.prune().await, Ok(5));
    let left = rig.engine.list(Filter::default(), ALL).await.expect("an answer");
    assert_eq!(left.jobs.iter().map(|job| job.id).collect::<Vec<_>>().len(), 2);
    rig.clock.advance(secs(900));
    assert_eq!(rig.engine.prune().await, Ok(1));
    assert!(rig.engine.job(dead.id).await.is_err());
    rig.clock.advance(secs(86_400 * 365));
    assert_eq!(rig.engine.prune().await, Ok(0));
    assert_eq!(rig.job(waiting.id).await.state, State::Available, "what has not ended stays");
}
