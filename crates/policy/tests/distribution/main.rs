//! Jitter as a distribution: every mode against its exact law, with fixed seeds.
//!
//! A test of bounds alone misses a bias of 2.5 %. Each test here also shows that it would not:
//! the same sample is refused against the law that is off by that much, up and down.

#![cfg(feature = "dialects")]
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod continuous;
mod draws;
mod statistics;
mod whole;

use redrive_policy::{Entropy, Failure, History, Moment, Policy, Seeded, decide};

/// How many jobs each sample has. The Kolmogorov–Smirnov distance of a bias of 2.5 % is at least
/// 0.017 in every mode, twice the critical distance at this size.
const JOBS: usize = 50_000;

/// The delay before retry `retry` of many jobs, in milliseconds. One seed determines them all.
fn sample(policy: &Policy, retry: u32, seed: u64) -> Vec<f64> {
    let mut entropy = Seeded::new(seed);
    let failure = Failure::default();
    let one_job = |_| {
        let mut history = History::new(Moment::ORIGIN);
        let mut last_ms = f64::NAN;
        for _ in 0..retry {
            let verdict = decide(policy, &history, &failure, Moment::ORIGIN, entropy.draw());
            history.record(&verdict);
            last_ms = verdict.delay().expect("a retry").ms();
        }
        last_ms
    };
    (0..JOBS).map(one_job).collect()
}
