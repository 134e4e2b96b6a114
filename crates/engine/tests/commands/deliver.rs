//! A claim for a caller that may go away: the job reaches the caller, or it is released.

use super::common::Wrapped;
use super::harness::{Harness, job, request};
use super::long_poll::{Held, free, waiting};
use redrive_engine::Ending;
use redrive_store::{Memory, State};
use std::future::{pending, poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::Instant;

/// An engine whose store answers a claim only with a permit.
fn slow_to_answer() -> (Harness, Arc<Semaphore>) {
    let answers = Arc::new(Semaphore::new(0));
    let store = Wrapped::new(Arc::new(Memory::new()), Arc::new(Held { before: free(), after: Arc::clone(&answers) }));
    (Harness::on(Arc::new(store), 1, |_| {}), answers)
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stays_gets_the_job_without_a_release() {
    let harness = Harness::new();
    let submitted = harness.submit(job()).await;
    let jobs = harness.engine.claim_or_release(request(1), pending()).await.expect("an answer");
    assert_eq!(jobs.iter().map(|job| (job.id, job.releases)).collect::<Vec<_>>(), [(submitted.id, 0)]);
    yield_now().await;
    assert_eq!(harness.job(submitted.id).await.state, State::Active);
    harness.settle(&jobs[0], Ending::Done(None)).await.expect("the lease is this worker's");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_while_it_waits_claims_nothing() {
    let harness = Harness::new();
    let engine = Arc::clone(&harness.engine);
    let claim = tokio::spawn(async move { engine.claim_or_release(waiting(), pending()).await });
    yield_now().await;
    claim.abort();
    assert!(claim.await.is_err_and(|error| error.is_cancelled()));
    let submitted = harness.submit(job()).await;
    yield_now().await;
    let untouched = harness.job(submitted.id).await;
    assert_eq!((untouched.state, untouched.releases), (State::Available, 0));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_claimed_after_its_caller_went_away_is_released() {
    let (harness, answers) = slow_to_answer();
    let submitted = harness.submit(job()).await;
    let engine = Arc::clone(&harness.engine);
    let claim = tokio::spawn(async move { engine.claim_or_release(request(1), pending()).await });
    yield_now().await;
    yield_now().await;
    assert_eq!(harness.job(submitted.id).await.state, State::Active, "the store has claimed it");
    claim.abort();
    assert!(claim.await.is_err_and(|error| error.is_cancelled()));
    let before = Instant::now();
    answers.add_permits(9);
    let next = harness.engine.claim(&waiting()).await.expect("an answer");
    assert_eq!(next.iter().map(|job| (job.id, job.releases)).collect::<Vec<_>>(), [(submitted.id, 1)]);
    assert_eq!(before.elapsed(), Duration::ZERO, "long before the lease ends");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_on_its_way_when_the_caller_goes_away_is_released() {
    let harness = Harness::new();
    let submitted = harness.submit(job()).await;
    let mut claim = Box::pin(harness.engine.claim_or_release(request(1), pending()));
    poll_fn(|context| {
        assert!(claim.as_mut().poll(context).is_pending(), "the claim runs in a task of its own");
        Poll::Ready(())
    })
    .await;
    yield_now().await;
    assert_eq!(harness.job(submitted.id).await.state, State::Active, "the answer is there, and not taken yet");
    drop(claim);
    let before = Instant::now();
    let next = harness.engine.claim(&waiting()).await.expect("an answer");
    assert_eq!(next.iter().map(|job| (job.id, job.releases)).collect::<Vec<_>>(), [(submitted.id, 1)]);
    assert_eq!(before.elapsed(), Duration::ZERO, "long before the lease ends");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_wait_and_never_drops_a_job() {
    let harness = Harness::new();
    let before = Instant::now();
    let nothing = harness.engine.claim_or_release(waiting(), ready(())).await;
    assert_eq!((nothing, before.elapsed()), (Ok(Vec::new()), Duration::ZERO));
    harness.submit(job()).await;
    let jobs = harness.engine.claim_or_release(waiting(), ready(())).await.expect("an answer");
    assert_eq!(jobs.len(), 1, "what was there is claimed");
}
