//! The wall clock outside, elapsed time inside: what a step of the wall clock does to times of requests and answers.

use super::common::Seeded;
use super::harness::{START, failure, job, lease_ref, request, secs, with_ojs};
use redrive_engine::{Clock, Ending, Engine, Layers, ManualClock, Settings, Submission, Wall};
use redrive_policy::{Moment, Span};
use redrive_store::{Enqueued, Filter, Job, Memory, Page, Start, State};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Manual elapsed time, and a wall clock that is ahead of it by an offset.
struct SteppingClock {
    elapsed: ManualClock,
    ahead_us: AtomicI64,
}

impl Clock for SteppingClock {
    fn now(&self) -> Moment {
        self.elapsed.now()
    }

    fn wall(&self) -> Wall {
        Wall { ahead_us: self.ahead_us.load(Ordering::SeqCst), ..Wall::default() }
    }
}

const HOUR_US: i64 = 3_600_000_000;

/// An engine, and its clock.
fn engine() -> (Engine, Arc<SteppingClock>) {
    let clock = Arc::new(SteppingClock { elapsed: ManualClock::at(START), ahead_us: AtomicI64::new(0) });
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    (Engine::new(Arc::new(Memory::new()), clock.clone(), Arc::new(Seeded::new(1)), settings), clock)
}

impl SteppingClock {
    fn step(&self, by_us: i64) {
        self.ahead_us.fetch_add(by_us, Ordering::SeqCst);
    }

    /// The time this many seconds after the start, by the wall clock.
    fn wall_at(&self, seconds: u32) -> Moment {
        let at = START.after(secs(seconds));
        Moment::from_micros(at.micros() + self.ahead_us.load(Ordering::SeqCst))
    }
}

async fn submitted(engine: &Engine, submission: Submission) -> Job {
    match engine.submit(vec![submission]).await.expect("stored").remove(0) {
        Enqueued::Created(job) => job,
        other => panic!("{} was there before", other.job().id),
    }
}

async fn state(engine: &Engine, job: &Job) -> State {
    engine.sweep().await.expect("swept");
    engine.job(job.id).await.expect("stored").state
}

#[tokio::test]
async fn a_time_of_day_is_one_of_the_wall_clock_and_what_was_begun_is_elapsed_time() {
    for step in [-HOUR_US, HOUR_US] {
        let (engine, clock) = engine();
        let before = Submission { start: Start::Scheduled(clock.wall_at(10)), ..job() };
        let before = submitted(&engine, before).await;
        clock.step(step);
        assert_eq!(engine.now(), clock.wall_at(0));
        let after = Submission { start: Start::Scheduled(clock.wall_at(20)), ..job() };
        let after = submitted(&engine, after).await;
        assert_eq!((after.times.created, after.due), (clock.wall_at(0), Some(clock.wall_at(20))), "a step of {step}");
        assert_eq!(engine.job(before.id).await.expect("stored").due, Some(clock.wall_at(10)), "it is due when it was");
        for (seconds, states) in [
            (9, [State::Scheduled, State::Scheduled]),
            (10, [State::Available, State::Scheduled]),
            (19, [State::Available, State::Scheduled]),
            (20, [State::Available, State::Available]),
        ] {
            clock.elapsed.set(START.after(secs(seconds)));
            assert_eq!([state(&engine, &before).await, state(&engine, &after).await], states, "after {seconds} s");
        }
    }
}

