//! Sidekiq: its settings against its own formula.

use crate::{assert_bounds, assert_end, policy, read};
use redrive_policy::import::Source::Sidekiq;
use redrive_policy::{AttemptLimit, Disposition, Draw, Failure, History, Moment, Outcome, Reason, Span, decide};
use serde_json::json;

#[test]
fn delays_follow_the_fourth_power() {
    let policy = policy(Sidekiq, json!({}));
    for n in [1_u32, 2, 5, 25] {
        let base = f64::from((n - 1).pow(4) + 15);
        assert_bounds(&policy, n, base, base + f64::from(10 * n));
    }
    assert_bounds(&policy, 25, 331_791.0, 332_041.0);
}

#[test]
fn retry_counts_retries_and_the_default_is_25() {
    for value in [json!({}), json!({"retry": true}), json!({"retry": null}), json!({"retry": 25})] {
        assert_end(Sidekiq, value, 26, "max_attempts", Disposition::DeadLetter);
    }
    for retries in [1, 2, 5] {
        assert_end(Sidekiq, json!({"retry": retries}), retries + 1, "max_attempts", Disposition::DeadLetter);
    }
    assert_end(Sidekiq, json!({"max_retries": 7}), 8, "max_attempts", Disposition::DeadLetter);
    assert_end(Sidekiq, json!({"max_retries": 7, "retry": 2}), 3, "max_attempts", Disposition::DeadLetter);
}

#[test]
fn zero_buries_and_false_forgets() {
    assert_end(Sidekiq, json!({"retry": 0}), 1, "max_attempts", Disposition::DeadLetter);
    assert_end(Sidekiq, json!({"retry": -3}), 1, "max_attempts", Disposition::DeadLetter);
    assert_end(Sidekiq, json!({"retry": false}), 1, "retries_disabled", Disposition::Discard);
    assert_end(Sidekiq, json!({"retry": false, "dead": true}), 1, "retries_disabled", Disposition::Discard);
    assert_end(Sidekiq, json!({"retry": 0, "dead": false}), 1, "max_attempts", Disposition::Discard);
    assert_end(Sidekiq, json!({"retry": 3, "dead": false}), 4, "max_attempts", Disposition::Discard);
    assert_end(Sidekiq, json!({"retry": 3, "dead": null}), 4, "max_attempts", Disposition::DeadLetter);
}

#[test]
fn retry_for_decides_alone() {
    let value = json!({"retry": 2, "retry_for": 3600});
    let import = read(Sidekiq, &value);
    assert_eq!(import.policy.attempts, AttemptLimit::Unlimited);
    let after = |secs: i64| {
        let history = History::with_failures(Moment::ORIGIN, 4);
        let now = Moment::from_micros(secs * 1_000_000);
        decide(&import.policy, &history, &Failure::default(), now, Draw::LOWEST).outcome
    };
    // The fifth retry waits 271 s at least.
    assert!(matches!(after(3328), Outcome::Retry { delay, .. } if delay == Span::from_secs(271)));
    for late in [3329, 3600, 9999] {
        let stop = after(late);
        let Outcome::Stop { reason: Reason::MaxElapsed { limit, .. }, disposition } = stop else { panic!("{stop:?}") };
        assert_eq!((limit, disposition), (Span::from_secs(3600), Disposition::DeadLetter));
    }
    assert_end(Sidekiq, json!({"retry": false, "retry_for": 60}), 1, "retries_disabled", Disposition::Discard);
    assert_eq!(policy(Sidekiq, json!({"retry": false, "retry_for": 60})).max_elapsed, None);
    assert_end(Sidekiq, json!({"retry_for": null}), 26, "max_attempts", Disposition::DeadLetter);
}
