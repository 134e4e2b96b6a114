//! The async loop, on tokio's clock, which is paused: no test waits.
#![cfg(feature = "tokio")]
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use redrive_policy::retry::{Delays, Sleeper, retry};
use redrive_policy::{Draw, Entropy, Failure, Moment, Origin, Outcome, Policy, PolicyBuilder, Reason, Retryable};
use redrive_policy::{Seeded, Signal, Span, Verdict};
use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

fn built(builder: PolicyBuilder) -> Policy {
    builder.build().expect("a valid policy")
}

/// 100 ms, 200 ms, 400 ms and so on, for ever.
fn doubling() -> PolicyBuilder {
    Policy::builder().exponential(Duration::from_millis(100), 2.0).no_jitter()
}

/// An operation that fails with its number so many times; and when it was called.
struct Script {
    start: Instant,
    failures: u32,
    called_at_ms: RefCell<Vec<u128>>,
}

impl Script {
    fn failing(failures: u32) -> Self {
        Self { start: Instant::now(), failures, called_at_ms: RefCell::default() }
    }

    fn call(&self) -> impl Future<Output = Result<u32, u32>> + use<> {
        self.called_at_ms.borrow_mut().push(self.start.elapsed().as_millis());
        let calls = self.calls();
        ready(if calls > self.failures { Ok(calls) } else { Err(calls) })
    }

    fn calls(&self) -> u32 {
        self.called_at_ms.borrow().len() as u32
    }

