//! The phases of a Retry beside each other and within each other: what gates them, what their faults become, what is
//! restored at a flow, and Retries in Retries.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

use harness::{EXHAUSTED, FINALLY, LOOP, MOCK, TIMEOUT, around, call, done, failing_with, flow, policy, retry};
use serde_json::{Value, json};

/// "No restore occurs on the final emission": what the last attempt wrote stands after a success too.
#[test]
fn nothing_is_restored_where_the_last_attempt_succeeds() {
    let entry = retry(json!([policy(&["*"], 3)]), json!({ "assign": { "n": "{{ vars.n + 1.0 }}" } }));
    let mut first = call(json!([entry]), json!({ "failure": "{{ vars.n < 1.0 ? {'code': 'A.B'} : null }}" }));
    first["call"]["onSuccess"] = json!({ "assign": { "x": "written" } });
    first["output"] = json!("{{ [vars.x, vars.n] }}");
    let ran = flow(json!({ "first": first, "done": done() })).vars(json!({ "x": "start", "n": 0 })).run();
    assert_eq!(ran.value(), &json!(["written", 1]));
}

/// "Re-entry restores the frame's variables", at a flow: those after its onEntry, whatever its steps assigned.
#[test]
fn a_flow_that_is_run_again_has_the_variables_after_on_entry() {
    let mut entry = retry(json!([policy(&["*"], 3)]), json!({ "assign": { "seen": "{{ vars.seen + [vars.x] }}" } }));
    entry["onEntry"]["assign"] = json!({ "x": "entry" });
    let ran = flow(json!({
        "first": { "action": "Pass", "assign": { "was": "{{ vars.x + string(has(vars.new)) }}" }, "next": "write" },
        "write": { "action": "Pass", "assign": { "x": "{{ vars.was }}", "new": 1 }, "next": "route" },
        "route": {
            "action": "Match", "default": { "next": "fail" },
            "cases": [{ "when": "{{ size(vars.seen) == 2 }}", "next": "done" }],
        },
        "fail": { "action": "Raise", "result": { "code": "A.B" } },
        "done": { "action": "Return", "value": "{{ vars.seen + [vars.x] }}" },
    }))
    .with("middleware", json!([entry]))
    .vars(json!({ "x": "start", "seen": [] }))
    .run();
    assert_eq!(ran.value(), &json!(["entryfalse", "entryfalse", "entryfalse"]));
}

/// Gating of each phase: where `when` is false, `with` is not read; what is shaped and assigned is evaluated all the
/// same.
#[test]
fn each_phase_has_its_gate() {
    let unread = json!({ "policies": "{{ vars.missing }}", "delay": "{{ vars.missing }}" });
    let phase = |name: &str| {
        let log = format!("{{{{ vars.log + ' {name}' }}}}");
        json!({ "when": "{{ vars.log == 'never' }}", "with": unread, "assign": { "log": log } })
    };
    let gated = |failure: Value| {
        let mut entry = json!({ "provider": harness::RETRY });
        for name in ["onEntry", "onSuccess", "onFailure", "onAlways"] {
            entry[name] = phase(name);
        }
        let mut first = call(json!([entry]), json!({ "value": 1, "failure": failure }));
        first["output"] = json!("{{ vars.log }}");
        first["catch"] =
            json!([{ "match": { "codes": ["*"] }, "output": "{{ vars.log + ' ' + failure.code }}", "next": "done" }]);
        flow(json!({ "first": first, "done": done() })).vars(json!({ "log": "" })).run().value().clone()
    };
    assert_eq!(gated(Value::Null), " onEntry onSuccess onAlways");
    assert_eq!(gated(json!({ "code": "A.B" })), " onEntry onFailure onAlways A.B");
}

