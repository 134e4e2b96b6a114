//! Temporal: its settings against its own formula.

use crate::{assert_bounds, assert_end, end, policy, read};
use redrive_policy::import::Source::Temporal;
use redrive_policy::{AttemptLimit, Disposition};
use serde_json::json;

/// initial × coefficient^(n-1), and never more than the maximum.
fn wanted_s(initial: f64, coefficient: f64, maximum: f64, n: u32) -> f64 {
    let mut delay = initial;
    for _ in 1..n {
        delay *= coefficient;
    }
    delay.min(maximum)
}

#[test]
fn defaults_are_filled_in_field_by_field() {
    for value in [
        json!({}),
        json!({"maximumAttempts": 0, "initialInterval": "0s", "backoffCoefficient": 0, "maximumInterval": "0s"}),
        json!({"maximumAttempts": null, "initialInterval": null, "nonRetryableErrorTypes": null}),
    ] {
        let import = read(Temporal, &value);
        assert!(import.lost.is_empty() && import.warnings.is_empty(), "{value}");
        assert_eq!(end(&import.policy, "error"), None, "{value}");
        assert_eq!(import.policy.on_stop, Disposition::Fail);
        for n in [1, 2, 5, 7, 8, 25, u32::MAX] {
            let delay = wanted_s(1.0, 2.0, 100.0, n.min(40));
            assert_bounds(&import.policy, n, delay, delay);
        }
    }
}

#[test]
fn the_default_maximum_is_a_hundred_times_the_initial_interval() {
    let policy = policy(Temporal, json!({"initialInterval": "10s", "backoffCoefficient": 3}));
    for n in [1, 2, 5, 25] {
        let delay = wanted_s(10.0, 3.0, 1000.0, n);
        assert_bounds(&policy, n, delay, delay);
    }
}

#[test]
fn both_spellings_and_both_notations_of_durations_mean_the_same() {
    let camel = json!({"initialInterval": "0.500s", "backoffCoefficient": 1.5, "maximumInterval": "100s",
        "maximumAttempts": 7, "nonRetryableErrorTypes": ["InvalidOrder"]});
    let snake = json!({"initial_interval": "500ms", "backoff_coefficient": 1.5, "maximum_interval": "1m40s",
        "maximum_attempts": 7, "non_retryable_error_types": ["InvalidOrder"]});
    let imports = [read(Temporal, &camel), read(Temporal, &snake)];
    assert_eq!(imports[0], imports[1]);
    for n in [1, 2, 5, 25] {
        let delay = wanted_s(0.5, 1.5, 100.0, n);
        assert_bounds(&imports[0].policy, n, delay, delay);
    }
}

#[test]
fn the_limit_counts_runs() {
    for runs in [1, 2, 3, 100] {
        assert_end(Temporal, json!({"maximumAttempts": runs}), runs, "max_attempts", Disposition::Fail);
    }
}

#[test]
fn error_types_are_compared_exactly() {
    let value = json!({"maximumAttempts": 4, "nonRetryableErrorTypes": ["Invalid.*", "Gone"]});
    let policy = policy(Temporal, value);
    assert_eq!(end(&policy, "Gone"), Some((1, "non_retryable", Disposition::Fail)));
    assert_eq!(end(&policy, "Invalid.*"), Some((1, "non_retryable", Disposition::Fail)));
    for other in ["gone", "Gone2", "Invalid.Order"] {
        assert_eq!(end(&policy, other), Some((4, "max_attempts", Disposition::Fail)), "{other}");
    }
}

/// The server skips its checks there, so that what it would refuse elsewhere is no obstacle.
#[test]
fn a_policy_of_one_attempt_is_not_checked_further() {
    let value = json!({"maximumAttempts": 1, "initialInterval": "10s", "maximumInterval": "1s",
        "backoffCoefficient": 0.5, "nonRetryableErrorTypes": ["TemporalTimeout:Never"]});
    let import = read(Temporal, &value);
    assert_eq!(import.policy.attempts, AttemptLimit::AtMost(1));
    assert_eq!(import.warnings.len(), 4);
    assert!(import.warnings.iter().all(|warning| warning.code == "no-effect"));
    assert!(import.lost.is_empty());
}
