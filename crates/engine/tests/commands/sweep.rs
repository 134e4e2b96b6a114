//! When sweeps happen; and a store that does not answer leaves nothing half done.

use super::common::{Around, Passing, Verb, Wrapped};
use super::harness::{Harness, QUEUE, START, failure, job, secs, with_ojs};
use redrive_engine::{EngineError, Submission};
use redrive_store::{Memory, Missing, Start, State, StoreError};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn the_next_sweep_is_when_the_first_thing_is_due() {
    let harness = Harness::new();
    assert_eq!(harness.engine.next_sweep().await, Ok(None));
    harness.submit(with_ojs(json!({"jitter": false, "initial_interval": "PT50S"}))).await;
    assert_eq!(harness.engine.next_sweep().await, Ok(None), "what is available waits for a worker");
    let at = |s| Ok(Some(START.after(secs(s))));
    harness.submit(Submission { start: Start::Scheduled(START.after(secs(4_000))), ..job() }).await;
    assert_eq!(harness.engine.next_sweep().await, at(4_000));
    let claimed = harness.claim().await;
    assert_eq!(harness.engine.next_sweep().await, at(1_800), "the end of the lease");
    harness.extend(&claimed, Some(secs(20))).await.expect("accepted");
    assert_eq!(harness.engine.next_sweep().await, at(20));
    harness.fail(&claimed, failure()).await;
    assert_eq!(harness.engine.next_sweep().await, at(50), "its retry");
    harness.submit(Submission { expires: Some(START.after(secs(9))), ..job() }).await;
    assert_eq!(harness.engine.next_sweep().await, at(9), "its end");
}

/// A store that cannot be reached while this is switched on, for one operation.
struct Outage {
    verb: Verb,
    /// Whether the call is carried out, and only its answer is lost.
    happens: bool,
    on: AtomicBool,
    met: Mutex<Vec<Verb>>,
}

impl Outage {
    fn harness(verb: Verb, happens: bool) -> (Harness, Arc<Self>) {
        let outage = Arc::new(Self { verb, happens, on: AtomicBool::new(false), met: Mutex::default() });
        let store = Wrapped::new(Arc::new(Memory::new()), Arc::clone(&outage));
        (Harness::on(Arc::new(store), 1, |_| {}), outage)
    }

    fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    fn outcome(&self, verb: Verb, happens: bool) -> Passing {
        let outcome = self.on.load(Ordering::Relaxed) && verb == self.verb && happens == self.happens;
        Box::pin(std::future::ready(if outcome { Err(unreachable()) } else { Ok(()) }))
    }
}

impl Around for Outage {
    fn before(&self, verb: Verb) -> Passing {
        self.met.lock().expect("no panic before").push(verb);
        self.outcome(verb, false)
    }

    fn after(&self, verb: Verb) -> Passing {
        self.outcome(verb, true)
    }
}

fn unreachable() -> StoreError {
    StoreError::Unavailable("an outage in a test".to_owned())
}

#[tokio::test]
async fn an_outage_is_reported_and_what_was_due_happens_after_it() {
    for verb in [Verb::Reclaim, Verb::Promote] {
        let (harness, outage) = Outage::harness(verb, false);
        harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
        let claimed = harness.claim().await;
        harness.clock.set(START.after(secs(60)));
        outage.switch(true);
        assert_eq!(harness.engine.sweep().await, Err(EngineError::Store(unreachable())), "{verb:?}");
        outage.switch(false);
        harness.engine.sweep().await.expect("swept");
        let again = harness.claim().await;
        assert_eq!((again.id, again.attempt, again.failures.len()), (claimed.id, 2, 1), "{verb:?}");
    }
}

#[tokio::test]
async fn a_call_whose_answer_was_lost_can_be_repeated() {
    let (harness, outage) = Outage::harness(Verb::Settle, true);
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    let done = || vec![(super::harness::lease_ref(&claimed), redrive_engine::Ending::Done(None))];
    outage.switch(true);
    assert_eq!(harness.engine.settle(done()).await, Err(EngineError::Store(unreachable())));
    outage.switch(false);
    let answer = harness.engine.settle(done()).await.expect("an answer").remove(0).expect("accepted again").into_job();
    assert_eq!(answer, harness.job(claimed.id).await);
    assert_eq!(answer.state, State::Completed);
}

#[tokio::test]
async fn a_resumed_queue_returns_jobs_although_the_answer_was_lost() {
    let (harness, outage) = Outage::harness(Verb::Pause, true);
    let scheduled = harness.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    outage.switch(true);
    assert!(harness.engine.pause(QUEUE.into(), false, Missing::Create).await.is_err());
    harness.at(START.after(secs(1))).await;
    assert_eq!(harness.claim().await.id, scheduled.id);
    assert!(outage.met.lock().expect("no panic before").contains(&Verb::Promote));
}
