//! A claim that waits for a job: it is woken by everything that makes one available, misses none, and returns
//! nothing when its wait is over.

use super::common::{Around, Passing, Verb, Wrapped};
use super::harness::{Harness, QUEUE, START, failure, job, request, secs, with_ojs};
use redrive_engine::{ClaimRequest, Engine, Submission};
use redrive_policy::Span;
use redrive_store::{Job, Memory, Missing, Redrive, Start};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn waiting() -> ClaimRequest {
    ClaimRequest { wait: TIMEOUT, ..request(1) }
}

/// A claim that found no job and waits.
async fn wait_for_job(engine: &Arc<Engine>) -> JoinHandle<Vec<Job>> {
    wait_in(engine, &[QUEUE]).await
}

/// A claim that found no job in some queues and waits.
async fn wait_in(engine: &Arc<Engine>, queues: &[&str]) -> JoinHandle<Vec<Job>> {
    let engine = Arc::clone(engine);
    let request = ClaimRequest { queues: queues.iter().map(|queue| Arc::from(*queue)).collect(), ..waiting() };
    let claim = tokio::spawn(async move { engine.claim(&request).await.expect("an answer") });
    // Time is paused, and no other task is ready: this lets the claim run until it waits.
    tokio::task::yield_now().await;
    assert!(!claim.is_finished(), "there is no job yet");
    claim
}

/// What a waiting claim returns after `happens`, without any time passing.
async fn woken_by(harness: &Harness, happens: impl AsyncFnOnce(&Harness)) {
    let claim = wait_for_job(&harness.engine).await;
    let before = Instant::now();
    happens(harness).await;
    assert_eq!(claim.await.expect("no panic").len(), 1);
    assert_eq!(before.elapsed(), Duration::ZERO, "it was woken, and did not just poll again");
}

#[tokio::test(start_paused = true)]
async fn it_returns_nothing_when_its_wait_is_over() {
    let harness = Harness::new();
    let before = Instant::now();
    assert_eq!(harness.engine.claim(&waiting()).await, Ok(Vec::new()));
    assert_eq!(before.elapsed(), TIMEOUT);
    let before = Instant::now();
    assert_eq!(harness.engine.claim(&request(1)).await, Ok(Vec::new()));
    assert_eq!(before.elapsed(), Duration::ZERO, "a claim without a wait does not wait");
}

