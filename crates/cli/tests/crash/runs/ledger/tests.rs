//! The ledger of runs detects violations.

use super::super::plan::{Shape, Step, result};
use super::*;
use serde_json::json;
use std::time::Duration;

fn step(after: Vec<usize>, doomed: bool) -> Step {
    let given = if after.is_empty() { Value::Null } else { json!(after) };
    Step { when: When::Completed, after, given, failing: 0, doomed }
}

/// A ledger with a chain of two steps, and with a schedule whose jobs come one by one.
fn ledger() -> RunLedger {
    let mut ledger = RunLedger::default();
    let steps = vec![step(vec![], false), step(vec![0], false)];
    ledger.workflow_sent("w", WorkflowPlan { shape: Shape::Chain, steps });
    let name = "s".to_owned();
    ledger.schedule_sent(SchedulePlan {
        name,
        expression: "* * * * * *",
        period: Duration::from_secs(1),
        one_by_one: true,
    });
    ledger
}

fn job(id: &str, step: usize, given: &Value) -> Value {
    let mut job = json!({ "id": id, "args": ["w", step], "workflow_id": "w" });
    if !given.is_null() {
        job["parent_results"] = given.clone();
    }
    job
}

fn slot(id: &str, slot: &str) -> Value {
    json!({ "id": id, "args": ["s"], "meta": { "cron_scheduled_at": slot } })
}

fn noticed(act: impl FnOnce(&mut RunLedger)) -> String {
    let mut ledger = ledger();
    act(&mut ledger);
    ledger.wrong.join("; ")
}

#[test]
fn the_ledger_notices_what_a_careless_server_does_with_steps_and_slots() {
    let (now, first) = (Instant::now(), Place::Step("w".to_owned(), 0));
    let in_order = |given: Value| {
        noticed(|ledger| {
            ledger.fetched(&job("a", 0, &Value::Null), now);
            ledger.ending(&first, true);
            ledger.fetched(&job("b", 1, &given), now);
        })
    };
    assert_eq!(in_order(json!([result(0)])), "");
    assert!(in_order(Value::Null).contains("it was not given"));
    let early = noticed(|ledger| ledger.fetched(&job("b", 1, &json!([result(0)])), now));
    assert!(early.contains("before the end of step 0"));
    let twice = noticed(|ledger| {
        ledger.fetched(&job("a", 0, &Value::Null), now);
        ledger.fetched(&job("b", 0, &Value::Null), now);
    });
    assert!(twice.contains("it was enqueued twice"));
    let again = noticed(|ledger| {
        ledger.fetched(&job("a", 0, &Value::Null), now);
        ledger.ending(&first, true);
        ledger.ended(&first);
        ledger.fetched(&job("a", 0, &Value::Null), Instant::now());
    });
    assert!(again.contains("was over, and was claimed"));
    let two_slots = noticed(|ledger| {
        ledger.fetched(&slot("a", "1"), now);
        ledger.fetched(&slot("b", "2"), now);
        ledger.fetched(&slot("c", "1"), now);
    });
    assert!(two_slots.contains("before the end of 1") && two_slots.contains("it was enqueued twice"), "{two_slots}");
}

#[test]
fn plans_say_what_becomes_of_a_workflow() {
    let steps = vec![step(vec![], true), step(vec![0], false)];
    let plan = WorkflowPlan { shape: Shape::Chain, steps };
    assert_eq!((plan.end(), plan.is_enqueued(0), plan.is_enqueued(1)), ("failed", true, false));
    let callback = |when| Step { when, ..step(vec![0], false) };
    let steps = vec![step(vec![], true), callback(When::Over), callback(When::Completed), callback(When::Failed)];
    let plan = WorkflowPlan { shape: Shape::Batch, steps };
    assert_eq!((plan.end(), plan.given(1)), ("completed", json!([null])));
    assert_eq!([1, 2, 3].map(|index| plan.is_enqueued(index)), [true, false, true]);
}
