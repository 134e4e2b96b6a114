//! The ring of events: what is noted, in which order, and that it is bounded.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use redrive_engine::{
    ClaimRequest, Clock, Ending, Engine, Event, FailureReport, Layers, ManualClock, Settings, Submission,
    SystemRandomness,
};
use redrive_policy::{Moment, Signal, Span};
use redrive_store::{EventKind, JobId, LeaseRef, Memory, State, Token};
use std::sync::Arc;

fn engine() -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Moment::from_micros(1_000_000)));
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    Engine::new(Arc::new(Memory::new()), clock, Arc::new(SystemRandomness::default()), settings)
}

fn submission(kind: &str) -> Submission {
    Submission::new(kind, "default", Arc::from(&b"{}"[..]))
}

async fn submit(engine: &Engine, kinds: &[&str]) -> Vec<JobId> {
    let submissions = kinds.iter().map(|kind| submission(kind)).collect();
    let enqueued = engine.submit(submissions).await.expect("stored");
    enqueued.iter().map(|answer| answer.job().id).collect()
}

#[tokio::test]
async fn events_come_oldest_first_and_from_a_number_on() {
    let engine = engine();
    let id = submit(&engine, &["a.b"]).await[0];
    let request = ClaimRequest::new(vec!["default".into()], "w");
    assert_eq!(engine.claim(&request).await.expect("claimed").len(), 1);
    let lease_ref = || LeaseRef { id, token: Token::None };
    engine.settle(vec![(lease_ref(), Ending::Released(Span::ZERO))]).await.expect("settled");
    engine.claim(&request).await.expect("claimed");
    engine.settle(vec![(lease_ref(), Ending::Done(None))]).await.expect("settled");

    let (events, more) = engine.events(0, 10, |_| true);
    let kinds: Vec<EventKind> = events.iter().filter_map(Event::change).map(|event| event.kind).collect();
    use EventKind::{Claimed, Completed, Enqueued, Released};
    assert_eq!(kinds, [Enqueued, Claimed, Released, Claimed, Completed]);
    assert!(!more);
    let (rest, more) = engine.events(events[1].number, 2, |_| true);
    assert_eq!(rest.iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4]);
    assert!(more);
    assert!(engine.events(0, 10, |event| event.body.event_type() == "job.cancelled").0.is_empty());
}

#[tokio::test]
async fn the_oldest_are_forgotten() {
    let engine = engine();
    for _ in 0..11 {
        submit(&engine, &["a.b"; 1_000]).await;
    }
    let (events, _) = engine.events(0, usize::MAX, |_| true);
    assert_eq!(events.len(), 10_000);
    assert_eq!((events[0].number, events[9_999].number), (1_001, 11_000));
}

async fn claimed(engine: &Engine) -> LeaseRef {
    let request = ClaimRequest::new(vec!["default".into()], "w");
    let job = engine.claim(&request).await.expect("claimed").remove(0);
    LeaseRef { id: job.id, token: Token::Lease(job.lease.expect("it is held").token) }
}

#[tokio::test]
async fn a_repeated_ack_is_one_event() {
    let engine = engine();
    submit(&engine, &["a.b"]).await;
    let lease_ref = claimed(&engine).await;
    for first in [true, false, false] {
        let mut answers = engine.settle(vec![(lease_ref.clone(), Ending::Done(None))]).await.expect("settled");
        let settled = answers.remove(0).expect("accepted");
        assert_eq!(settled.transition().is_some(), first);
        assert_eq!(settled.job().state, State::Completed);
    }
    let (events, _) = engine.events(0, 10, |event| event.body.event_type() == "job.completed");
    assert_eq!(events.len(), 1);
}

#[tokio::test]
async fn an_event_names_the_run_that_ended() {
    let engine = engine();
    submit(&engine, &["a.b"]).await;
    let wait = Span::from_secs(5);
    for ending in [Ending::Released(Span::ZERO), Ending::Failed(requeue(wait))] {
        let lease_ref = claimed(&engine).await;
        engine.settle(vec![(lease_ref, ending)]).await.expect("settled").remove(0).expect("accepted");
    }
    let (events, _) = engine.events(3, 10, |_| true);
    let changes = events.iter().filter_map(Event::change);
    let found: Vec<_> = changes.map(|event| (event.kind, event.state, event.attempt)).collect();
    let expected = [(EventKind::Claimed, State::Active, 1), (EventKind::Snoozed, State::Retryable, 1)];
    assert_eq!(found, expected, "a run that asks to be requeued has not failed");
    let released = engine.events(2, 1, |_| true).0.remove(0);
    assert_eq!(released.change().map(|event| event.attempt), Some(1), "the run that was released");
}

fn requeue(wait: Span) -> FailureReport {
    FailureReport { signal: Signal::RequeueAfter(wait), ..FailureReport::new(Arc::from(&b"{}"[..])) }
}
