//! The ledger detects violations.

use super::*;
use serde_json::json;

const NATURE: JobPlan =
    JobPlan { limit: 3, failing: 1, delay: Duration::from_millis(10), start: Duration::ZERO, dead_letter: false };

fn run(attempt: u32, started: u32) -> Value {
    json!({
        "id": "j", "attempt": attempt, "lease_token": format!("{attempt}-0"), "state": "active",
        "started_at": format!("{started:03}"), "lease_expires_at": format!("{:03}", started + 10),
    })
}

/// A ledger in which a job was accepted, claimed once, and failed with a wait of an hour.
fn failed_once() -> Ledger {
    let mut ledger = Ledger::default();
    ledger.sent("j", NATURE, 1);
    ledger.created("j");
    ledger.fetched(&run(1, 1), Instant::now());
    ledger.ending("j", &json!("1-0"), false);
    let answer = json!({ "state": "retryable", "retry_delay_ms": 3_600_000, "next_attempt_at": "500" });
    ledger.ended("j", &json!("1-0"), 200, &answer);
    assert!(ledger.wrong.is_empty(), "{:?}", ledger.wrong);
    ledger
}

fn noticed(mut ledger: Ledger, act: impl FnOnce(&mut Ledger)) -> String {
    act(&mut ledger);
    ledger.wrong.join("; ")
}

#[test]
fn the_ledger_notices_what_a_careless_server_does_with_runs() {
    let now = Instant::now();
    assert!(noticed(failed_once(), |ledger| ledger.fetched(&run(2, 600), now)).contains("early"));
    assert!(noticed(failed_once(), |ledger| ledger.fetched(&run(1, 600), now)).contains("attempt 1 after attempt 1"));
    assert!(noticed(failed_once(), |ledger| ledger.fetched(&run(4, 600), now)).contains("attempt 4 of at most 3"));
    let two = |ledger: &mut Ledger| {
        ledger.fetched(&run(1, 1), now);
        ledger.fetched(&run(2, 5), now);
    };
    let mut fresh = Ledger::default();
    fresh.sent("j", NATURE, 1);
    assert!(noticed(fresh, two).contains("two leases at once"));
    let heard_late = |second_started: u32| {
        let mut fresh = Ledger::default();
        fresh.sent("j", NATURE, 1);
        noticed(fresh, |ledger| {
            ledger.fetched(&run(2, second_started), now);
            ledger.fetched(&run(1, 1), now);
        })
    };
    assert_eq!(heard_late(20), "", "the first lease was over, its answer only came late");
    assert!(heard_late(5).contains("two leases at once: attempt 2"));
    let after_the_end = |ledger: &mut Ledger| {
        ledger.cancelled("j");
        ledger.fetched(&run(3, 600), Instant::now());
    };
    assert!(noticed(failed_once(), after_the_end).contains("it is cancelled, and was claimed"));
    let refused = |ledger: &mut Ledger| {
        ledger.fetched(&run(3, 600), Instant::now());
        ledger.ending("j", &json!("3-0"), true);
        ledger.ended("j", &json!("3-0"), 409, &json!({}));
    };
    assert!(noticed(failed_once(), refused).contains("a good lease was refused"));
}

#[test]
fn the_ledger_notices_what_a_crash_took() {
    let stored = json!({
        "id": "j", "state": "retryable", "attempt": 1, "errors": [{ "attempt": 1, "message": message_of(1) }],
    });
    let with = |key: &str, value: Value| {
        let mut job = stored.clone();
        job[key] = value;
        job
    };
    let seen = |jobs: &[Value]| noticed(failed_once(), |ledger| ledger.compare(jobs));
    assert_eq!(seen(std::slice::from_ref(&stored)), "");
    assert!(seen(&[]).contains("is lost"));
    assert!(seen(&[stored.clone(), stored.clone()]).contains("listed twice"));
    assert!(seen(&[with("errors", json!([]))]).contains("not in the history"));
    assert!(seen(&[with("attempt", json!(0))]).contains("attempt 0, of 3, after 1"));
    assert!(seen(&[with("attempt", json!(2))]).contains("1 failures and attempt 2"));
    assert!(seen(&[with("state", json!("discarded"))]).contains("1 failures and attempt 1 of 3 when discarded"));
    assert!(seen(&[stored.clone(), with("id", json!("k"))]).contains("never sent"));
    let came_back = |ledger: &mut Ledger| {
        ledger.cancelled("j");
        ledger.compare(std::slice::from_ref(&stored));
    };
    assert!(noticed(failed_once(), came_back).contains("it was cancelled and is retryable"));
    let half = |ledger: &mut Ledger| {
        ledger.sent("k", NATURE, 1);
        ledger.compare(std::slice::from_ref(&stored));
    };
    assert!(noticed(failed_once(), half).contains("of batch 1 1 jobs are stored and 1 are not"));
}
