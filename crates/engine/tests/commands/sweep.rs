//! When there is something to do, and that a store which does not answer leaves nothing half done.

use super::common::{Around, Passing, Verb, Wrapped};
use super::rig::{QUEUE, Rig, START, failure, job, secs, with_ojs};
use redrive_engine::{EngineError, Submission};
use redrive_store::{Memory, Missing, Start, State, StoreError};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

#[tokio::test]
async fn the_next_sweep_is_when_the_first_thing_is_due() {
    let rig = Rig::new();
    assert_eq!(rig.engine.next_sweep().await, Ok(None));
    rig.submit(with_ojs(json!({"jitter": false, "initial_interval": "PT50S"}))).await;
    assert_eq!(rig.engine.next_sweep().await, Ok(None), "what is available waits for a worker");
    let at = |s| Ok(Some(START.after(secs(s))));
    rig.submit(Submission { start: Start::Scheduled(START.after(secs(4_000))), ..job() }).await;
    assert_eq!(rig.engine.next_sweep().await, at(4_000));
    let claimed = rig.claim().await;
    assert_eq!(rig.engine.next_sweep().await, at(1_800), "the end of the lease");
    rig.extend(&claimed, Some(secs(20))).await.expect("accepted");
    assert_eq!(rig.engine.next_sweep().await, at(20));
    rig.fail(&claimed, failure()).await;
    assert_eq!(rig.engine.next_sweep().await, at(50), "its retry");
    rig.submit(Submission { expires: Some(START.after(secs(9))), ..job() }).await;
    assert_eq!(rig.engine.next_sweep().await, at(9), "its end");
}

/// A store that cannot be reached while this is switched on, for one verb.
struct Outage {
    verb: Verb,
    /// Whether the call is carried out, and only its answer lost.
    happens: bool,
    on: AtomicBool,
    met: Mutex<Vec<Verb>>,
}

impl Outage {
    fn rig(verb: Verb, happens: bool) -> (Rig, Arc<Self>) {
        let outage = Arc::new(Self { verb, happens, on: AtomicBool::new(false), met: Mutex::default() });
        let store = Wrapped::new(Arc::new(Memory::new()), Arc::clone(&outage));
        (Rig::on(Arc::new(store), 1, |_| {}), outage)
    }

    fn switch(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    fn strikes(&self, verb: Verb, happens: bool) -> Passing {
        let strikes = self.on.load(Ordering::Relaxed) && verb == self.verb && happens == self.happens;
        Box::pin(std::future::ready(if strikes { Err(unreachable()) } else { Ok(()) }))
    }
}

impl Around for Outage {
    fn before(&self, verb: Verb) -> Passing {
        self.met.lock().expect("no panic before").push(verb);
        self.strikes(verb, false)
    }

    fn after(&self, verb: Verb) -> Passing {
        self.strikes(verb, true)
    }
}

fn unreachable() -> StoreError {
    StoreError::Unavailable("an outage in a test".to_owned())
}

#[tokio::test]
async fn an_outage_is_told_and_what_was_due_happens_after_it() {
    for verb in [Verb::Reclaim, Verb::Promote] {
        let (rig, outage) = Outage::rig(verb, false);
        rig.submit(Submission { lease: Some(secs(30)), ..job() }).await;
        let claimed = rig.claim().await;
        rig.clock.set(START.after(secs(60)));
        outage.switch(true);
        assert_eq!(rig.engine.sweep().await, Err(EngineError::Store(unreachable())), "{verb:?}");
        outage.switch(false);
        rig.engine.sweep().await.expect("swept");
        let again = rig.claim().await;
        assert_eq!((again.id, again.attempt, again.failures.len()), (claimed.id, 2, 1), "{verb:?}");
    }
}

#[tokio::test]
async fn a_lost_answer_can_be_asked_for_again() {
    let (rig, outage) = Outage::rig(Verb::Settle, true);
    rig.submit(job()).await;
    let claimed = rig.claim().await;
    let done = || vec![(super::rig::lease_ref(&claimed), redrive_engine::Ending::Done(None))];
    outage.switch(true);
    assert_eq!(rig.engine.settle(done()).await, Err(EngineError::Store(unreachable())));
    outage.switch(false);
    let answer = rig.engine.settle(done()).await.expect("an answer").remove(0).expect("accepted again").into_job();
    assert_eq!(answer, rig.job(claimed.id).await);
    assert_eq!(answer.state, State::Completed);
}

#[tokio::test]
async fn a_queue_that_was_opened_lets_jobs_through_although_the_answer_was_lost() {
    let (rig, outage) = Outage::rig(Verb::Pause, true);
    let scheduled = rig.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    outage.switch(true);
    assert!(rig.engine.pause(QUEUE.into(), false, Missing::Create).await.is_err());
    rig.at(START.after(secs(1))).await;
    assert_eq!(rig.claim().await.id, scheduled.id);
    assert!(outage.met.lock().expect("no panic before").contains(&Verb::Promote));
}
