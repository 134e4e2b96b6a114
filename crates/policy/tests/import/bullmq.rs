//! BullMQ: its settings against its own formula.

use crate::{assert_bounds, assert_end, end, policy};
use redrive_policy::Disposition;
use redrive_policy::import::Source::BullMq;
use serde_json::json;

#[test]
fn exponential_delays_double_and_have_no_maximum() {
    for (jitter, low) in [(json!(0), 1.0), (json!(0.25), 0.75), (json!(1), 0.0)] {
        let backoff = json!({"type": "exponential", "delay": 1000, "jitter": jitter});
        let policy = policy(BullMq, json!({"attempts": 30, "backoff": backoff}));
        for n in [1, 2, 5, 25] {
            let longest = f64::from(1_u32 << (n - 1));
            assert_bounds(&policy, n, longest * low, longest);
        }
    }
}

#[test]
fn fixed_delays_stay() {
    for (backoff, low, high) in [
        (json!(2500), 2.5, 2.5),
        (json!({"type": "fixed", "delay": 2500}), 2.5, 2.5),
        (json!({"type": "fixed", "delay": 2500, "jitter": 0.5}), 1.25, 2.5),
        (json!({"type": "fixed", "delay": 3, "jitter": 0.5}), 0.001, 0.003),
        (json!({"type": "fixed"}), 0.0, 0.0),
        (json!(0), 0.0, 0.0),
        (json!(null), 0.0, 0.0),
    ] {
        let policy = policy(BullMq, json!({"attempts": 30, "backoff": backoff}));
        [1, 2, 5, 25].into_iter().for_each(|n| assert_bounds(&policy, n, low, high));
    }
}

#[test]
fn attempts_count_runs() {
    assert_end(BullMq, json!({}), 1, "max_attempts", Disposition::DeadLetter);
    for (attempts, runs) in [(0, 1), (1, 1), (2, 2), (17, 17)] {
        let value = json!({"attempts": attempts, "backoff": 10});
        assert_end(BullMq, value, runs, "max_attempts", Disposition::DeadLetter);
    }
}

#[test]
fn a_delay_of_minus_one_forbids_retries() {
    for backoff in
        [json!(-1), json!({"type": "fixed", "delay": -1}), json!({"type": "exponential", "delay": -1, "jitter": 0.5})]
    {
        let value = json!({"attempts": 5, "backoff": backoff});
        assert_end(BullMq, value, 1, "retries_disabled", Disposition::DeadLetter);
    }
}

#[test]
fn an_unrecoverable_error_ends_it() {
    let policy = policy(BullMq, json!({"attempts": 5, "backoff": 10}));
    assert_eq!(end(&policy, "UnrecoverableError"), Some((1, "non_retryable", Disposition::DeadLetter)));
}

#[test]
fn a_failed_job_is_kept_unless_it_is_removed() {
    for (remove, disposition) in [
        (json!(false), Disposition::DeadLetter),
        (json!(true), Disposition::Discard),
        (json!(0), Disposition::Discard),
        (json!({"count": 0, "age": 60}), Disposition::Discard),
        (json!(100), Disposition::DeadLetter),
        (json!({"age": 3600, "limit": 10}), Disposition::DeadLetter),
    ] {
        let value = json!({"attempts": 2, "backoff": 1, "removeOnFail": remove});
        assert_end(BullMq, value, 2, "max_attempts", disposition);
    }
}