    fn called_at_ms(&self) -> Vec<u128> {
        self.called_at_ms.borrow().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn the_waits_are_those_of_the_policy() {
    let script = Script::failing(4);
    let policy = built(doubling().max_attempts(9));
    assert_eq!((|| script.call()).retry(&policy).await, Ok(5));
    assert_eq!(script.called_at_ms(), [0, 100, 300, 700, 1500]);
}

/// RET-01: `max_attempts` is an exact upper bound on runs, the first one included.
#[tokio::test(start_paused = true)]
async fn max_attempts_is_exact_and_the_last_error_comes_back() {
    for limit in 0..=6 {
        let script = Script::failing(u32::MAX);
        let policy = built(doubling().max_attempts(limit));
        let result = retry(&policy, || script.call()).await;
        assert_eq!(script.calls(), limit.max(1), "limit {limit}");
        assert_eq!(result, Err(limit.max(1)), "limit {limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn max_elapsed_ends_where_the_next_run_would_start_at_or_past_it() {
    for (limit_ms, runs_at_ms) in [(3_500, &[0, 1_000, 2_000, 3_000][..]), (3_000, &[0, 1_000, 2_000]), (1, &[0])] {
        let script = Script::failing(u32::MAX);
        let limit = Duration::from_millis(limit_ms);
        let policy = built(Policy::builder().fixed(SECOND).unlimited_attempts().max_elapsed(limit));
        assert_eq!((|| script.call()).retry(&policy).await, Err(runs_at_ms.len() as u32));
        assert_eq!(script.called_at_ms(), runs_at_ms, "limit {limit_ms} ms");
        let last = runs_at_ms.last().expect("a run");
        assert_eq!(script.start.elapsed().as_millis(), *last, "it waited for a run that never came");
    }
}

#[tokio::test(start_paused = true)]
async fn max_elapsed_counts_from_the_first_poll_and_includes_the_runs() {
    let policy = built(Policy::builder().fixed(SECOND).unlimited_attempts().max_elapsed(Duration::from_secs(10)));
    let calls = Cell::new(0);
    let slow = || {
        calls.set(calls.get() + 1);
        async {
            tokio::time::sleep(Duration::from_secs(3)).await;
            Err::<(), _>("slow")
        }
    };
    let waiting = slow.retry(&policy);
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let start = Instant::now();
    assert_eq!(waiting.await, Err("slow"));
    // Runs end at 3 s, 7 s and 11 s; the last of them past the limit.
    assert_eq!((calls.get(), start.elapsed()), (3, Duration::from_secs(11)));
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    let policy = built(doubling().max_attempts(9));
    let script = Script::failing(u32::MAX);
    let reason = Cell::new(None);
    let result = (|| script.call())
        .retry(&policy)
        .when(|error| *error < 3)
        .on_stop(|_, verdict| reason.set(Some(verdict.outcome)))
        .await;
    assert_eq!((result, script.calls()), (Err(3), 3));
    let Some(Outcome::Stop { reason, .. }) = reason.get() else { panic!("{reason:?}") };
    assert_eq!(reason.name(), "non_retryable");
}

#[tokio::test(start_paused = true)]
async fn every_predicate_must_be_satisfied() {
    let policy = built(doubling().max_attempts(9));
    let script = Script::failing(u32::MAX);
    let retried = (|| script.call()).retry(&policy).when(|error| *error < 2).when(|error| *error < 8);
    assert_eq!(retried.await, Err(2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_the_error_is_used_as_it_is() {
    let policy = built(Policy::builder().exponential(SECOND, 2.0).max_delay(SECOND).full_jitter().max_attempts(9));
    let script = Script::failing(2);
    let origins = RefCell::new(Vec::new());
    let retried = (|| script.call())
        .retry(&policy)
        .retry_after(|error| Some(Duration::from_secs(u64::from(*error) * 40)))
        .before_retry(|_, verdict| origins.borrow_mut().push(verdict.outcome));
    assert_eq!(retried.await, Ok(3));
    assert_eq!(script.called_at_ms(), [0, 40_000, 120_000]);
    for outcome in origins.into_inner() {
        assert!(matches!(outcome, Outcome::Retry { origin: Origin::Override, .. }), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_the_error_does_not_lead_past_the_time_limit() {
    let policy = built(doubling().unlimited_attempts().max_elapsed(Duration::from_secs(30)));
    let script = Script::failing(u32::MAX);
    let result = (|| script.call()).retry(&policy).retry_after(|_| Some(Duration::from_secs(31))).await;
    assert_eq!((result, script.start.elapsed()), (Err(1), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn the_rules_see_what_classify_says() {
    let policy = built(doubling().except_types(["auth.*"]).max_attempts(9));
    let types = ["external.timeout", "auth", "auth.expired", "never reached"];
    let mut calls = types.iter();
    let retried = retry(&policy, || ready(Err::<(), &str>(calls.next().expect("a type"))))
        .classify(|error| Failure::of_type(error));
    assert_eq!(retried.await, Err("auth.expired"));
}

/// `when` and `retry_after` keep what they said, whichever side of `classify` they stand on.
#[tokio::test(start_paused = true)]
async fn classify_leaves_standing_what_was_said_before_it() {
    let policy = built(doubling().max_attempts(9));
    let before = Script::failing(u32::MAX);
    let result = (|| before.call())
        .retry(&policy)
        .when(|error| *error < 2)
        .retry_after(|_| Some(SECOND))
        .classify(|_| Failure::of_type("x").retry_after(Duration::from_secs(9)))
        .await;
    assert_eq!((result, before.called_at_ms()), (Err(2), vec![0, 1_000]));
    let after = Script::failing(u32::MAX);
    let result = (|| after.call())
        .retry(&policy)
        .classify(|_| Failure::of_type("x").retry_after(Duration::from_secs(9)))
        .when(|error| *error < 2)
        .retry_after(|_| Some(SECOND))
        .await;
    assert_eq!((result, after.called_at_ms()), (Err(2), vec![0, 1_000]));
}

#[tokio::test(start_paused = true)]
async fn a_requeue_is_honoured_and_not_counted() {
    let policy = built(doubling().max_attempts(2));
    let script = Script::failing(u32::MAX);
    let attempts = RefCell::new(Vec::new());
    let result = (|| script.call())
        .retry(&policy)
        .classify(|error| match error {
            1..=3 => Failure::default().with_signal(Signal::RequeueAfter(Span::from_secs(5))),
            _ => Failure::default(),
        })
        .before_retry(|_, verdict| attempts.borrow_mut().push((verdict.attempt, verdict.counted())))
        .await;
    assert_eq!(result, Err(5));
    assert_eq!(script.called_at_ms(), [0, 5_000, 10_000, 15_000, 15_100]);
    assert_eq!(attempts.into_inner(), [(1, false), (1, false), (1, false), (1, true)]);
}

#[tokio::test(start_paused = true)]
async fn hooks_see_each_verdict_before_it_takes_effect() {
    let policy = built(doubling().max_attempts(3));
    let start = Instant::now();
    let log = RefCell::new(Vec::new());
    let note = |what: &str, verdict: &Verdict| {
        let wait_ms = verdict.delay().map(Span::ms);
        log.borrow_mut().push(format!("{} {what} {} {wait_ms:?}", start.elapsed().as_millis(), verdict.attempt));
    };
    let script = Script::failing(u32::MAX);
    let operation = || {
        log.borrow_mut().push("run".to_owned());
        script.call()
    };
    let result = operation
        .retry(&policy)
        .before_retry(|_, verdict| note("first", verdict))
        .before_retry(|_, verdict| note("second", verdict))
        .on_stop(|_, verdict| note("stop", verdict))
        .await;
    assert_eq!(result, Err(3));
    let expected = [
        "run",
        "0 first 1 Some(100.0)",
        "0 second 1 Some(100.0)",
        "run",
        "100 first 2 Some(200.0)",
        "100 second 2 Some(200.0)",
        "run",
        "300 stop 3 None",
    ];
    assert_eq!(log.into_inner(), expected);
}

#[tokio::test(start_paused = true)]
async fn the_last_verdict_names_the_limit() {
    let policy = built(doubling().max_attempts(2));
    let script = Script::failing(u32::MAX);
    let last = Cell::new(None);
    (|| script.call()).retry(&policy).on_stop(|_, verdict| last.set(Some(*verdict))).await.expect_err("it fails");
    let outcome = last.get().expect("a verdict").outcome;
    assert!(matches!(outcome, Outcome::Stop { reason: Reason::MaxAttempts { limit: 2 }, .. }), "{outcome:?}");
}

#[tokio::test(start_paused = true)]
async fn dropped_in_a_wait_it_never_runs_again() {
    let policy = built(doubling().unlimited_attempts());
    let script = Script::failing(u32::MAX);
    // Runs at 0 ms and 100 ms; the wait until 300 ms is cut off in its middle.
    let cut_off = tokio::time::timeout(Duration::from_millis(200), (|| script.call()).retry(&policy)).await;
    assert!(cut_off.is_err());
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(script.called_at_ms(), [0, 100]);
}

#[tokio::test(start_paused = true)]
async fn dropped_in_a_run_it_drops_the_run() {
    struct Running<'a>(&'a Cell<i32>);
    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }
    let policy = built(doubling().unlimited_attempts());
    let running = Cell::new(0);
    let hanging = || {
        running.set(running.get() + 1);
        let guard = Running(&running);
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Err::<(), _>(())
        }
    };
    let mut retried = Box::pin(hanging.retry(&policy));
    assert!(tokio::time::timeout(SECOND, &mut retried).await.is_err());
    assert_eq!(running.get(), 1);
    drop(retried);
    assert_eq!(running.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_delay_other_tasks_still_run() {
    let policy = built(Policy::builder().immediate().max_attempts(1_000));
    let released = Cell::new(false);
    let operation = || ready(if released.get() { Ok(()) } else { Err("still locked") });
    let release = async {
        tokio::task::yield_now().await;
        released.set(true);
    };
    let start = Instant::now();
    let (result, ()) = tokio::join!(operation.retry(&policy), release);
    assert_eq!((result, start.elapsed()), (Ok(()), Duration::ZERO));
}

/// A clock that stands still, and counts what it is asked.
#[derive(Default)]
struct Counting {
    slept: RefCell<Vec<Duration>>,
    clock_reads: Cell<u32>,
    draws: Cell<u32>,
}

impl Sleeper for &Counting {
    type Sleep = std::future::Ready<()>;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        self.slept.borrow_mut().push(duration);
        ready(())
    }

    fn now(&self) -> Moment {
        self.clock_reads.set(self.clock_reads.get() + 1);
        Moment::ORIGIN
    }
}

impl Entropy for &Counting {
    fn draw(&mut self) -> Draw {
        self.draws.set(self.draws.get() + 1);
        Draw::LOWEST
    }
}

#[tokio::test]
async fn a_success_reads_no_clock_and_draws_nothing() {
    let timed = Policy::builder().max_elapsed(SECOND);
    for (policy, failures, clock_reads, draws) in [
        (built(Policy::builder()), 0, 0, 0),
        (built(Policy::builder()), 2, 0, 2),
        (built(timed.clone()), 0, 1, 0),
        (built(timed), 2, 3, 2),
    ] {
        let counting = Counting::default();
        let script = Script::failing(failures);
        let result = (|| script.call()).retry(&policy).sleeper(&counting).entropy(&counting).await;
        assert_eq!(result, Ok(failures + 1));
        assert_eq!((counting.clock_reads.get(), counting.draws.get()), (clock_reads, draws));
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_waits() {
    let policy = built(Policy::builder().decorrelated_jitter().max_attempts(12));
    let counting = Counting::default();
    let script = Script::failing(u32::MAX);
    (|| script.call()).retry(&policy).sleeper(&counting).entropy(Seeded::new(7)).await.expect_err("it fails");
    let backoff = &policy.rules[0].backoff;
    let foretold: Vec<Duration> = Delays::new(backoff, Seeded::new(7)).take(11).collect();
    assert_eq!(counting.slept.into_inner(), foretold);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_function_is_a_sleeper() {
    let policy = built(doubling().max_attempts(3));
    let script = Script::failing(2);
    assert_eq!((|| script.call()).retry(&policy).sleeper(tokio::time::sleep).await, Ok(3));
    assert_eq!(script.called_at_ms(), [0, 100, 300]);
}

#[tokio::test(start_paused = true)]
async fn it_can_be_sent_to_a_task() {
    fn sendable<F: Future + Send>(future: F) -> F {
        future
    }
    async fn fails() -> Result<(), String> {
        Err("always".to_owned())
    }
    let policy = built(doubling().max_attempts(3));
    let task = tokio::spawn(async move {
        let retried = fails.retry(&policy).when(|error| !error.is_empty()).before_retry(|_, _| ());
        sendable(retried.entropy(Seeded::new(1))).await
    });
    assert_eq!(task.await.expect("no panic"), Err("always".to_owned()));
}
