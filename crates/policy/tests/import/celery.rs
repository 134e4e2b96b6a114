//! Celery: its settings against its own formula.

use crate::{assert_bounds, assert_end, end, policy};
use redrive_policy::Disposition;
use redrive_policy::import::Source::Celery;
use serde_json::{Value, json};

fn task(more: Value) -> Value {
    let mut task = json!({"autoretry_for": ["Exception"]});
    let more = more.as_object().expect("an object").clone();
    task.as_object_mut().expect("an object").extend(more);
    task
}

#[test]
fn without_autoretry_for_nothing_is_retried() {
    for value in [json!({}), json!({"max_retries": 5}), json!({"autoretry_for": [], "retry_backoff": true})] {
        assert_end(Celery, value, 1, "retries_disabled", Disposition::Fail);
    }
}

#[test]
fn without_backoff_every_delay_is_the_same() {
    for (value, delay) in [
        (task(json!({})), 180.0),
        (task(json!({"retry_backoff": false})), 180.0),
        (task(json!({"retry_backoff": 0})), 180.0),
        (task(json!({"default_retry_delay": 2.5})), 2.5),
        (task(json!({"retry_kwargs": {"countdown": 7}})), 7.0),
        (task(json!({"retry_kwargs": {"countdown": null}})), 180.0),
        (task(json!({"retry_kwargs": {"countdown": 0}, "default_retry_delay": 9})), 0.0),
    ] {
        let policy = policy(Celery, value);
        [1, 2, 5, 25].into_iter().for_each(|n| assert_bounds(&policy, n, delay, delay));
    }
}

#[test]
fn with_backoff_the_delay_doubles_and_is_capped_before_the_jitter() {
    for (value, factor, maximum) in [
        (json!({"retry_backoff": true}), 1, 600),
        (json!({"retry_backoff": 5, "retry_backoff_max": 700}), 5, 700),
        (json!({"retry_backoff": 2.9, "retry_backoff_max": 700.9}), 2, 700),
        (json!({"retry_backoff": 0.5}), 1, 600),
        (json!({"retry_backoff": -4}), 1, 600),
        (json!({"retry_backoff": 3600}), 3600, 600),
        (json!({"retry_backoff": true, "retry_backoff_max": 0}), 1, 0),
        (json!({"retry_backoff": true, "default_retry_delay": 9, "retry_kwargs": {"countdown": 5}}), 1, 600),
    ] {
        let jittered = policy(Celery, task(value.clone()));
        let mut value = task(value);
        value["retry_jitter"] = json!(false);
        let plain = policy(Celery, value);
        for n in [1, 2, 5, 25] {
            let base: u64 = (factor << (n - 1)).min(maximum);
            assert_bounds(&jittered, n, 0.0, base as f64);
            assert_bounds(&plain, n, base as f64, base as f64);
        }
    }
}

#[test]
fn the_limit_counts_retries() {
    assert_end(Celery, task(json!({})), 4, "max_attempts", Disposition::Fail);
    assert_end(Celery, task(json!({"max_retries": 0})), 1, "max_attempts", Disposition::Fail);
    assert_end(Celery, task(json!({"max_retries": -1})), 1, "max_attempts", Disposition::Fail);
    assert_end(Celery, task(json!({"max_retries": 12})), 13, "max_attempts", Disposition::Fail);
    assert_eq!(end(&policy(Celery, task(json!({"max_retries": null}))), "error"), None);
    let overridden = task(json!({"max_retries": null, "retry_kwargs": {"max_retries": 5}}));
    assert_end(Celery, overridden, 6, "max_attempts", Disposition::Fail);
    let not_overridden = task(json!({"max_retries": 2, "retry_kwargs": {"max_retries": null}}));
    assert_end(Celery, not_overridden, 3, "max_attempts", Disposition::Fail);
}

#[test]
fn the_two_lists_decide_what_is_retried() {
    let listed = policy(Celery, json!({"autoretry_for": ["IOError", "Timeout"], "dont_autoretry_for": ["Timeout"]}));
    assert_eq!(end(&listed, "IOError"), Some((4, "max_attempts", Disposition::Fail)));
    assert_eq!(end(&listed, "Timeout"), Some((1, "non_retryable", Disposition::Fail)));
    assert_eq!(end(&listed, "ValueError"), Some((1, "non_retryable", Disposition::Fail)));
    let all = policy(Celery, task(json!({"dont_autoretry_for": ["Timeout"]})));
    assert_eq!(end(&all, "ValueError"), Some((4, "max_attempts", Disposition::Fail)));
    assert_eq!(end(&all, "Timeout"), Some((1, "non_retryable", Disposition::Fail)));
    let none = policy(Celery, task(json!({"dont_autoretry_for": ["builtins.BaseException"]})));
    assert_eq!(end(&none, "ValueError"), Some((1, "non_retryable", Disposition::Fail)));
}