/// A phase whose gate is open takes no `with` where it has no parameters.
#[test]
fn phases_without_parameters_take_none() {
    for name in ["onSuccess", "onAlways"] {
        let mut entry = retry(json!([policy(&["*"], 3)]), json!({}));
        entry[name] = json!({ "with": { "delay": "PT1S" } });
        let ran = around(json!([entry]), json!({ "value": 1 })).run();
        assert_eq!(ran.code(), "System.ParameterValidationFailed", "{name}");
    }
}

/// A fault in a phase supersedes the failure that it handles, which is not retried then; it is emitted from the place
/// of the entry, so that a Retry around it sees it.
#[test]
fn a_fault_in_on_failure_supersedes_the_failure() {
    let missing = "{{ vars.missing }}";
    for on_failure in [
        json!({ "when": missing }),
        json!({ "when": "{{ 'text' }}" }),
        json!({ "with": { "delay": missing } }),
        json!({ "assign": { "x": missing } }),
    ] {
        let entry = retry(json!([policy(&["*"], 9)]), on_failure.clone());
        let ran = around(json!([entry]), json!({ "failure": { "code": "A.B" } })).run();
        assert_eq!(
            (ran.code(), &ran.result["previous"]["code"]),
            ("System.ExpressionEvaluationError", &json!("A.B")),
            "{on_failure}"
        );
        let outer = retry(json!([policy(&["System.*"], 2)]), json!({}));
        let ran = around(json!([outer, entry]), json!({ "failure": { "code": "A.B" } })).run();
        assert_eq!((ran.code(), &ran.result["details"]["attempts"]), (EXHAUSTED, &json!(2)), "{on_failure}");
    }
}

/// A fault in the fields of the call is its Result, and a middleware inside that fails at its entry rises too: both are
/// failures of the inner scope.
#[test]
fn faults_of_the_inner_scope_are_retried() {
    let counted = || retry(json!([policy(&["System.*"], 3)]), json!({ "assign": { "n": "{{ vars.n + 1.0 }}" } }));
    let with = json!({ "value": "{{ vars.n < 2.0 ? vars.missing : 'well' }}" });
    assert_eq!(around(json!([counted()]), with).vars(json!({ "n": 0 })).run().value(), "well");
    let bound = json!({
        "provider": TIMEOUT, "onEntry": { "with": { "duration": "{{ vars.n < 2.0 ? 'soon' : 'PT1M' }}" } },
    });
    let ran = around(json!([counted(), bound]), json!({ "value": "well" })).vars(json!({ "n": 0 })).run();
    assert_eq!(ran.value(), "well");
}

/// What fails before the middleware of a flow is entered is not retried there.
#[test]
fn invalid_arguments_of_a_flow_are_not_retried_by_it() {
    let inner = json!({
        "entrypoint": "first", "steps": { "first": { "action": "Return" } },
        "parameters": { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] },
        "middleware": [retry(json!([policy(&["*"], 9)]), json!({}))],
    });
    let first = json!({ "action": "Call", "call": { "flow": inner, "with": { "n": "x" } }, "next": "done" });
    let ran = flow(json!({ "first": first, "done": done() })).run();
    assert_eq!((ran.code(), ran.result.get("previous")), ("System.ParameterValidationFailed", None));
}

/// A Retry within a Retry: each run of the outer one enters the inner one anew, with its whole budget, its own schedule
/// and its own `attempt`. The outer one sees its exhaustion.
#[test]
fn a_retry_within_a_retry_begins_anew_with_each_run() {
    let seen = json!({ "assign": { "seen": "{{ vars.seen + [middleware.metadata.attempt] }}" } });
    let backoff = json!({ "initial": "PT1S", "rate": 2 });
    let inner = retry(json!([{ "match": { "codes": ["A.*"] }, "attempts": 3, "backoff": backoff }]), seen);
    let outer = retry(
        json!([{ "match": { "codes": [EXHAUSTED] }, "attempts": 2, "backoff": { "initial": "PT1M" } }]),
        json!({ "assign": { "seen": "{{ vars.seen + ['outer'] }}" } }),
    );
    let mut first = call(json!([outer, inner]), json!({ "failure": { "code": "A.B" } }));
    first["catch"] = json!([{
        "match": { "codes": [EXHAUSTED] }, "next": "done", "output": "{{ [vars.seen, failure.details, failure.previous.details] }}",
    }]);
    let ran = flow(json!({ "first": first, "done": done() })).vars(json!({ "seen": [] })).run();
    let (outer, inner) = (json!({ "attempts": 2, "policy": 0 }), json!({ "attempts": 3, "policy": 0 }));
    assert_eq!(ran.value(), &json!([[1, 2, 3, "outer", 1, 2, 3, "outer"], outer, inner]));
    assert_eq!(ran.waits, [1000.0, 2000.0, 60_000.0, 1000.0, 2000.0]);
}

