//! Faktory: its settings against its own formula.

use crate::{assert_bounds, assert_end, policy, read};
use redrive_policy::Disposition;
use redrive_policy::import::Source::Faktory;
use serde_json::json;

#[test]
fn delays_follow_the_fourth_power() {
    let policy = policy(Faktory, json!({"retry": 30}));
    for n in [1_u32, 2, 5, 25] {
        let base = f64::from((n - 1).pow(4) + 15);
        assert_bounds(&policy, n, base, base + f64::from(30 * n));
    }
}

#[test]
fn retry_counts_retries_and_has_three_special_values() {
    for value in [json!({}), json!({"retry": null}), json!({"retry": 25})] {
        assert_end(Faktory, value, 26, "max_attempts", Disposition::DeadLetter);
    }
    assert_end(Faktory, json!({"retry": 1}), 2, "max_attempts", Disposition::DeadLetter);
    assert_end(Faktory, json!({"retry": 0}), 1, "retries_disabled", Disposition::Discard);
    assert_end(Faktory, json!({"retry": -1}), 1, "retries_disabled", Disposition::DeadLetter);
    assert_end(Faktory, json!({"retry": -9}), 1, "retries_disabled", Disposition::DeadLetter);
}

#[test]
fn a_whole_job_can_be_handed_in() {
    let job = json!({"jid": "a1", "jobtype": "Mail", "args": [1, {}], "queue": "default", "retry": 3,
        "reserve_for": 600, "custom": {"unique_for": 60}, "failure": {"retry_count": 1, "remaining": 2}});
    let import = read(Faktory, &job);
    assert_eq!(import.policy, policy(Faktory, json!({"retry": 3})));
    assert_eq!(import.warnings.len(), 7);
}
