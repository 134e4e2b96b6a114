//! Retry at flows, in both orders with Timeout, within Gather and around subflows.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

use harness::{EXHAUSTED, TIMEOUT, around, call, done, flow, policy, retry};
use serde_json::json;

/// "attachment": at a flow too, where all of its steps run again, as new executions.
#[test]
fn a_flow_is_run_again_as_a_whole() {
    let entry =
        retry(json!([policy(&["A.*"], 3)]), json!({ "assign": { "ids": "{{ vars.ids + [failure.details] }}" } }));
    let ran = flow(json!({
        "first": { "action": "Pass", "assign": { "here": "{{ step.id }}" }, "next": "route" },
        "route": {
            "action": "Match", "default": { "next": "fail" },
            "cases": [{ "when": "{{ size(vars.ids) == 2 }}", "next": "done" }],
        },
        "fail": { "action": "Raise", "result": { "code": "A.B", "details": "{{ vars.here }}", "previous": null } },
        "done": { "action": "Return", "value": "{{ vars.ids + [vars.here] }}" },
    }))
    .with("middleware", json!([entry]))
    .vars(json!({ "ids": [] }))
    .run();
    let ids = ran.value().as_array().expect("an array");
    assert_eq!(ids.len(), 3);
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
}

/// A bound outside of Retry is for all attempts, and one inside of it for each.
#[test]
fn timeouts_outside_and_inside() {
    let bound = json!({ "provider": TIMEOUT, "onEntry": { "with": { "duration": "PT5S" } } });
    let entry = retry(json!([policy(&["*"], 3)]), json!({}));
    let with = json!({ "delay": "PT3S", "failure": { "code": "A.B" } });
    let ran = around(json!([bound, entry]), with.clone()).run();
    assert_eq!((ran.code(), ran.waits.clone()), ("Provider.Middleware.Timeout.Exceeded", vec![3000.0, 2000.0]));
    let ran = around(json!([entry, bound]), with).run();
    assert_eq!((ran.code(), ran.waits.clone()), (EXHAUSTED, vec![3000.0, 3000.0, 3000.0]));
    let slow = json!({ "delay": "PT1M" });
    let ran = around(json!([entry, bound]), slow).run();
    assert_eq!(ran.result["previous"]["code"], "Provider.Middleware.Timeout.Exceeded");
    assert_eq!(ran.waits, [5000.0, 5000.0, 5000.0], "the bound is that of each attempt");
}

/// A bound that fires in the gap of a Retry ends the gap.
#[test]
fn a_timeout_ends_a_gap() {
    let bound = json!({ "provider": TIMEOUT, "onEntry": { "with": { "duration": "PT5S" } } });
    let policies = json!([{ "match": { "codes": ["*"] }, "attempts": 9, "backoff": { "initial": "PT1H" } }]);
    let ran = around(json!([bound, retry(policies, json!({}))]), json!({ "failure": { "code": "A.B" } })).run();
    assert_eq!((ran.code(), ran.waits.clone()), ("Provider.Middleware.Timeout.Exceeded", vec![5000.0]));
}

/// Dispatches of a Gather retry beside each other, each with its own count and its own variables.
#[test]
fn dispatches_of_a_gather_retry_for_themselves() {
    let policies =
        json!([{ "match": { "codes": ["*"] }, "attempts": "{{ vars.limit }}", "backoff": { "initial": "PT1S" } }]);
    let inner = json!({
        "parameters": { "type": "object", "properties": { "limit": { "type": "integer" }, "tries": { "default": "" } } },
        "entrypoint": "first",
        "steps": {
            "first": call(
                json!([retry(policies, json!({ "assign": { "tries": "{{ vars.tries + 'x' }}" } }))]),
                json!({ "value": "{{ vars.tries }}", "failure": "{{ size(vars.tries) < 2 ? {'code': 'A.B'} : null }}" }),
            ),
            "done": done(),
        },
    });
    let ran = flow(json!({
        "first": {
            "action": "Gather", "over": [1, 3, 5], "next": "done", "completion": { "successes": 2 },
            "call": { "flow": inner, "with": { "limit": "{{ call.input }}" } },
            "output": "{{ step.results.map(r, r.type == 'success' ? r.value : r.code) }}",
        },
        "done": done(),
    }))
    .run();
    assert_eq!(ran.value(), &json!([EXHAUSTED, "xx", "xx"]));
    assert_eq!(ran.waits, [1000.0, 1000.0], "they wait at the same time");
}

/// A call of a flow is run again with a frame of its own.
#[test]
fn a_subflow_is_run_again_with_new_variables() {
    let inner = json!({
        "entrypoint": "first",
        "steps": {
            "first": { "action": "Pass", "assign": { "seen": "{{ has(vars.seen) }}" }, "next": "fail" },
            "fail": { "action": "Raise", "result": { "code": "A.B", "details": "{{ vars.seen }}" } },
        },
    });
    let entry = retry(
        json!([policy(&["A.*"], 2)]),
        json!({ "assign": { "all": "{{ vars.all + [middleware.result.details] }}" } }),
    );
    let ran = flow(json!({
        "first": {
            "action": "Call", "middleware": [entry], "call": { "flow": inner }, "next": "done",
            "catch": [{ "match": { "codes": ["*"] }, "output": "{{ [vars.all, failure.previous.details] }}", "next": "done" }],
        },
        "done": done(),
    }))
    .vars(json!({ "all": [] }))
    .run();
    assert_eq!(ran.value()[1], false);
}