/// Within a Loop too: what it has counted is for one iteration.
#[test]
fn a_retry_within_a_loop_begins_anew_with_each_iteration() {
    let again = json!({
        "provider": LOOP,
        "onSuccess": { "when": "{{ middleware.metadata.iteration < 3.0 }}", "assign": { "fails": "{{ 2 }}" } },
    });
    let counted = retry(json!([policy(&["*"], 3)]), json!({ "assign": { "fails": "{{ vars.fails - 1.0 }}" } }));
    let with = json!({ "failure": "{{ vars.fails > 0.0 ? {'code': 'A.B'} : null }}", "value": "well" });
    let ran = around(json!([again, counted]), with).vars(json!({ "fails": 2 })).run();
    assert_eq!(ran.value(), "well", "six failures, two in each iteration");
}

/// "counting the first": also in onAlways, where the number is that of the last run.
#[test]
fn metadata_has_the_number_of_runs_in_on_always() {
    let mut flow = failing_with(&["A.B", "A.B"], json!([policy(&["*"], 5)]));
    let first = &mut flow.definition["steps"]["first"];
    first["middleware"][0]["onAlways"] = json!({ "assign": { "tries": "{{ string(middleware.metadata.attempt) }}" } });
    first["output"] = json!("{{ vars.tries }}");
    assert_eq!(flow.run().value(), "3");
}

/// A flow that is cancelled, within an attempt or in a gap, is not run again: onFailure does not see it.
#[test]
fn a_cancellation_is_no_failure_to_retry() {
    let policies = json!([{ "match": { "codes": ["*"] }, "attempts": 9, "backoff": { "initial": "PT10S" } }]);
    let cleanup = json!({
        "provider": FINALLY, "onAlways": { "with": { "call": { "provider": MOCK, "with": { "delay": "PT2S" } } } },
    });
    let entry = || retry(policies.clone(), json!({}));
    let slow = json!({ "delay": "PT1M" });
    let ran = around(json!([entry(), cleanup]), slow).cancelled_after(1000).run();
    assert_eq!((ran.code(), ran.waits.as_slice()), ("System.Cancelled", &[1000.0, 2000.0][..]));
    let failing = json!({ "failure": { "code": "A.B" } });
    let ran = around(json!([entry(), cleanup]), failing).cancelled_after(5000).run();
    let expected = &[2000.0, 3000.0][..];
    assert_eq!((ran.code(), ran.waits.as_slice()), ("System.Cancelled", expected), "in the gap, nothing is entered");
}

/// "without jitter", "used as-is": a delay that has passed already is none.
#[test]
fn a_delay_that_is_not_positive_runs_at_once() {
    for delay in ["PT0S", "-PT5S"] {
        let policies = json!([{ "match": { "codes": ["*"] }, "attempts": 3, "backoff": { "initial": "PT9S" } }]);
        let entry = retry(policies, json!({ "with": { "delay": delay } }));
        let ran = around(json!([entry]), json!({ "failure": { "code": "A.B" } })).run();
        assert_eq!((ran.code(), ran.waits.len()), (EXHAUSTED, 0), "{delay}");
    }
}
