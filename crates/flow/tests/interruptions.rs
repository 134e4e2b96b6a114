//! Deadlines, cancellation and what is cleaned up on the way; dispatches that are cancelled; limits.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

use harness::{FINALLY, LOOP, MOCK, START, TIMEOUT, around, call, done, flow};
use redrive_flow::{Definition, Effect, Message, Start, StateError};
use redrive_policy::Draw;
use serde_json::{Value, json};

fn bound(duration: &str) -> Value {
    json!({ "provider": TIMEOUT, "onEntry": { "with": { "duration": duration } } })
}

fn cleanup(with: Value) -> Value {
    json!({ "provider": FINALLY, "onAlways": { "with": { "call": { "provider": MOCK, "with": with } } } })
}

const EXCEEDED: &str = "Provider.Middleware.Timeout.Exceeded";

#[test]
fn a_timeout_runs_the_cleanups_inside_of_it_and_emits_its_reason() {
    let ran = around(json!([bound("PT5S"), cleanup(json!({ "delay": "PT2S" }))]), json!({ "delay": "PT1M" })).run();
    assert_eq!((ran.code(), ran.waits.as_slice()), (EXCEEDED, &[5000.0, 2000.0][..]));
    assert_eq!(
        (&ran.result["type"], ran.result.get("previous")),
        (&json!("timeout"), None),
        "no trace of the cancellation"
    );
}

#[test]
fn a_cleanup_that_fails_stays_at_the_head_of_the_chain() {
    let failing = cleanup(json!({ "failure": { "code": "Lock.Lost" } }));
    let ran = around(json!([bound("PT5S"), failing]), json!({ "delay": "PT1M" })).run();
    let codes = [&ran.result["code"], &ran.result["previous"]["code"], &ran.result["previous"]["previous"]["code"]];
    assert_eq!(codes, ["Lock.Lost", "System.Cancelled", EXCEEDED]);
}

#[test]
fn a_cleanup_has_a_stack_of_its_own_also_while_everything_is_torn_down() {
    let slow = json!({
        "provider": FINALLY,
        "onAlways": { "with": {
            "call": { "provider": MOCK, "with": { "delay": "PT1H" } }, "middleware": [bound("PT3S")],
        } },
    });
    let ran = around(json!([bound("PT5S"), slow]), json!({ "delay": "PT1M" })).run();
    assert_eq!((ran.code(), ran.waits.as_slice()), (EXCEEDED, &[5000.0, 3000.0][..]));
    assert_eq!(ran.result["previous"]["code"], "System.Cancelled", "the cleanup failed, so nothing is converted");
}

#[test]
fn a_flow_that_is_cancelled_runs_its_cleanups_and_nothing_else() {
    let ran =
        around(json!([cleanup(json!({ "delay": "PT2S" }))]), json!({ "delay": "PT1M" })).cancelled_after(1000).run();
    assert_eq!(ran.result, json!({ "type": "cancellation", "code": "System.Cancelled" }));
    assert_eq!(ran.waits, [1000.0, 2000.0]);
    let mut first = call(json!([]), json!({ "delay": "PT1M" }));
    first["catch"] = json!([{ "match": { "codes": ["*"] }, "next": "done" }]);
    let ran = flow(json!({ "first": first, "done": done() })).cancelled_after(1000).run();
    assert_eq!(ran.code(), "System.Cancelled", "catch of its own frame does not see it");
}

#[test]
fn a_cancellation_during_an_unwinding_is_not_lost() {
    let stack = json!([bound("PT5S"), cleanup(json!({ "delay": "PT10S" }))]);
    let ran = around(stack, json!({ "delay": "PT1M" })).cancelled_after(6000).run();
    assert_eq!((ran.code(), ran.waits.as_slice()), ("System.Cancelled", &[5000.0, 1000.0, 9000.0][..]));
}

