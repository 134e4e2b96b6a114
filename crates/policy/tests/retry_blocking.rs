//! The blocking loop, with a sleeper that writes down and does not sleep.
#![allow(clippy::expect_used, reason = "a test fails by panicking, in its helpers too")]

use redrive_policy::{
    BlockingRetryable, Draw, Entropy, Failure, Moment, Policy, PolicyBuilder, Seeded, Signal, Span, retry_blocking,
};
use std::cell::{Cell, RefCell};
use std::time::Duration;

fn built(builder: PolicyBuilder) -> Policy {
    builder.build().expect("a valid policy")
}

fn doubling() -> PolicyBuilder {
    Policy::builder().exponential(Duration::from_millis(100), 2.0).no_jitter()
}

/// An operation that fails with its number so many times.
fn failing(failures: u32) -> impl FnMut() -> Result<u32, u32> {
    let mut calls = 0;
    move || {
        calls += 1;
        if calls > failures { Ok(calls) } else { Err(calls) }
    }
}

#[test]
fn the_waits_are_those_of_the_policy() {
    let mut waits_ms = Vec::new();
    let policy = built(doubling().max_attempts(5));
    let result = failing(3).retry_blocking(&policy).sleeper(|wait| waits_ms.push(wait.as_millis())).call();
    assert_eq!((result, waits_ms), (Ok(4), vec![100, 200, 400]));
}

/// RET-01: `max_attempts` is an exact upper bound on runs, the first one included.
#[test]
fn max_attempts_is_exact_and_the_last_error_comes_back() {
    for limit in 0..=6 {
        let mut waits = 0;
        let policy = built(doubling().max_attempts(limit));
        let result = retry_blocking(&policy, failing(u32::MAX)).sleeper(|_| waits += 1).call();
        assert_eq!((result, waits), (Err(limit.max(1)), limit.max(1) - 1), "limit {limit}");
    }
}

#[test]
fn max_elapsed_is_measured_on_the_clock_that_was_given() {
    const START: Moment = Moment::from_micros(3_600_000_000);
    let now = Cell::new(START);
    let policy = built(doubling().unlimited_attempts().max_elapsed(Duration::from_millis(1_000)));
    let result = retry_blocking(&policy, failing(u32::MAX))
        .sleeper(|wait| now.set(now.get().after(wait.into())))
        .clock(|| now.get())
        .call();
    // Waits of 100, 200 and 400 ms; the next one would end at 1.5 s.
    assert_eq!(result, Err(4));
    assert_eq!(now.get().since(START), Span::from_millis(700));
}

#[test]
fn a_success_reads_no_clock_and_draws_nothing() {
    struct Forbidden;
    impl Entropy for Forbidden {
        fn draw(&mut self) -> Draw {
            panic!("a success needs no draw")
        }
    }
    let policy = built(Policy::builder());
    let untouched = failing(0).retry_blocking(&policy).entropy(Forbidden).clock(|| panic!("a success needs no clock"));
    assert_eq!(untouched.call(), Ok(1));
}

#[test]
fn errors_are_classified_and_hooks_called_in_order() {
    let policy = built(doubling().except_types(["fatal"]).max_attempts(9));
    let log = RefCell::new(Vec::new());
    let result = failing(u32::MAX)
        .retry_blocking(&policy)
        .classify(|error| Failure::of_type(if *error == 4 { "fatal" } else { "passing" }))
        .retry_after(|error| (*error == 2).then_some(Duration::from_secs(9)))
        .before_retry(|error, verdict| log.borrow_mut().push((*error, verdict.delay())))
        .on_stop(|error, verdict| log.borrow_mut().push((*error, verdict.delay())))
        .sleeper(|_| ())
        .call();
    assert_eq!(result, Err(4));
    let millis = |ms| Some(Span::from_millis(ms));
    assert_eq!(log.into_inner(), [(1, millis(100)), (2, millis(9_000)), (3, millis(400)), (4, None)]);
}

#[test]
fn permanent_errors_are_not_retried_and_requeues_not_counted() {
    let policy = built(doubling().max_attempts(2));
    let mut waits_ms = Vec::new();
    let result = failing(u32::MAX)
        .retry_blocking(&policy)
        .classify(|error| match error {
            1 | 2 => Failure::default().with_signal(Signal::RequeueAfter(Span::from_secs(5))),
            _ => Failure::default(),
        })
        .sleeper(|wait| waits_ms.push(wait.as_millis()))
        .call();
    assert_eq!((result, waits_ms), (Err(4), vec![5_000, 5_000, 100]));
    let permanent = failing(u32::MAX).retry_blocking(&policy).when(|_| false).sleeper(|_| panic!("no wait"));
    assert_eq!(permanent.call(), Err(1));
}

#[test]
fn waits_of_no_length_are_left_out() {
    let policy = built(Policy::builder().immediate().max_attempts(3));
    assert_eq!(failing(2).retry_blocking(&policy).sleeper(|_| panic!("no wait")).call(), Ok(3));
}

/// The waits under full jitter, from many calls that share one seeded source, are uniform.
#[test]
fn a_source_of_draws_can_be_lent_to_many_calls() {
    let policy = built(Policy::builder().fixed(Duration::from_secs(1)).full_jitter().max_attempts(2));
    let mut entropy = Seeded::new(11);
    let mut quarters = [0_u32; 4];
    for _ in 0..4_000 {
        let count = |wait: Duration| quarters[(wait.as_secs_f64() * 4.0) as usize] += 1;
        failing(9).retry_blocking(&policy).entropy(&mut entropy).sleeper(count).call().expect_err("it fails");
    }
    // Each quarter holds 1000 of them; five standard deviations are 137.
    assert!(quarters.iter().all(|count| count.abs_diff(1_000) < 137), "{quarters:?}");
}