#[tokio::test(start_paused = true)]
async fn an_available_job_is_claimed_at_once() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let before = Instant::now();
    assert_eq!(harness.engine.claim(&waiting()).await.expect("an answer").len(), 1);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_by_a_submission() {
    woken_by(&Harness::new(), async |harness| drop(harness.submit(job()).await)).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_when_a_job_becomes_due() {
    let harness = Harness::new();
    harness.submit(Submission { start: Start::Scheduled(START.after(secs(5))), ..job() }).await;
    woken_by(&harness, async |harness| harness.at(START.after(secs(5))).await).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_when_a_retry_becomes_due() {
    let harness = Harness::new();
    harness.submit(with_ojs(json!({"jitter": false}))).await;
    let claimed = harness.claim().await;
    let retry = harness.fail(&claimed, failure()).await;
    woken_by(&harness, async |harness| harness.at(retry.due.expect("a time")).await).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_when_a_silent_run_ends() {
    let harness = Harness::new();
    harness.submit(Submission { lease: Some(secs(30)), ..job() }).await;
    harness.claim().await;
    woken_by(&harness, async |harness| harness.at(START.after(secs(30))).await).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_woken_by_a_release_an_activation_a_redrive_and_a_resumed_queue() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let claimed = harness.claim().await;
    woken_by(&harness, async |harness| drop(harness.release(&claimed, Span::ZERO).await.expect("accepted"))).await;

    let harness = Harness::new();
    let pending = harness.submit(Submission { start: Start::Pending, ..job() }).await;
    woken_by(&harness, async |harness| drop(harness.engine.activate(pending.id).await.expect("it is pending"))).await;

    let harness = Harness::new();
    let ended = harness.submit(job()).await;
    harness.engine.cancel(ended.id).await.expect("it waits");
    woken_by(&harness, async |harness| {
        drop(harness.engine.redrive(ended.id, Redrive::default()).await.expect("it has ended"))
    })
    .await;

    let harness = Harness::new();
    harness.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    harness.submit(job()).await;
    woken_by(&harness, async |harness| {
        drop(harness.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_of_another_queue_does_not_end_the_wait() {
    let harness = Harness::new();
    let claim = wait_for_job(&harness.engine).await;
    let before = Instant::now();
    harness.submit(Submission { queue: "other".into(), ..job() }).await;
    assert!(claim.await.expect("no panic").is_empty());
    assert_eq!(before.elapsed(), TIMEOUT, "the wait goes on for what is left of it");
}

#[tokio::test(start_paused = true)]
async fn two_waiting_callers_get_one_job_each() {
    let harness = Harness::new();
    let (one, other) = (wait_for_job(&harness.engine).await, wait_for_job(&harness.engine).await);
    let before = Instant::now();
    harness.submit(job()).await;
    harness.submit(job()).await;
    let (one, other) = (one.await.expect("no panic"), other.await.expect("no panic"));
    assert_eq!((one.len(), other.len(), before.elapsed()), (1, 1, Duration::ZERO));
    assert_ne!(one[0].id, other[0].id);
}

/// Holds back claims, or their answers, until it is allowed to pass one.
pub(crate) struct Held {
    pub(crate) before: Arc<Semaphore>,
    pub(crate) after: Arc<Semaphore>,
}

/// Without a limit.
pub(crate) fn free() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(Semaphore::MAX_PERMITS))
}

fn pass(verb: Verb, permits: &Arc<Semaphore>) -> Passing {
    let permits = Arc::clone(permits);
    Box::pin(async move {
        if verb == Verb::Claim {
            permits.acquire().await.expect("never closed").forget();
        }
        Ok(())
    })
}

impl Around for Held {
    fn before(&self, verb: Verb) -> Passing {
        pass(verb, &self.before)
    }

    fn after(&self, verb: Verb) -> Passing {
        pass(verb, &self.after)
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_enqueued_between_the_claim_and_the_wait_is_not_missed() {
    let answers = Arc::new(Semaphore::new(0));
    let store = Wrapped::new(Arc::new(Memory::new()), Arc::new(Held { before: free(), after: Arc::clone(&answers) }));
    let harness = Harness::on(Arc::new(store), 1, |_| {});
    let claim = wait_for_job(&harness.engine).await;
    // The claim has found nothing, and its answer is still held back.
    let before = Instant::now();
    harness.submit(job()).await;
    answers.add_permits(2);
    assert_eq!(claim.await.expect("no panic").len(), 1);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_woken_caller_that_takes_another_job_wakes_the_next() {
    let harness = Harness::new();
    let (both, only) = (wait_in(&harness.engine, &["b", "a"]).await, wait_in(&harness.engine, &["a"]).await);
    let before = Instant::now();
    // The first one wakes the caller that waits longest, which then finds the second one first.
    for queue in ["a", "b"] {
        harness.submit(Submission { queue: queue.into(), ..job() }).await;
    }
    let queue = |jobs: Vec<Job>| jobs[0].spec.queue.to_string();
    assert_eq!(queue(both.await.expect("no panic")), "b");
    assert_eq!(queue(only.await.expect("no panic")), "a");
    assert_eq!(before.elapsed(), Duration::ZERO, "no caller waits while there is a job");
}

#[tokio::test(start_paused = true)]
async fn a_woken_caller_that_disconnects_without_claiming_wakes_the_next() {
    let looks = Arc::new(Semaphore::new(2));
    let store = Wrapped::new(Arc::new(Memory::new()), Arc::new(Held { before: Arc::clone(&looks), after: free() }));
    let harness = Harness::on(Arc::new(store), 1, |_| {});
    let (first, second) = (wait_for_job(&harness.engine).await, wait_for_job(&harness.engine).await);
    let before = Instant::now();
    harness.submit(job()).await;
    tokio::task::yield_now().await;
    // The first one is woken now, and its caller disconnects.
    first.abort();
    looks.add_permits(9);
    assert_eq!(second.await.expect("no panic").len(), 1);
    assert_eq!(before.elapsed(), Duration::ZERO);
}
