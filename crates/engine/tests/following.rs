//! Following events: what was missed is counted, what comes is announced, and the throughput is that of a minute.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use redrive_engine::{
    ClaimRequest, Clock, EVENTS_STORED, Ending, Engine, FailureReport, Layers, ManualClock, Settings, Submission,
    SystemRandomness,
};
use redrive_policy::{Moment, Span};
use redrive_store::{EventKind, LeaseRef, Memory, State, Token};
use std::sync::Arc;

fn engine() -> (Engine, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Moment::from_micros(1_000_000_000)));
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let store = Arc::new(Memory::new());
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as _;
    (Engine::new(store, shared, Arc::new(SystemRandomness::default()), settings), clock)
}

async fn submit(engine: &Engine, queue: &str, count: usize) {
    let submission = || Submission::new("a.b", queue, Arc::from(&b"{}"[..]));
    engine.submit((0..count).map(|_| submission()).collect()).await.expect("stored");
}

/// Claims and ends one job of a queue.
async fn run(engine: &Engine, queue: &str, ending: Ending) {
    let job = engine.claim(&ClaimRequest::new(vec![queue.into()], "w")).await.expect("claimed").remove(0);
    let lease_ref = LeaseRef { id: job.id, token: Token::None };
    engine.settle(vec![(lease_ref, ending)]).await.expect("settled").remove(0).expect("accepted");
}

#[tokio::test]
async fn what_is_missed_is_counted_and_what_does_not_fit_is_passed_over() {
    let (engine, _) = engine();
    submit(&engine, "q", 5).await;
    submit(&engine, "other", 3).await;
    let numbers = |after, most_behind, limit| {
        let found = engine.events_since(after, most_behind, limit, |event| event.body.queue() == Some("q"));
        (found.missed, found.events.iter().map(|event| event.number).collect::<Vec<_>>(), found.seen)
    };
    assert_eq!(numbers(0, EVENTS_STORED, 100), (0, vec![1, 2, 3, 4, 5], 8));
    assert_eq!(numbers(0, EVENTS_STORED, 2), (0, vec![1, 2], 2), "a full page goes on after its last event");
    assert_eq!(numbers(2, 5, 100), (1, vec![4, 5], 8), "the third lies too far back");
    assert_eq!(numbers(8, 5, 100), (0, vec![], 8));
    assert_eq!(engine.latest_event(), 8);
    submit(&engine, "other", EVENTS_STORED).await;
    let found = engine.events_since(5, usize::MAX, 1, |_| true);
    assert_eq!((found.missed, found.events[0].number), (3, 9), "the log has dropped three of them");
}

#[tokio::test]
async fn events_are_announced_to_those_who_wait() {
    let (engine, _) = engine();
    submit(&engine, "q", 1).await;
    let mut arrivals = engine.watch_events();
    assert!(!arrivals.has_changed().expect("the engine is there"), "what came before is not announced");
    submit(&engine, "q", 2).await;
    arrivals.changed().await.expect("the engine is there");
    assert_eq!(*arrivals.borrow_and_update(), 3);
    run(&engine, "q", Ending::Done(None)).await;
    let last = engine.events_since(4, 100, 1, |_| true).events.remove(0);
    let last = last.change().expect("an event of a job");
    assert_eq!((last.kind, last.from, last.state), (EventKind::Completed, Some(State::Active), State::Completed));
    assert_eq!(last.worker.as_deref(), Some("w"));
}

#[tokio::test]
async fn the_throughput_is_that_of_the_last_minute() {
    let (engine, clock) = engine();
    submit(&engine, "a", 3).await;
    submit(&engine, "b", 1).await;
    run(&engine, "a", Ending::Done(None)).await;
    clock.advance(Span::from_secs(45));
    run(&engine, "a", Ending::Done(None)).await;
    run(&engine, "b", Ending::Failed(FailureReport::new(Arc::from(&b"{}"[..])))).await;
    let numbers = |queue| {
        let found = engine.throughput(queue);
        (found.completed, found.failed)
    };
    assert_eq!((numbers(None), numbers(Some("a")), numbers(Some("b"))), ((2.0, 1.0), (2.0, 0.0), (0.0, 1.0)));
    clock.advance(Span::from_secs(30));
    assert_eq!(numbers(None), (1.0, 1.0), "the first is older than a minute");
    run(&engine, "a", Ending::Done(None)).await;
    submit(&engine, "c", EVENTS_STORED - 1).await;
    clock.advance(Span::from_secs(6));
    assert_eq!(numbers(None), (10.0, 0.0), "the events cover six seconds, with one run");
}