#[test]
fn dispatches_that_are_not_needed_any_more_are_cancelled_and_cleaned_up() {
    let slow = json!({
        "entrypoint": "first", "middleware": [cleanup(json!({ "delay": "PT2S" }))],
        "steps": { "first": call(json!([]), json!({ "delay": "PT1H" })), "done": done() },
    });
    let ran = flow(json!({
        "first": {
            "action": "Gather", "concurrency": 2, "completion": { "successes": 1, "wait": false }, "next": "done",
            "calls": [{ "flow": slow }, { "provider": MOCK, "with": { "delay": "PT1S" } }, { "provider": MOCK }],
            "output": "{{ step.results.map(r, r.type) }}",
        },
        "done": done(),
    }))
    .run();
    assert_eq!(ran.value(), &json!(["cancellation", "success", "skipped"]));
    assert_eq!(ran.waits, [1000.0, 2000.0]);
}

#[test]
fn a_timeout_around_a_gather_tears_all_dispatches_down() {
    let slow = |cleanup: Value| {
        json!({ "flow": {
        "entrypoint": "first", "middleware": [cleanup],
        "steps": { "first": call(json!([]), json!({ "delay": "PT1H" })), "done": done() },
    } })
    };
    let gather = |failing: Value| {
        let calls = json!([slow(cleanup(json!({ "delay": "PT2S" }))), slow(cleanup(failing))]);
        flow(json!({ "first": { "action": "Gather", "calls": calls, "next": "done" }, "done": done() }))
            .with("middleware", json!([bound("PT5S")]))
            .run()
    };
    let ran = gather(json!({}));
    assert_eq!((ran.code(), ran.waits.as_slice()), (EXCEEDED, &[5000.0, 2000.0][..]));
    assert_eq!(gather(json!({ "failure": { "code": "Lock.Lost" } })).code(), "Lock.Lost");
}

#[test]
fn a_result_at_the_moment_of_the_deadline_is_in_time() {
    assert_eq!(around(json!([bound("PT5S")]), json!({ "delay": "PT5S", "value": 1 })).run().value(), 1);
    assert_eq!(around(json!([bound("PT0S")]), json!({ "value": 1 })).run().code(), EXCEEDED);
    assert_eq!(around(json!([bound("-PT1S")]), json!({ "value": 1 })).run().code(), EXCEEDED);
}

#[test]
fn a_loop_that_is_gated_off_runs_nothing() {
    let entry =
        json!({ "provider": LOOP, "onEntry": { "when": false, "output": "none" }, "onSuccess": { "when": true } });
    assert_eq!(around(json!([entry]), json!({ "failure": { "code": "A.B" } })).run().value(), "none");
}

#[test]
fn values_that_grow_with_each_round_of_a_loop_end_it() {
    let growing = |value: &str| {
        let entry = json!({ "provider": LOOP, "onSuccess": { "when": true, "value": value } });
        around(json!([entry]), json!({})).input(json!("0123456789")).run().code().to_owned()
    };
    assert_eq!(growing("{{ [middleware.result.value] }}"), "System.UnrepresentableValue");
    assert_eq!(growing("{{ middleware.result.value + middleware.result.value }}"), "System.ExpressionEvaluationError");
}

#[test]
fn a_flow_that_does_not_end_stops_after_its_transitions() {
    let entry = json!({ "provider": LOOP, "onSuccess": { "when": true } });
    let definition = Definition::read(&around(json!([bound("PT1S"), entry]), json!({})).definition.to_string());
    let definition = definition.unwrap_or_else(|problems| panic!("{problems:?}"));
    let start = Start { id: "e".to_owned(), input: Value::Null, arguments: json!({}) };
    let state = definition.start(start, START).expect("a state");
    let step = |state, now| definition.step(state, Message::Continue, now, Draw::LOWEST, 1000).expect("a step");
    let (state, effects) = step(state, START);
    assert_eq!(effects, [Effect::Timer(START)], "it wants to go on at once");
    let later = redrive_policy::Moment::from_micros(START.micros() + 1_000_001);
    let (state, effects) = step(state, later);
    assert!(matches!(&effects[..], [Effect::Finish(result)] if result.to_value()["code"] == EXCEEDED), "{effects:?}");
    let other = Definition::read(&flow(json!({ "first": done() })).definition.to_string()).expect("valid");
    let resumed = other.step(state, Message::Continue, START, Draw::LOWEST, 1).map(|_| ());
    assert_eq!(resumed, Err(StateError::OtherDefinition));
}
