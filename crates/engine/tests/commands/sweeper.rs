//! The sweeper: it acts when something is due, sleeps in between, and stops.

use super::common::{Around, Passing, Verb, Wrapped};
use super::harness::{QUEUE, START, failure, job, request, secs, with_ojs};
use redrive_engine::{
    ClaimRequest, Clock, Ending, Engine, EngineError, Layers, Settings, Submission, SystemRandomness, sweeper,
};
use redrive_policy::{Moment, Span};
use redrive_store::{Memory, Missing, Start, State, StoreError};
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The paused time of tokio as the engine's clock, so that waits and due times go together.
struct PausedClock {
    begun: Instant,
    /// The length of standstills.
    stood_still_ms: AtomicU32,
}

impl Clock for PausedClock {
    fn now(&self) -> Moment {
        let still = Span::from_millis(self.stood_still_ms.load(Ordering::Relaxed));
        START.after(Span::from(self.begun.elapsed())).after(still)
    }
}

/// Counts the sweeps, and can be unavailable.
#[derive(Default)]
struct Watch {
    sweeps: AtomicUsize,
    out: AtomicBool,
    slow: AtomicBool,
}

impl Around for Watch {
    fn before(&self, verb: Verb) -> Passing {
        self.sweeps.fetch_add(usize::from(verb == Verb::Promote), Ordering::Relaxed);
        let out = self.out.load(Ordering::Relaxed) && verb == Verb::Reclaim;
        let answer = if out { Err(StoreError::Unavailable("an outage in a test".to_owned())) } else { Ok(()) };
        Box::pin(std::future::ready(answer))
    }

    fn after(&self, verb: Verb) -> Passing {
        let slow = verb == Verb::Promote && self.slow.load(Ordering::Relaxed);
        Box::pin(async move {
            if slow {
                tokio::time::sleep(Duration::from_millis(900)).await;
            }
            Ok(())
        })
    }
}

struct Running {
    engine: Arc<Engine>,
    clock: Arc<PausedClock>,
    watch: Arc<Watch>,
    stop: oneshot::Sender<()>,
    sweeper: JoinHandle<()>,
    errors: Arc<Mutex<Vec<EngineError>>>,
    still: Arc<Mutex<Vec<Span>>>,
}

fn running() -> Running {
    let watch = Arc::new(Watch::default());
    let store = Arc::new(Wrapped::new(Arc::new(Memory::new()), Arc::clone(&watch)));
    let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
    let clock = Arc::new(PausedClock { begun: Instant::now(), stood_still_ms: AtomicU32::new(0) });
    let engine = Arc::new(Engine::new(store, Arc::clone(&clock) as _, Arc::new(SystemRandomness::default()), settings));
    let (stop, stopped) = oneshot::channel::<()>();
    let (errors, still) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let report = {
        let still = Arc::clone(&still);
        let errors = Arc::clone(&errors);
        move |notice: sweeper::Notice<'_>| match notice {
            sweeper::Notice::Failed(error) => errors.lock().expect("no panic").push(error.clone()),
            sweeper::Notice::StoodStill(length) => still.lock().expect("no panic").push(length),
            sweeper::Notice::ClockStepped(step) => panic!("no clock was set: {step:?}"),
        }
    };
    let sweeper = tokio::spawn(sweeper::run(Arc::clone(&engine), async { drop(stopped.await) }, report));
    Running { engine, clock, watch, stop, sweeper, errors, still }
}

impl Running {
    async fn submit(&self, submission: Submission) {
        self.engine.submit(vec![submission]).await.expect("stored");
    }

    /// How long a claim waits for its job.
    async fn waits(&self, queue: &str) -> Duration {
        let before = Instant::now();
        let request = ClaimRequest { queues: vec![queue.into()], wait: Duration::from_secs(100), ..request(1) };
        assert_eq!(self.engine.claim(&request).await.expect("an answer").len(), 1);
        before.elapsed()
    }
}

