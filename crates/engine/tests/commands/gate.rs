//! Pauses: a closed queue hands out nothing, holds back what becomes due, and holds up no other.

use super::common::{Around, Passing, Seeded, Verb, Wrapped};
use super::rig::{QUEUE, Rig, START, failure, job, request, secs, with_ojs};
use redrive_engine::{ClaimRequest, Clock, Engine, Layers, Settings, Submission};
use redrive_store::{Memory, Missing, Start, State};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_closed_queue_takes_jobs_in_and_gives_none_out() {
    let rig = Rig::new();
    let closed = rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    assert!(closed.paused, "also a queue that had no job yet");
    rig.submit(job()).await;
    rig.submit(Submission { queue: "open".into(), ..job() }).await;
    assert_eq!(rig.look().await, None);
    let both = ClaimRequest { queues: vec![QUEUE.into(), "open".into()], ..request(10) };
    assert_eq!(rig.engine.claim(&both).await.expect("an answer").len(), 1);
    let open = rig.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    assert_eq!((open.paused, open.count(State::Available)), (false, 1));
    rig.claim().await;
}

#[tokio::test]
async fn a_worker_in_a_closed_queue_can_finish() {
    let rig = Rig::new();
    rig.submit(job()).await;
    let claimed = rig.claim().await;
    rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    rig.extend(&claimed, None).await.expect("accepted");
    assert_eq!(rig.done(&claimed).await.state, State::Completed);
}

#[tokio::test]
async fn what_is_due_waits_at_the_gate_and_goes_through_when_it_opens() {
    let rig = Rig::new();
    rig.submit(with_ojs(json!({"jitter": false}))).await;
    let claimed = rig.claim().await;
    let waiting = rig.fail(&claimed, failure()).await;
    let scheduled = Submission { queue: "open".into(), start: Start::Scheduled(START.after(secs(1))), ..job() };
    let scheduled = rig.submit(scheduled).await;
    rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    rig.at(START.after(secs(60))).await;
    assert_eq!(rig.job(waiting.id).await, waiting, "it waits as it was");
    assert_eq!(rig.job(scheduled.id).await.state, State::Available, "another queue is not held up");
    rig.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    rig.later(secs(0)).await;
    assert_eq!(rig.claim().await.id, waiting.id);
}

#[tokio::test]
async fn a_silent_run_ends_in_a_closed_queue_too() {
    let rig = Rig::new();
    rig.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = rig.claim().await;
    rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    rig.at(START.after(secs(60))).await;
    let ended = rig.job(claimed.id).await;
    assert_eq!((ended.state, ended.failures.len()), (State::Retryable, 1));
}

#[tokio::test]
async fn a_job_expires_in_a_closed_queue_too() {
    let rig = Rig::new();
    let expiring = rig.submit(Submission { expires: Some(START.after(secs(30))), ..job() }).await;
    rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    rig.at(START.after(secs(30))).await;
    assert_eq!(rig.job(expiring.id).await.state, State::Discarded);
}

#[tokio::test]
async fn pauses_are_remembered_over_a_restart() {
    let store = Memory::new();
    let rig = Rig::on(Arc::new(store.clone()), 1, |_| {});
    let scheduled = rig.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    rig.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");

    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let clock: Arc<dyn Clock> = rig.clock.clone();
    let restarted = Engine::new(Arc::new(store), clock, Arc::new(Seeded::new(2)), settings);
    restarted.recall_pauses().await.expect("an answer");
    rig.clock.advance(secs(60));
    restarted.sweep().await.expect("swept");
    assert_eq!(restarted.job(scheduled.id).await.expect("kept").state, State::Scheduled);
    restarted.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    restarted.sweep().await.expect("swept");
    assert_eq!(restarted.job(scheduled.id).await.expect("kept").state, State::Available);
}

/// Holds back the answer to the first pause.
struct SlowFirst {
    first: AtomicBool,
    answer: Arc<Semaphore>,
}

impl Around for SlowFirst {
    fn before(&self, _: Verb) -> Passing {
        Box::pin(std::future::ready(Ok(())))
    }

    fn after(&self, verb: Verb) -> Passing {
        let held = verb == Verb::Pause && self.first.swap(false, Ordering::Relaxed);
        let answer = Arc::clone(&self.answer);
        Box::pin(async move {
            if held {
                answer.acquire().await.expect("never closed").forget();
            }
            Ok(())
        })
    }
}

#[tokio::test]
async fn answers_that_overtake_each_other_do_not_leave_a_gate_closed() {
    let answer = Arc::new(Semaphore::new(0));
    let around = SlowFirst { first: AtomicBool::new(true), answer: Arc::clone(&answer) };
    let rig = Rig::on(Arc::new(Wrapped::new(Arc::new(Memory::new()), Arc::new(around))), 1, |_| {});
    let scheduled = rig.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    let pause = |paused| {
        let engine = Arc::clone(&rig.engine);
        tokio::spawn(async move { engine.pause(QUEUE.into(), paused, Missing::Create).await.expect("an answer") })
    };
    let closing = pause(true);
    tokio::task::yield_now().await;
    let opening = pause(false);
    tokio::task::yield_now().await;
    answer.add_permits(1);
    assert!(closing.await.expect("no panic").paused);
    assert!(!opening.await.expect("no panic").paused);
    rig.at(START.after(secs(1))).await;
    assert_eq!(rig.claim().await.id, scheduled.id);
}
