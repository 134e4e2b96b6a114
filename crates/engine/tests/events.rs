//! The ring of events: what is noted, in which order, and that it is bounded.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use redrive_engine::{
    ClaimRequest, Clock, Ending, Engine, Happening, JobPolicy, Layers, ManualClock, Settings, Submission,
    SystemRandomness,
};
use redrive_policy::{Moment, Span};
use redrive_store::{Enqueued, JobId, LeaseRef, Memory, Start, Token};
use std::sync::Arc;
use std::time::Duration;

fn engine() -> Engine {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::at(Moment::from_micros(1_000_000)));
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    Engine::new(Arc::new(Memory::new()), clock, Arc::new(SystemRandomness::default()), settings)
}

fn submission(kind: &str) -> Submission {
    Submission {
        id: None,
        kind: kind.into(),
        queue: "default".into(),
        priority: 0,
        start: Start::Available,
        expires: None,
        timeout: None,
        lease: None,
        policy: JobPolicy::Configured,
        idempotency_key: None,
        body: Arc::from(&b"{}"[..]),
    }
}

async fn submit(engine: &Engine, kinds: &[&str]) -> Vec<JobId> {
    let submissions = kinds.iter().map(|kind| submission(kind)).collect();
    let enqueued = engine.submit(submissions).await.expect("kept");
    let id = |answer: &Enqueued| match answer {
        Enqueued::Created(job) | Enqueued::Existing(job) => job.id,
    };
    enqueued.iter().map(id).collect()
}

#[tokio::test]
async fn events_come_oldest_first_and_from_a_number_on() {
    let engine = engine();
    let id = submit(&engine, &["a.b"]).await[0];
    let request = ClaimRequest {
        queues: vec!["default".into()],
        count: 1,
        bytes: usize::MAX,
        worker: "w".into(),
        lease: None,
        wait: Duration::ZERO,
    };
    assert_eq!(engine.claim(&request).await.expect("claimed").len(), 1);
    let lease_ref = || LeaseRef { id, token: Token::None };
    engine.settle(vec![(lease_ref(), Ending::Released(Span::ZERO))]).await.expect("settled");
    engine.claim(&request).await.expect("claimed");
    engine.settle(vec![(lease_ref(), Ending::Done(None))]).await.expect("settled");

    let (events, more) = engine.events(0, 10, |_| true);
    let what: Vec<Happening> = events.iter().map(|event| event.what).collect();
    use Happening::{Completed, Enqueued, Released, Started};
    assert_eq!(what, [Enqueued, Started, Released, Started, Completed]);
    assert!(!more);
    let (rest, more) = engine.events(events[1].number, 2, |_| true);
    assert_eq!(rest.iter().map(|event| event.number).collect::<Vec<_>>(), [3, 4]);
    assert!(more);
    assert!(engine.events(0, 10, |event| event.what == Happening::Cancelled).0.is_empty());
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