/// Not early, and late by no more than the timer's two milliseconds.
fn assert_about(waits: Duration, expected_ms: u64) {
    let expected = Duration::from_millis(expected_ms);
    assert!((expected..=expected + Duration::from_millis(2)).contains(&waits), "{waits:?} in place of {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn due_jobs_are_ready_in_time() {
    let running = running();
    for ms in [250, 40, 2_700, 990] {
        let at = START.after(Span::from_millis(ms));
        running.submit(Submission { start: Start::Scheduled(at), ..job() }).await;
    }
    for waits in [40, 210, 740, 1_710] {
        assert_about(running.waits(QUEUE).await, waits);
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_due_earlier_than_planned_is_in_time_too() {
    let running = running();
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    running.submit(with_ojs(json!({"initial_interval": "PT0.3S", "jitter": false}))).await;
    let jobs = running.engine.claim(&request(1)).await.expect("an answer");
    let failed = vec![(super::harness::lease_ref(&jobs[0]), Ending::Failed(failure()))];
    running.engine.settle(failed).await.expect("an answer").remove(0).expect("accepted");
    assert_about(running.waits(QUEUE).await, 300);
}

#[tokio::test(start_paused = true)]
async fn a_silent_run_ends_in_time() {
    let running = running();
    running.submit(Submission { lease: Some(secs(3)), ..job() }).await;
    assert_eq!(running.engine.claim(&request(1)).await.expect("an answer").len(), 1);
    assert_about(running.waits(QUEUE).await, 3_000);
}

#[tokio::test(start_paused = true)]
async fn after_a_standstill_a_run_has_one_span_of_its_lease_to_be_heard() {
    let running = running();
    running.submit(Submission { lease: Some(secs(20)), ..job() }).await;
    running.submit(Submission { lease: Some(secs(20)), queue: "alive".into(), ..job() }).await;
    let silent = running.engine.claim(&request(1)).await.expect("an answer").remove(0);
    let request = ClaimRequest { queues: vec!["alive".into()], ..request(1) };
    let alive = running.engine.claim(&request).await.expect("an answer").remove(0);
    tokio::time::sleep(Duration::from_secs(5)).await;
    running.clock.stood_still_ms.store(60_000, Ordering::Relaxed);
    let woke = Instant::now();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(running.engine.job(silent.id).await.expect("stored").state, State::Active);
    running
        .engine
        .extend(vec![super::harness::lease_ref(&alive)], None)
        .await
        .expect("an answer")
        .remove(0)
        .expect("heard");
    assert_about(running.waits(QUEUE).await, 11_000);
    assert!(woke.elapsed() > Duration::from_secs(20), "{:?}", woke.elapsed());
    assert_eq!(running.engine.job(alive.id).await.expect("stored").state, State::Active);
    let still = running.still.lock().expect("no panic").clone();
    assert!(still.len() == 1 && (60.0..62.0).contains(&still[0].secs()), "{still:?}");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_is_a_standstill_too() {
    let running = running();
    running.submit(Submission { lease: Some(secs(20)), ..job() }).await;
    let silent = running.engine.claim(&request(1)).await.expect("an answer").remove(0);
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.watch.out.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    running.watch.out.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(18)).await;
    assert_eq!(running.engine.job(silent.id).await.expect("stored").state, State::Active, "a heartbeat may still come");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_ne!(running.engine.job(silent.id).await.expect("stored").state, State::Active);
    assert_eq!(running.still.lock().expect("no panic").len(), 1, "it is reported once");
}

#[tokio::test(start_paused = true)]
async fn while_nothing_is_due_it_sleeps_even_if_jobs_are_held() {
    let running = running();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let idle = running.watch.sweeps.swap(0, Ordering::Relaxed);
    assert!(idle < 150, "{idle} sweeps in an idle minute");
    running.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    running.submit(Submission { start: Start::Scheduled(START.after(secs(61))), ..job() }).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let held = running.watch.sweeps.swap(0, Ordering::Relaxed);
    assert!(held <= idle + 1, "{held} sweeps in a minute with a paused queue, {idle} in an idle one");
    running.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    assert_about(running.waits(QUEUE).await, 0);
}

#[tokio::test(start_paused = true)]
async fn retries_in_a_paused_queue_do_not_wake_the_sweeper() {
    let running = running();
    for _ in 0..50 {
        running.submit(with_ojs(json!({"initial_interval": "PT0.01S", "jitter": false}))).await;
    }
    let jobs = running.engine.claim(&request(50)).await.expect("an answer");
    running.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    tokio::time::sleep(Duration::from_millis(10)).await;
    running.watch.sweeps.store(0, Ordering::Relaxed);
    for job in &jobs {
        let failed = vec![(super::harness::lease_ref(job), Ending::Failed(failure()))];
        running.engine.settle(failed).await.expect("an answer").remove(0).expect("accepted");
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let sweeps = running.watch.sweeps.swap(0, Ordering::Relaxed);
    assert!(sweeps <= 1, "{sweeps} sweeps for {} retries that are held back", jobs.len());
    running.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    assert_about(running.waits(QUEUE).await, 0);
}

#[tokio::test(start_paused = true)]
async fn ended_jobs_are_pruned_by_sweeps() {
    let running = running();
    running.submit(job()).await;
    let claimed = running.engine.claim(&request(1)).await.expect("an answer").remove(0);
    running.engine.settle(vec![(super::harness::lease_ref(&claimed), Ending::Done(None))]).await.expect("an answer");
    tokio::time::sleep(Duration::from_secs(86_399)).await;
    assert_eq!(running.engine.job(claimed.id).await.expect("still kept").state, State::Completed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(running.engine.job(claimed.id).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn queues_without_jobs_are_removed_by_sweeps() {
    let running = running();
    running.submit(job()).await;
    let claimed = running.engine.claim(&request(1)).await.expect("an answer").remove(0);
    running.engine.settle(vec![(super::harness::lease_ref(&claimed), Ending::Done(None))]).await.expect("an answer");
    running.engine.pause("closed".into(), true, Missing::Create).await.expect("an answer");
    tokio::time::sleep(Duration::from_secs(86_300)).await;
    assert_eq!(running.engine.queues().await.expect("an answer").len(), 2, "the job is still stored");
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    let left: Vec<_> = running.engine.queues().await.expect("an answer").into_iter().map(|q| q.name).collect();
    assert_eq!(left, ["closed".into()]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_reported_and_survived_and_a_stop_is_obeyed() {
    let running = running();
    running.watch.out.store(true, Ordering::Relaxed);
    running.submit(Submission { start: Start::Scheduled(START.after(secs(1))), ..job() }).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let count = running.errors.lock().expect("no panic").len();
    assert!((5..=15).contains(&count), "{count} reports in ten seconds");
    running.watch.out.store(false, Ordering::Relaxed);
    let waits = running.waits(QUEUE).await;
    assert!(waits <= Duration::from_millis(1_002), "{waits:?}");
    running.stop.send(()).expect("it still runs");
    running.sweeper.await.expect("it ends without a panic");
}

#[tokio::test(start_paused = true)]
async fn a_long_backlog_is_worked_off_in_steps_and_is_no_standstill() {
    let running = running();
    running.engine.pause(QUEUE.into(), true, Missing::Create).await.expect("an answer");
    let start = Start::Scheduled(START.after(Span::from_millis(1)));
    let jobs = (0..5_500).map(|_| Submission { start, ..job() }).collect();
    running.engine.submit(jobs).await.expect("stored");
    tokio::time::sleep(Duration::from_secs(10)).await;
    running.watch.slow.store(true, Ordering::Relaxed);
    running.engine.pause(QUEUE.into(), false, Missing::Create).await.expect("an answer");
    running.watch.sweeps.store(0, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(6 * 900 + 100)).await;
    let queue = running.engine.queues().await.expect("an answer").remove(0);
    assert_eq!(queue.count(State::Available), 5_500, "all of them, in six steps and without a break between");
    assert!(running.still.lock().expect("no panic").is_empty(), "no standstill");
}
