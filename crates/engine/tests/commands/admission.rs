//! Admission: no worker gets a job of a held queue, however the job became available, and no other queue is delayed.

use super::common::{Around, Passing, Seeded, Verb, Wrapped};
use super::harness::{Harness, QUEUE, START, failure, job, request, secs, with_ojs};
use redrive_engine::{ClaimRequest, Clock, Engine, Layers, Settings, Submission};
use redrive_policy::Span;
use redrive_store::{Job, JobId, Memory, Missing, Redrive, Start, State, Store};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

#[tokio::test]
async fn a_paused_queue_accepts_jobs_and_gives_none_to_a_claim() {
    let harness = Harness::new();
    let closed = harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    assert!(closed.paused, "also a queue that had no job yet");
    harness.submit(job()).await;
    harness.submit(Submission { queue: "open".into(), ..job() }).await;
    assert_eq!(harness.try_claim().await, None);
    let both = ClaimRequest { queues: vec![QUEUE.into(), "open".into()], ..request(10) };
    assert_eq!(harness.engine.claim(&both).await.expect("an answer").len(), 1);
    let open = harness.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    assert_eq!((open.paused, open.count(State::Available)), (false, 1));
    harness.claim().await;
}

#[tokio::test]
async fn a_worker_of_a_paused_queue_can_finish() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    harness.extend(&claimed, None).await.expect("accepted");
    assert_eq!(harness.done(&claimed).await.state, State::Completed);
}

#[tokio::test]
async fn what_is_due_in_a_paused_queue_waits_and_is_promoted_when_it_is_resumed() {
    let harness = Harness::new();
    harness.submit(with_ojs(json!({"jitter": false}))).await;
    let claimed = harness.claim().await;
    let waiting = harness.fail(&claimed, failure()).await;
    let scheduled = Submission { queue: "open".into(), start: Start::Scheduled(START.after(secs(1))), ..job() };
    let scheduled = harness.submit(scheduled).await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    harness.at(START.after(secs(60))).await;
    assert_eq!(harness.job(waiting.id).await, waiting, "it is unchanged");
    assert_eq!(harness.job(scheduled.id).await.state, State::Available, "another queue is not held up");
    harness.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    harness.advance(secs(0)).await;
    assert_eq!(harness.claim().await.id, waiting.id);
}

#[tokio::test]
async fn a_silent_run_ends_in_a_paused_queue_too() {
    let harness = Harness::new();
    harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    let claimed = harness.claim().await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    harness.at(START.after(secs(60))).await;
    let ended = harness.job(claimed.id).await;
    assert_eq!((ended.state, ended.failures.len()), (State::Retryable, 1));
}

#[tokio::test]
async fn a_job_expires_in_a_paused_queue_too() {
    let harness = Harness::new();
    let expiring = harness.submit(Submission { expires: Some(START.after(secs(30))), ..job() }).await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    harness.at(START.after(secs(30))).await;
    assert_eq!(harness.job(expiring.id).await.state, State::Discarded);
}

#[tokio::test]
async fn pauses_are_remembered_over_a_restart() {
    let store = Memory::new();
    let harness = Harness::on(Arc::new(store.clone()), 1, |_| {});
    let scheduled = harness.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");

    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let clock: Arc<dyn Clock> = harness.clock.clone();
    let restarted = Engine::new(Arc::new(store), clock, Arc::new(Seeded::new(2)), settings);
    restarted.recall_pauses().await.expect("an answer");
    harness.clock.advance(secs(60));
    restarted.sweep().await.expect("swept");
    assert_eq!(restarted.job(scheduled.id).await.expect("stored").state, State::Scheduled);
    restarted.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    restarted.sweep().await.expect("swept");
    assert_eq!(restarted.job(scheduled.id).await.expect("stored").state, State::Available);
}

/// Holds back the answer to the first pause.
struct SlowFirstAnswer {
    first: AtomicBool,
    answer: Arc<Semaphore>,
}

impl Around for SlowFirstAnswer {
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
async fn answers_that_overtake_each_other_leave_no_queue_held() {
    let answer = Arc::new(Semaphore::new(0));
    let around = SlowFirstAnswer { first: AtomicBool::new(true), answer: Arc::clone(&answer) };
    let harness = Harness::on(Arc::new(Wrapped::new(Arc::new(Memory::new()), Arc::new(around))), 1, |_| {});
    let scheduled = harness.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    let pause = |paused| {
        let engine = Arc::clone(&harness.engine);
        tokio::spawn(async move { engine.pause(QUEUE.into(), paused, Missing::Create).await.expect("an answer") })
    };
    let closing = pause(true);
    tokio::task::yield_now().await;
    let opening = pause(false);
    tokio::task::yield_now().await;
    answer.add_permits(1);
    assert!(closing.await.expect("no panic").paused);
    assert!(!opening.await.expect("no panic").paused);
    harness.at(START.after(secs(1))).await;
    assert_eq!(harness.claim().await.id, scheduled.id);
}

/// Counts how often the store is asked for jobs.
#[derive(Default)]
struct Claims(AtomicUsize);

impl Around for Claims {
    fn before(&self, verb: Verb) -> Passing {
        self.0.fetch_add(usize::from(verb == Verb::Claim), Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(())))
    }