#[tokio::test]
async fn a_step_ends_no_lease_and_moves_no_retry_and_no_expiry() {
    for step in [-HOUR_US, HOUR_US] {
        let (engine, clock) = engine();
        let retried = submitted(&engine, with_ojs(json!({"initial_interval": "PT10S", "jitter": false}))).await;
        let held = submitted(&engine, Submission { lease: Some(secs(30)), ..job() }).await;
        let claimed = engine.claim(&request(2)).await.expect("an answer");
        let claimed = claimed.iter().find(|job| job.id == retried.id).expect("both are claimed");
        engine
            .settle(vec![(lease_ref(claimed), Ending::Failed(failure()))])
            .await
            .expect("an answer")
            .remove(0)
            .unwrap();
        clock.step(step);
        let expires = Submission { expires: Some(clock.wall_at(15)), queue: "other".into(), ..job() };
        let expires = submitted(&engine, expires).await;
        for (seconds, states) in [
            (0, [State::Retryable, State::Active, State::Available]),
            (9, [State::Retryable, State::Active, State::Available]),
            (10, [State::Available, State::Active, State::Available]),
            (15, [State::Available, State::Active, State::Discarded]),
            (29, [State::Available, State::Active, State::Discarded]),
            (30, [State::Available, State::Available, State::Discarded]),
        ] {
            clock.elapsed.set(START.after(secs(seconds)));
            let mut found = Vec::new();
            for job in [&retried, &held, &expires] {
                found.push(state(&engine, job).await);
            }
            assert_eq!(found, states, "{seconds} s after a step of {step}");
        }
    }
}

#[tokio::test]
async fn every_reported_time_is_by_the_current_wall_clock() {
    let (engine, clock) = engine();
    submitted(&engine, Submission { expires: Some(clock.wall_at(500)), ..job() }).await;
    let claimed = engine.claim(&request(1)).await.expect("an answer").remove(0);
    clock.step(HOUR_US);
    clock.elapsed.advance(secs(5));
    let failed = vec![(lease_ref(&claimed), Ending::Failed(failure()))];
    let failed = engine.settle(failed).await.expect("an answer").remove(0).expect("accepted").into_job();
    let found = engine.job(failed.id).await.expect("stored");
    assert_eq!(found, failed, "a failure and a read return the same");
    let run = &found.failures[0];
    assert_eq!([run.available, run.started, run.at], [0, 0, 5].map(|seconds| clock.wall_at(seconds)));
    assert_eq!(found.times.created, clock.wall_at(0));
    assert_eq!((found.spec.expires, found.times.started), (Some(clock.wall_at(500)), Some(clock.wall_at(0))));
    let (events, _) = engine.events(0, 9, |_| true);
    assert_eq!(events.last().map(|event| event.at), Some(clock.wall_at(5)));
    assert_eq!(engine.queues().await.expect("an answer")[0].created, clock.wall_at(0));
    engine.cancel(found.id).await.expect("cancelled");
    let ended_at = |at| Filter { finished_since: Some(at), ..Filter::default() };
    for (since, found) in [(clock.wall_at(5), 1), (clock.wall_at(6), 0)] {
        let listed = engine.list(ended_at(since), Page::new(0, 9)).await.expect("an answer");
        assert_eq!(listed.jobs.len(), found);
    }
    assert_eq!(engine.uptime(), Span::from_secs(5), "elapsed time, too");
}

#[tokio::test]
async fn pages_continue_where_the_last_one_ended_after_a_step() {
    let (engine, clock) = engine();
    clock.step(HOUR_US);
    let stop = json!({"max_attempts": 1, "on_exhaustion": "dead_letter"});
    for _ in 0..3 {
        submitted(&engine, with_ojs(stop.clone())).await;
        let claimed = engine.claim(&request(1)).await.expect("an answer").remove(0);
        clock.elapsed.advance(secs(1));
        engine
            .settle(vec![(lease_ref(&claimed), Ending::Failed(failure()))])
            .await
            .expect("an answer")
            .remove(0)
            .unwrap();
    }
    let dead = Filter { dead: Some(true), ..Filter::default() };
    let (mut page, mut seen) = (Some(Page::new(0, 1)), Vec::new());
    while let Some(next) = page {
        let listed = engine.list(dead.clone(), next).await.expect("an answer");
        let last = listed.jobs.last().map(|job| dead.entry(job));
        seen.extend(listed.jobs.iter().filter_map(|job| job.times.finished));
        assert!(seen.len() <= 3, "{seen:?}");
        page = listed.next.map(|next| Page { after: last.or(next.after), ..next });
    }
    assert_eq!(seen, [3, 2, 1].map(|seconds| clock.wall_at(seconds)), "newest first");
}
