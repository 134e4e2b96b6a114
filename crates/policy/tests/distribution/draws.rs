//! The draws themselves: uniform, and independent from seed to seed.

use super::JOBS;
use super::statistics::{Distribution, uncorrelated};
use redrive_policy::{Entropy, Seeded};

fn draws(seed: u64) -> Vec<f64> {
    let mut entropy = Seeded::new(seed);
    (0..JOBS).map(|_| entropy.draw().value()).collect()
}

#[test]
fn draws_are_uniform_for_any_seed() {
    for seed in [0, 1, 2, 42, u64::MAX, 0x9E37_79B9_7F4A_7C15] {
        Distribution::uniform(0.0, 1.0).assert_fits(&format!("seed {seed}"), &draws(seed));
    }
}

/// Jobs that are given a seed each, and draw once, must spread as well as one stream does.
#[test]
fn the_first_draws_of_consecutive_seeds_are_uniform() {
    let firsts: Vec<f64> = (0..JOBS as u64).map(|seed| Seeded::new(seed).draw().value()).collect();
    Distribution::uniform(0.0, 1.0).assert_fits("first draws", &firsts);
    if let Err(why) = uncorrelated(&firsts[1..], &firsts[..JOBS - 1]) {
        panic!("neighbouring seeds: {why}");
    }
}

#[test]
fn streams_of_different_seeds_are_uncorrelated() {
    for (a, b) in [(0, 1), (1, 2), (7, 8), (0, u64::MAX), (3, 1 << 32), (42, 43)] {
        if let Err(why) = uncorrelated(&draws(a), &draws(b)) {
            panic!("seeds {a} and {b}: {why}");
        }
    }
}

#[test]
fn a_stream_is_uncorrelated_with_itself_a_few_draws_later() {
    let stream = draws(5);
    for lag in [1, 2, 3, 10] {
        if let Err(why) = uncorrelated(&stream[lag..], &stream[..JOBS - lag]) {
            panic!("lag {lag}: {why}");
        }
    }
}

#[test]
fn the_test_of_correlation_refuses_dependent_streams() {
    let (a, b) = (draws(1), draws(2));
    let mixed: Vec<f64> = a.iter().zip(&b).map(|(a, b)| 0.05 * a + 0.95 * b).collect();
    assert!(uncorrelated(&a, &mixed).is_err(), "a twentieth of one stream in the other goes unnoticed");
}
