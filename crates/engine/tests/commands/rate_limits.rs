//! Limits: who waits for a job of a group that is full is woken when it opens.

use super::harness::{Harness, START, job, secs};
use super::long_poll::waiting;
use redrive_engine::{ClaimRequest, Engine, EngineError, Submission};
use redrive_store::{Bounds, Group, Job, OnLimit, OwnLimit, QueueFull, Rate, Setting};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

fn limited(bounds: Bounds) -> Submission {
    let own = OwnLimit { key: "api".into(), bounds, on_limit: OnLimit::Wait };
    Submission { limit: Some(own), ..job() }
}

const ONE_AT_A_TIME: Bounds = Bounds { concurrency: Some(1), rate: None, throttle: None };

/// A claim that found the group full and waits.
async fn wait(engine: &Arc<Engine>) -> JoinHandle<Vec<Job>> {
    let engine = Arc::clone(engine);
    let claim = tokio::spawn(async move { engine.claim(&waiting()).await.expect("an answer") });
    tokio::task::yield_now().await;
    assert!(!claim.is_finished(), "the group is full");
    claim
}

async fn woken(claim: JoinHandle<Vec<Job>>, before: Instant) {
    assert_eq!(claim.await.expect("no panic").len(), 1);
    assert_eq!(before.elapsed(), Duration::ZERO, "it was woken, and did not just poll again");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_wakes_one_that_waits_for_its_group() {
    let harness = Harness::new();
    harness.submit(limited(ONE_AT_A_TIME)).await;
    harness.submit(limited(ONE_AT_A_TIME)).await;
    let first = harness.claim().await;
    let (claim, before) = (wait(&harness.engine).await, Instant::now());
    harness.done(&first).await;
    woken(claim, before).await;
}

#[tokio::test(start_paused = true)]
async fn a_window_that_opens_wakes_one_after_the_other_while_there_is_room() {
    let harness = Harness::new();
    let rate = Rate { limit: 2, period: secs(1) };
    for _ in 0..4 {
        harness.submit(limited(Bounds { rate: Some(rate), ..Bounds::default() })).await;
    }
    assert_eq!(harness.claim_some(9).await.len(), 2);
    let claims = [wait(&harness.engine).await, wait(&harness.engine).await];
    let before = Instant::now();
    harness.clock.set(START.after(secs(1)));
    harness.engine.sweep().await.expect("swept");
    for claim in claims {
        woken(claim, before).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_removed_wakes_those_that_wait() {
    let harness = Harness::new();
    let group = Group::Queue(job().queue);
    let setting = Setting { bounds: Bounds { concurrency: Some(0), ..Bounds::default() }, ..Setting::default() };
    harness.engine.set_limit(group.clone(), Some(setting)).await.expect("set");
    harness.submit(job()).await;
    let (claim, before) = (wait(&harness.engine).await, Instant::now());
    harness.engine.set_limit(group, None).await.expect("removed");
    woken(claim, before).await;
}

#[tokio::test(start_paused = true)]
async fn the_depth_of_a_queue_is_what_is_set_for_it_and_else_for_all() {
    let harness = Harness::with(|settings| settings.max_depth = Some(2));
    let of = |queue: &str| Submission { queue: queue.into(), ..job() };
    let set = |depth| Some(Setting { depth: Some(depth), ..Setting::default() });
    let group = |queue: &str| Group::Queue(queue.into());
    harness.engine.set_limit(group("small"), set(1)).await.expect("set");
    harness.engine.set_limit(group("any"), set(0)).await.expect("set");
    for (queue, most) in [("small", 1), ("other", 2), ("any", 5)] {
        for _ in 0..most {
            harness.submit(of(queue)).await;
        }
    }
    let refused = |queue: &str, bound| {
        Err(EngineError::QueueFull(QueueFull { queue: queue.into(), depth: bound, bound, jobs: 1 }))
    };
    for (queue, bound) in [("small", 1), ("other", 2)] {
        assert_eq!(harness.engine.submit(vec![of(queue)]).await, refused(queue, bound));
    }
    let small = harness.engine.claim(&ClaimRequest::new(vec!["small".into()], "w")).await.expect("an answer");
    harness.done(&small[0]).await;
    harness.engine.remove_queue("small".into()).await.expect_err("it has a job that ended");
    harness.engine.set_limit(group("small"), None).await.expect("removed");
    harness.submit(of("small")).await;
    harness.submit(of("small")).await;
    assert_eq!(harness.engine.submit(vec![of("small")]).await, refused("small", 2), "what is set for all");
}
