//! Exosphere's laws on whole milliseconds. Small bases make every single millisecond visible.

use super::sample;
use super::statistics::fits_whole;
use redrive_policy::Policy;
use redrive_policy::dialect::Dialect;
use serde_json::{Value, json};

fn exosphere(document: &Value) -> Policy {
    Dialect::Exosphere.read(document).expect("a valid policy").policy
}

fn assert_fits(name: &str, policy: &Policy, retry: u32, distribution: &[(f64, f64)]) {
    let total: f64 = distribution.iter().map(|(_, probability)| probability).sum();
    assert!((total - 1.0).abs() < 1e-12, "{name}: the probabilities add up to {total}");
    if let Err(why) = fits_whole(&sample(policy, retry, 61), distribution) {
        panic!("{name}: {why}");
    }
}

fn evenly(values: std::ops::RangeInclusive<u32>) -> Vec<(f64, f64)> {
    let count = f64::from(values.end() - values.start() + 1);
    values.map(|value| (f64::from(value), 1.0 / count)).collect()
}

#[test]
fn full_jitter_gives_every_whole_millisecond_below_the_delay_equally_often() {
    for (document, retry) in [
        (json!({"strategy": "FIXED_FULL_JITTER", "backoff_factor": 10}), 1),
        (json!({"strategy": "FIXED_FULL_JITTER", "backoff_factor": 10}), 3),
        (json!({"strategy": "LINEAR_FULL_JITTER", "backoff_factor": 5}), 2),
        (json!({"strategy": "EXPONENTIAL_FULL_JITTER", "backoff_factor": 1, "exponent": 10}), 2),
    ] {
        assert_fits(&format!("{document}, retry {retry}"), &exosphere(&document), retry, &evenly(0..=9));
    }
}

#[test]
fn equal_jitter_gives_every_whole_millisecond_of_the_upper_half_equally_often() {
    for (document, retry) in [
        (json!({"strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 10}), 1),
        (json!({"strategy": "LINEAR_EQUAL_JITTER", "backoff_factor": 5}), 2),
        (json!({"strategy": "EXPONENTIAL_EQUAL_JITTER", "backoff_factor": 5, "exponent": 2}), 2),
    ] {
        assert_fits(&format!("{document}, retry {retry}"), &exosphere(&document), retry, &evenly(5..=9));
    }
}

/// 3.5 plus uniform from 0 to 3.5, cut down: the first millisecond has half the share of the others.
#[test]
fn equal_jitter_over_an_odd_delay_cuts_its_first_millisecond_in_half() {
    let policy = exosphere(&json!({"strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 7}));
    let sevenths = |parts: u32| f64::from(parts) / 7.0;
    let distribution = [(3.0, sevenths(1)), (4.0, sevenths(2)), (5.0, sevenths(2)), (6.0, sevenths(2))];
    assert_fits("base 7", &policy, 1, &distribution);
}

#[test]
fn the_cap_after_full_jitter_collects_what_lies_above_it() {
    let policy = exosphere(&json!({"strategy": "FIXED_FULL_JITTER", "backoff_factor": 10, "max_delay": 6}));
    let mut distribution: Vec<(f64, f64)> = (0..6).map(|ms| (f64::from(ms), 0.1)).collect();
    distribution.push((6.0, 0.4));
    assert_fits("cap 6", &policy, 1, &distribution);
}

#[test]
fn the_cap_after_equal_jitter_collects_what_lies_above_it() {
    let policy = exosphere(&json!({"strategy": "FIXED_EQUAL_JITTER", "backoff_factor": 10, "max_delay": 8}));
    assert_fits("cap 8", &policy, 1, &[(5.0, 0.2), (6.0, 0.2), (7.0, 0.2), (8.0, 0.4)]);
}

#[test]
fn from_twice_the_cap_up_equal_jitter_is_the_cap_alone() {
    let policy = exosphere(&json!({"backoff_factor": 5, "strategy": "EXPONENTIAL_EQUAL_JITTER", "max_delay": 10}));
    assert!(sample(&policy, 3, 62).iter().all(|ms| *ms == 10.0));
}

#[test]
fn the_test_refuses_other_laws() {
    let policy = exosphere(&json!({"strategy": "FIXED_FULL_JITTER", "backoff_factor": 10}));
    // Ten cells share what one distribution function shows at once: a small bias needs more jobs.
    let sample: Vec<f64> = (61..65).flat_map(|seed| sample(&policy, 1, seed)).collect();
    assert_eq!(fits_whole(&sample, &evenly(0..=9)), Ok(()));
    let mut rounded = evenly(0..=10);
    (rounded[0].1, rounded[10].1) = (0.05, 0.05);
    rounded[1..10].iter_mut().for_each(|(_, probability)| *probability = 0.1);
    let mut biased = evenly(0..=9);
    biased.iter_mut().for_each(|(value, probability)| *probability += if *value < 5.0 { -0.0025 } else { 0.0025 });
    for (name, distribution) in [
        ("rounded to the nearest instead of cut down", rounded),
        ("the inclusive range of whole numbers", evenly(0..=10)),
        ("one millisecond short", evenly(0..=8)),
        ("the upper half 2.5 % more often", biased),
    ] {
        assert!(fits_whole(&sample, &distribution).is_err(), "{name} goes unnoticed");
    }
}
