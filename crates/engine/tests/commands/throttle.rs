//! Reads that look at many jobs leave time to the others.

use super::harness::{Harness, job};
use redrive_store::end_step;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// A read of so many steps, each of which takes a while.
async fn steps(count: u32, length: Duration, taken: &AtomicU32) {
    for _ in 0..count {
        tokio::time::sleep(length).await;
        taken.fetch_add(1, Ordering::Relaxed);
        end_step().await;
    }
}

const LENGTH: Duration = Duration::from_millis(2);

#[tokio::test(start_paused = true)]
async fn on_an_idle_server_a_read_does_not_pause() {
    let harness = Harness::new();
    harness.submit(job()).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    harness.engine.throttled(steps(10, LENGTH, &AtomicU32::new(0))).await;
    assert_eq!(begun.elapsed(), 10 * LENGTH);
}

#[tokio::test(start_paused = true)]
async fn while_jobs_come_all_reads_together_get_a_three_hundredth_of_the_time() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let taken = Arc::new(AtomicU32::new(0));
    let begun = Instant::now();
    for _ in 0..2 {
        let (engine, taken) = (Arc::clone(&harness.engine), Arc::clone(&taken));
        tokio::spawn(async move { engine.throttled(steps(1_000, LENGTH, &taken)).await });
    }
    while begun.elapsed() < Duration::from_secs(10) {
        harness.submit(job()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let share = f64::from(taken.load(Ordering::Relaxed)) * LENGTH.as_secs_f64() / begun.elapsed().as_secs_f64();
    assert!((0.0027..=0.004).contains(&share), "the reads had {share} of the time");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_waits_for_its_turn_has_not_begun() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let begun = AtomicU32::new(0);
    let read = async || {
        begun.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(LENGTH).await;
        begun.load(Ordering::Relaxed)
    };
    let seen = tokio::join!(harness.engine.throttled(read()), harness.engine.throttled(read()));
    assert_eq!(seen, (1, 2), "the second began when the first was over");
}

#[tokio::test(start_paused = true)]
async fn reads_take_turns_step_by_step() {
    let harness = Harness::new();
    let events = async {
        loop {
            harness.submit(job()).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (long, short) = (AtomicU32::new(0), AtomicU32::new(0));
    let reads = async {
        harness.submit(job()).await;
        tokio::select! {
            () = harness.engine.throttled(steps(1_000, LENGTH, &long)) => panic!("the long read was over first"),
            () = harness.engine.throttled(steps(3, LENGTH, &short)) => {}
        }
    };
    tokio::select! {
        () = events => {}
        () = reads => {}
    }
    assert_eq!(short.load(Ordering::Relaxed), 3);
    assert!(long.load(Ordering::Relaxed) <= 5, "the short read waited for {long:?} steps of the long one");
}

#[tokio::test(start_paused = true)]
async fn what_a_read_waits_for_belongs_to_its_step() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let begun = Instant::now();
    let waits = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        begun.elapsed()
    };
    let waited = harness.engine.throttled(waits).await;
    assert!(waited <= Duration::from_millis(10), "it was held up for {waited:?} while it held what it waits with");
    assert_eq!(begun.elapsed(), waited + Duration::from_secs(1), "then it pauses once, for the longest time");
}

#[tokio::test(start_paused = true)]
async fn reads_that_are_polled_together_come_to_their_end() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let taken = AtomicU32::new(0);
    tokio::join!(
        harness.engine.throttled(steps(3, LENGTH, &taken)),
        harness.engine.throttled(steps(3, LENGTH, &taken))
    );
    assert_eq!(taken.load(Ordering::Relaxed), 6);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asks_again_and_again_pauses_too() {
    let harness = Harness::new();
    let begun = Instant::now();
    for _ in 0..20 {
        harness.submit(job()).await;
        harness.engine.throttled(steps(1, LENGTH, &AtomicU32::new(0))).await;
    }
    assert!(begun.elapsed() >= 20 * 299 * LENGTH, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_caller_went_away_holds_up_no_other() {
    let harness = Harness::new();
    harness.submit(job()).await;
    let taken = AtomicU32::new(0);
    let hangs = harness.engine.throttled(std::future::pending::<()>());
    assert!(tokio::time::timeout(Duration::from_millis(5), hangs).await.is_err());
    harness.submit(job()).await;
    harness.engine.throttled(steps(1, LENGTH, &taken)).await;
    assert_eq!(taken.load(Ordering::Relaxed), 1);
}
