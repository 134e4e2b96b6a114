//! Computing delays: 100 ms × 2, at most 30 s, jittered, eight of them in a row.

use backoff::backoff::Backoff as _;
use backon::BackoffBuilder as _;
use redrive_benches::Contender;
use redrive_policy::retry::Delays;
use redrive_policy::{Ambient, Draw, Entropy, Failure, History, Moment, Policy, Seeded, decide};
use std::hint::black_box;
use std::rc::Rc;
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
const DELAYS: u32 = 8;
const SEQUENCES: u32 = 250;

pub fn own_policy() -> Policy {
    let builder = Policy::builder().exponential(FIRST, 2.0).max_delay(LONGEST).full_jitter();
    builder.max_attempts(DELAYS + 1).build().expect("a valid policy")
}

pub fn backon_policy() -> backon::ExponentialBuilder {
    let builder = backon::ExponentialBuilder::default().with_min_delay(FIRST).with_factor(2.0);
    builder.with_max_delay(LONGEST).with_max_times(DELAYS as usize).with_jitter()
}

pub fn tokio_retry2_policy() -> impl Iterator<Item = Duration> {
    let delays = tokio_retry2::strategy::ExponentialFactorBackoff::from_millis(100, 2.0).max_delay(LONGEST);
    delays.map(tokio_retry2::strategy::jitter).take(DELAYS as usize)
}

pub fn backoff_policy() -> backoff::ExponentialBackoff {
    let mut builder = backoff::ExponentialBackoffBuilder::new();
    builder.with_initial_interval(FIRST).with_multiplier(2.0).with_max_interval(LONGEST);
    builder.with_randomization_factor(0.5).with_max_elapsed_time(None).build()
}

/// One contender whose slice is so many sequences of delays.
fn sequences<'a>(name: &'static str, ours: bool, mut sequence: impl FnMut() + 'a) -> Contender<'a> {
    let slice = move || (0..SEQUENCES).for_each(|_| sequence());
    Contender { name, ours, operations: SEQUENCES * DELAYS, slice: Box::new(slice) }
}

fn consumed(delay: Duration) {
    black_box(delay);
}

/// Delays as `std::time::Duration`, the policy set up anew for each sequence as a retry loop does.
pub fn against_peers(policy: &Policy) -> Vec<Contender<'_>> {
    let backoff = &policy.rules[0].backoff;
    let backon = backon_policy();
    let mut seeded = Seeded::new(1);
    vec![
        sequences("redrive, thread-local generator", true, move || {
            Delays::new(black_box(backoff), Ambient).take(DELAYS as usize).for_each(consumed);
        }),
        sequences("redrive, seeded generator", true, move || {
            Delays::new(black_box(backoff), &mut seeded).take(DELAYS as usize).for_each(consumed);
        }),
        sequences("backon, own generator", false, move || {
            black_box(backon).build().for_each(consumed);
        }),
        sequences("tokio-retry2, thread-local generator", false, || {
            tokio_retry2_policy().for_each(consumed);
        }),
        sequences("backoff, thread-local generator", false, || {
            let mut backoff = backoff_policy();
            (0..DELAYS).filter_map(|_| backoff.next_backoff()).for_each(consumed);
        }),
    ]
}

/// The decision against the delay that is a part of it; the draws are made beforehand.
pub fn decision_against_delay(policy: &Policy) -> Vec<Contender<'_>> {
    let backoff = &policy.rules[0].backoff;
    let mut entropy = Seeded::new(1);
    let draws: Rc<[Draw]> = (0..DELAYS).map(|_| entropy.draw()).collect();
    let (draws_to_decide, draws_to_record) = (Rc::clone(&draws), Rc::clone(&draws));
    let histories: Vec<History> = (0..DELAYS).map(|n| History::with_failures(Moment::ORIGIN, n)).collect();
    let failure = Failure::default();
    vec![
        sequences("the bare delay", true, move || {
            for (n, draw) in (1..).zip(&*draws) {
                black_box(&black_box(backoff).delay(n, None, *draw));
            }
        }),
        sequences("decide", true, move || {
            for (history, draw) in histories.iter().zip(&*draws_to_decide) {
                black_box(&decide(black_box(policy), history, black_box(&failure), Moment::ORIGIN, *draw));
            }
        }),
        sequences("decide, and record it in the history", true, move || {
            let mut history = History::new(Moment::ORIGIN);
            for draw in &*draws_to_record {
                let verdict = decide(black_box(policy), &history, black_box(&failure), Moment::ORIGIN, *draw);
                history.record(black_box(&verdict));
            }
        }),
    ]
}