    fn after(&self, _: Verb) -> Passing {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// One node that holds the queue, with a worker waiting for it. The store itself would return its jobs: another node
/// has resumed the queue, and this one has not heard of it. So only this node's own state holds them back.
struct HeldQueue {
    harness: Harness,
    claims: Arc<Claims>,
    waiting: JoinHandle<Vec<Job>>,
}

/// `before` prepares jobs while the queue is not held.
async fn holding<T>(before: impl AsyncFnOnce(&Harness) -> T) -> (HeldQueue, T) {
    let (memory, claims) = (Memory::new(), Arc::new(Claims::default()));
    let harness = Harness::on(Arc::new(Wrapped::new(Arc::new(memory.clone()), Arc::clone(&claims))), 1, |_| {});
    let prepared = before(&harness).await;
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    memory.pause(QUEUE.into(), false, Missing::Refuse, START).await.expect("an answer").expect("a queue");
    let (engine, wait) = (Arc::clone(&harness.engine), Duration::from_secs(600));
    let waiting =
        tokio::spawn(async move { engine.claim(&ClaimRequest { wait, ..request(9) }).await.expect("an answer") });
    tokio::task::yield_now().await;
    claims.0.store(0, Ordering::Relaxed);
    (HeldQueue { harness, claims, waiting }, prepared)
}

impl HeldQueue {
    /// The waiting worker was not woken, another claim returns nothing, and when the queue is no longer held the jobs
    /// are claimed in this order.
    async fn holds(self, expected: &[JobId]) {
        tokio::task::yield_now().await;
        assert_eq!(self.claims.0.load(Ordering::Relaxed), 0, "the worker that waits was woken");
        assert_eq!(self.harness.try_claim().await, None, "a job of a held queue");
        self.harness.engine.recall_pauses().await.expect("an answer");
        self.harness.engine.sweep().await.expect("swept");
        // Without a job, the wait ends when its time is over.
        let seen: Vec<JobId> = self.waiting.await.expect("no panic").iter().map(|job| job.id).collect();
        assert_eq!(seen, expected, "what is claimed when the queue is no longer held");
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_job_is_held() {
    let (holding, ()) = holding(async |_| ()).await;
    let low = holding.harness.submit(job()).await.id;
    let high = holding.harness.submit(Submission { priority: 1, ..job() }).await.id;
    holding.holds(&[high, low]).await;
}

#[tokio::test(start_paused = true)]
async fn an_activated_job_is_held() {
    let (holding, id) =
        holding(async |harness| harness.submit(Submission { start: Start::Pending, ..job() }).await.id).await;
    holding.harness.engine.activate(id).await.expect("it is pending");
    holding.holds(&[id]).await;
}

#[tokio::test(start_paused = true)]
async fn a_redriven_job_is_held() {
    let (holding, id) = holding(async |harness| {
        let id = harness.submit(job()).await.id;
        harness.engine.cancel(id).await.expect("it waits");
        id
    })
    .await;
    holding.harness.engine.redrive(id, Redrive::default()).await.expect("it has ended");
    holding.holds(&[id]).await;
}

#[tokio::test(start_paused = true)]
async fn a_released_job_is_held() {
    let (holding, claimed) = holding(async |harness| {
        harness.submit(job()).await;
        harness.claim().await
    })
    .await;
    holding.harness.release(&claimed, Span::ZERO).await.expect("accepted");
    holding.holds(&[claimed.id]).await;
}

#[tokio::test(start_paused = true)]
async fn a_due_job_and_one_whose_run_was_reclaimed_are_held() {
    let due = START.after(secs(40));
    let (holding, (scheduled, silent)) = holding(async |harness| {
        harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
        let silent = harness.claim().await;
        (harness.submit(Submission { start: Start::Scheduled(due), ..job() }).await.id, silent.id)
    })
    .await;
    holding.harness.at(START.after(secs(30))).await;
    assert_eq!(holding.harness.job(silent).await.state, State::Retryable);
    holding.harness.at(START.after(secs(60))).await;
    assert_eq!(holding.harness.job(scheduled).await.state, State::Scheduled, "it is unchanged");
    // They are promoted at the same moment, and then go by their ids.
    holding.holds(&[silent.min(scheduled), silent.max(scheduled)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_node_is_held() {
    let (holding, ()) = holding(async |_| ()).await;
    holding.harness.engine.notified_available(&QUEUE.into(), 3);
    holding.harness.engine.notified_anything();
    holding.holds(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_several_queues_is_woken_for_those_that_are_not_held() {
    let harness = Harness::new();
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    let queues = vec![QUEUE.into(), "open".into()];
    let (engine, wait) = (Arc::clone(&harness.engine), Duration::from_secs(600));
    let waiting =
        tokio::spawn(
            async move { engine.claim(&ClaimRequest { queues, wait, ..request(9) }).await.expect("an answer") },
        );
    tokio::task::yield_now().await;
    harness.submit(job()).await;
    let open = harness.submit(Submission { queue: "open".into(), ..job() }).await;
    assert_eq!(waiting.await.expect("no panic").iter().map(|job| job.id).collect::<Vec<_>>(), [open.id]);
}
