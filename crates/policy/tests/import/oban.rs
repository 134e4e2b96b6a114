//! Oban: its settings against its own formula.

use crate::{assert_bounds, assert_end, bounds_s, policy};
use redrive_policy::import::Source::Oban;
use redrive_policy::{Curve, Disposition};
use serde_json::json;

/// The whole number nearest to 20 × attempt / max, halves up; the attempt itself up to 20.
fn exponent(n: u32, max: u32) -> u32 {
    if max <= 20 { n } else { (40 * n + max) / (2 * max) }
}

#[test]
fn up_to_twenty_attempts_delays_double() {
    for value in [json!({}), json!({"max_attempts": 20}), json!({"max_attempts": 3})] {
        let policy = policy(Oban, value);
        for n in [1, 2, 5, 25] {
            let base = f64::from(15 + (1_u32 << exponent(n, 20)));
            assert_bounds(&policy, n, base, base * 1.1);
        }
    }
}

#[test]
fn above_twenty_attempts_delays_pass_through_the_steps() {
    assert_eq!([1, 2, 3, 4, 5, 6, 7, 8].map(|n| exponent(n, 25)), [1, 2, 2, 3, 4, 5, 6, 6]);
    for max in [21, 25, 30, 100, 1000] {
        let policy = policy(Oban, json!({"max_attempts": max}));
        for n in 1..max {
            let ours = policy.rules[0].backoff.raw(n).secs();
            let theirs = f64::from(15 + (1_u32 << exponent(n, max)));
            let ratio = ours / theirs;
            assert!((1.0 / 1.42..=1.42).contains(&ratio), "{max} attempts, retry {n}: {ours} against {theirs}");
        }
        // Where the exponent is whole the two agree.
        let last = policy.rules[0].backoff.raw(max).secs();
        assert!((last - 1_048_591.0).abs() < 1e-3, "{last}");
    }
}

#[test]
fn max_attempts_counts_runs() {
    assert_end(Oban, json!({}), 20, "max_attempts", Disposition::DeadLetter);
    for runs in [1, 2, 20, 21, 40] {
        assert_end(Oban, json!({"max_attempts": runs}), runs, "max_attempts", Disposition::DeadLetter);
    }
}

#[test]
fn an_extreme_number_of_attempts_is_still_a_policy() {
    let policy = policy(Oban, json!({"max_attempts": u32::MAX}));
    assert!(matches!(policy.rules[0].backoff.curve, Curve::Exponential { rate } if rate >= 1.0));
    // An exponent of nearly 0: one second, and the constant fifteen.
    let (low, high) = bounds_s(&policy, 1);
    assert!((low - 16.0).abs() < 1e-6 && (high - 17.6).abs() < 1e-6, "{low} to {high}");
}
