//! The sentences of the document of the Retry middleware about what happens between two attempts, and around them.

#![allow(clippy::expect_used, clippy::panic)]

mod harness;

use harness::{
    EXHAUSTED, FINALLY, Flow, MOCK, RETRY, around, backing_off, call, done, failing_with, flow, policy, retry,
};
use serde_json::{Value, json};

/// A step that changes variables in the arm of its failed call, under a Retry with this onFailure. The Result lists
/// what was seen at the start of each attempt, and what stands at the end.
fn restoring(attempts: u32, failures: u32, on_failure: &Value) -> Value {
    let entry = json!({
        "provider": RETRY,
        "onEntry": { "with": { "policies": [policy(&["*"], attempts)] }, "assign": { "base": "entry" } },
        "onFailure": on_failure,
    });
    let steps = json!({
        "first": {
            "action": "Call", "middleware": [entry], "next": "done",
            "call": {
                "provider": MOCK,
                "with": {
                    "value": "{{ {'base': vars.base, 'new': has(vars.new), 'n': vars.n} }}",
                    "failure": format!("{{{{ vars.n < {failures}.0 ? {{'code': 'A.B', 'details': {{'base': vars.base, 'new': has(vars.new)}}}} : null }}}}"),
                },
                "onFailure": { "assign": { "base": "arm", "new": "{{ call.result.details }}" } },
            },
            "output": "{{ {'seen': step.result.value, 'base': vars.base, 'new': has(vars.new)} }}",
            "catch": [{
                "match": { "codes": ["*"] }, "next": "done",
                "output": "{{ {'base': vars.base, 'new': vars.new, 'n': vars.n} }}",
            }],
        },
        "done": done(),
    });
    flow(steps).vars(json!({ "base": "start", "n": 0 })).run().value().clone()
}

/// "Re-entry restores the frame's variables to their state following the entry's onEntry evaluation"
#[test]
fn re_entry_restores_the_variables_to_those_after_on_entry() {
    let seen = restoring(3, 2, &json!({ "assign": { "n": "{{ vars.n + 1.0 }}" } }));
    let first = json!({ "base": "entry", "new": false, "n": 2 });
    assert_eq!(seen["seen"], first, "written variables are restored, and new ones are unbound again");
}

/// "the gap's assign is the carry: evaluated against the pre-restore state, applied to the restored variables"
#[test]
fn the_carry_is_evaluated_before_the_restore_and_applied_after_it() {
    let carry =
        json!({ "assign": { "n": "{{ vars.n + 1.0 }}", "carried": "{{ vars.base + string(has(vars.new)) }}" } });
    let entry = json!({
        "provider": RETRY,
        "onEntry": { "with": { "policies": [policy(&["*"], 3)] }, "assign": { "base": "entry" } },
        "onFailure": carry,
    });
    let steps = json!({
        "first": {
            "action": "Call", "middleware": [entry], "next": "done",
            "call": {
                "provider": MOCK,
                "with": { "value": "{{ vars.carried + vars.base }}", "failure": "{{ vars.n < 1.0 ? {'code': 'A.B'} : null }}" },
                "onFailure": { "assign": { "base": "arm", "new": 1 } },
            },
        },
        "done": done(),
    });
    let vars = json!({ "base": "start", "n": 0, "carried": "" });
    assert_eq!(flow(steps).vars(vars).run().value(), "armtrueentry");
}

/// "No restore occurs on the final emission."
#[test]
fn nothing_is_restored_on_the_final_emission() {
    let exhausted = restoring(2, 9, &json!({ "assign": { "n": "{{ vars.n + 1.0 }}" } }));
    assert_eq!(exhausted, json!({ "base": "arm", "new": { "base": "entry", "new": false }, "n": 2 }));
    let entry = retry(json!([policy(&["B.*"], 9)]), json!({}));
    let steps = json!({
        "first": {
            "action": "Call", "middleware": [entry], "next": "done",
            "call": { "provider": MOCK, "with": { "failure": { "code": "A.B" } }, "onFailure": { "assign": { "x": "arm" } } },
            "catch": [{ "match": { "codes": ["*"] }, "output": "{{ vars.x }}", "next": "done" }],
        },
        "done": done(),
    });
    assert_eq!(flow(steps).vars(json!({ "x": "start" })).run().value(), "arm", "a failure that passes through");
}

/// "every attempt receives the same input"
#[test]
fn every_attempt_gets_the_same_input() {
    let entry = json!({
        "provider": RETRY,
        "onEntry": { "with": { "policies": [policy(&["*"], 3)] }, "output": "{{ middleware.input + '>' }}" },
        "onFailure": { "assign": { "seen": "{{ vars.seen + [middleware.result.message] }}" } },
    });
    let with = json!({
        "failure": "{{ size(vars.seen) < 2 ? {'code': 'A.B', 'message': call.input} : null }}",
        "value": "{{ vars.seen + [call.input] }}",
    });
    let ran = around(json!([entry]), with).vars(json!({ "seen": [] })).input(json!("in")).run();
    assert_eq!(ran.value(), &json!(["in>", "in>", "in>"]));
}

/// "Gated off, the entry is transparent and failures pass through."
#[test]
fn an_entry_that_is_gated_off_is_transparent() {
    let entry = json!({
        "provider": RETRY,
        "onEntry": { "when": false, "with": { "policies": "{{ vars.missing }}" }, "output": "shaped" },
        "onFailure": { "message": "{{ middleware.result.message + '!' }}" },
    });
    let ran = around(json!([entry]), json!({ "failure": { "code": "A.B", "message": "{{ call.input }}" } })).run();
    assert_eq!((ran.code(), &ran.result["message"]), ("A.B", &json!("shaped!")), "shaping still runs, with is unread");
}

/// "Gated off, the failure passes through", for each failure.
#[test]
fn on_failure_is_gated_for_each_failure() {
    let entry = json!({
        "provider": RETRY,
        "onEntry": { "with": { "policies": [policy(&["*"], 9)] } },
        "onFailure": {
            "when": "{{ middleware.metadata.attempt < 3 }}", "with": { "delay": "PT1S" }, "assign": { "n": "{{ vars.n + 1.0 }}" },
        },
    });
    let steps = json!({
        "first": {
            "action": "Call", "middleware": [entry], "next": "done", "call": { "provider": MOCK, "with": { "failure": { "code": "A.B" } } },
            "catch": [{ "match": { "codes": ["A.B"] }, "output": "{{ vars.n }}", "next": "done" }],
        },
        "done": done(),
    });
    let ran = flow(steps).vars(json!({ "n": 0 })).run();
    assert_eq!(
        (ran.value(), ran.waits.clone()),
        (&json!(3), vec![1000.0, 1000.0]),
        "assign runs though the gate is shut"
    );
}

/// "Exhaustion emits Provider.Middleware.Retry.Exhausted with the final failure as previous and details {attempts,
/// policy}."
#[test]
fn exhaustion_has_its_envelope() {
    let with = json!({ "failure": { "code": "A.B", "type": "timeout", "message": "{{ 'run ' + vars.n }}", "retryable": true } });
    let entry = retry(json!([policy(&["*"], 3)]), json!({ "assign": { "n": "{{ vars.n + 'I' }}" } }));
    let ran = around(json!([entry]), with).vars(json!({ "n": "" })).run();
    let last = json!({ "type": "timeout", "code": "A.B", "message": "run II", "retryable": true });
    let expected = json!({
        "type": "error", "code": EXHAUSTED, "details": { "attempts": 3, "policy": 0 }, "previous": last,
    });
    assert_eq!(ran.result, expected);
}

/// "Runs of the inner scope so far, counting the first."
#[test]
fn metadata_counts_the_runs() {
    let mut entry = retry(
        json!([policy(&["*"], 5)]),
        json!({ "assign": { "seen": "{{ vars.seen + [middleware.metadata.attempt] }}" } }),
    );
    entry["onSuccess"] = json!({ "value": "{{ vars.seen + [middleware.metadata.attempt] }}" });
    let with = json!({ "failure": "{{ size(vars.seen) < 3 ? {'code': 'A.B'} : null }}" });
    let ran = around(json!([entry]), with).vars(json!({ "seen": [] })).run();
    assert_eq!(ran.value(), &json!([1, 2, 3, 4]));
}

/// "Backoff timing. Absent, retries are immediate.", "The delay before the first retry", "The multiplier applied to
/// the delay between consecutive retries.", "A cap on the per-retry delay."
#[test]
fn the_delays_of_a_policy() {
    assert_eq!(failing_with(&["A.B"; 3], json!([policy(&["*"], 9)])).run().waits, [0.0; 0]);
    assert_eq!(backing_off(json!({ "initial": "PT2S" }), 0.5, 3), [2000.0, 2000.0, 2000.0]);
    assert_eq!(backing_off(json!({ "initial": "PT2S", "rate": 3 }), 0.5, 3), [2000.0, 6000.0, 18_000.0]);
    assert_eq!(backing_off(json!({ "initial": "PT2S", "rate": 3, "max": "PT7S" }), 0.5, 3), [2000.0, 6000.0, 7000.0]);
}

/// "The jitter mode applied to each computed delay."
#[test]
fn the_modes_of_jitter() {
    let waits = |jitter: &str, draw| {
        backing_off(json!({ "initial": "PT4S", "rate": 2, "max": "PT8S", "jitter": jitter }), draw, 3)
    };
    for draw in [0.25, 0.75] {
        assert_eq!(waits("none", draw), [4000.0, 8000.0, 8000.0]);
        assert_eq!(waits("full", draw), [4000.0, 8000.0, 8000.0].map(|delay| delay * draw));
        assert_eq!(waits("equal", draw), [4000.0, 8000.0, 8000.0].map(|delay| delay / 2.0 + delay / 2.0 * draw));
    }
    assert_eq!(waits("decorrelated", 0.25), [6000.0, 7500.0, 8000.0], "from the initial to three times the last delay");
}

/// Each policy has a place in its own schedule.
#[test]
fn each_policy_has_its_own_schedule() {
    let with = |code: &str, initial: &str| json!({ "match": { "codes": [code] }, "attempts": 9, "backoff": { "initial": initial, "rate": 2 } });
    let ran = failing_with(&["A.X", "B.X", "A.X", "B.X"], json!([with("A.*", "PT1S"), with("B.*", "PT10S")])).run();
    assert_eq!(ran.waits, [1000.0, 10_000.0, 2000.0, 20_000.0]);
}

fn overriding(delays: Value, jitter: &str) -> Flow {
    let policies = json!([{
        "match": { "codes": ["*"] }, "attempts": 9,
        "backoff": { "initial": "PT1S", "rate": 2, "max": "PT3S", "jitter": jitter },
    }]);
    let entry = retry(
        policies,
        json!({ "with": { "delay": "{{ middleware.result.details }}" }, "assign": { "n": "{{ vars.n + [1] }}" } }),
    );
    let with = json!({ "failure": "{{ size(vars.n) < size(vars.delays) ? {'code': 'A.B', 'details': vars.delays[size(vars.n)]} : null }}" });
    around(json!([entry]), with).vars(json!({ "n": [], "delays": delays }))
}

/// "a non-null delay overrides the gap's backoff delay, used as-is", "without jitter"
#[test]
fn a_delay_overrides_that_of_the_policy_for_its_own_gap() {
    let ran = overriding(json!([null, "PT1H", null, "PT0S"]), "none").run();
    assert_eq!(ran.waits, [1000.0, 3_600_000.0, 3000.0], "beyond the cap, and the schedule goes on after it");
    let ran = overriding(json!(["PT10S", null]), "full").draw(0.25).run();
    assert_eq!(ran.waits, [10_000.0, 500.0], "no jitter on the override");
    let ran = overriding(json!([null, "PT100S", null]), "decorrelated").draw(0.75).run();
    assert_eq!(ran.waits, [2500.0, 100_000.0, 3000.0], "an override is no previous delay");
}

/// "Unread on pass-through and exhaustion."
#[test]
fn a_delay_has_no_effect_on_what_is_emitted() {
    for code in ["A.B", "B.A"] {
        let entry = retry(json!([policy(&["A.*"], 1)]), json!({ "with": { "delay": "PT1H" } }));
        assert_eq!(around(json!([entry]), json!({ "failure": { "code": code } })).run().waits, [0.0; 0]);
    }
}

/// A consumed failure is no emission: its envelope keys are not evaluated. On exhaustion they are applied over the
/// failure of the exhaustion, and otherwise over the rising one.
#[test]
fn envelope_keys_are_evaluated_only_on_emission() {
    let entry = retry(
        json!([policy(&["A.*"], 3)]),
        json!({ "message": "{{ middleware.metadata.attempt < 3 ? vars.missing : 'gave up' }}" }),
    );
    let ran = around(json!([entry]), json!({ "failure": { "code": "A.B" } })).run();
    assert_eq!((ran.code(), &ran.result["message"]), (EXHAUSTED, &json!("gave up")));
    assert_eq!(ran.result["previous"]["code"], EXHAUSTED, "it is superseded");
    assert_eq!(ran.result["previous"]["previous"]["code"], "A.B");
    let entry = retry(json!([policy(&["A.*"], 3)]), json!({ "code": "C.D" }));
    let ran = around(json!([entry]), json!({ "failure": { "code": "B.A", "message": "kept" } })).run();
    assert_eq!((ran.code(), &ran.result["message"]), ("C.D", &json!("kept")));
    assert_eq!(ran.result["previous"]["code"], "B.A");
}

/// "a success … rises through onSuccess once"; onAlways of the entry runs once, those inside of it with each attempt.
#[test]
fn phases_of_the_entry_run_once_and_those_inside_of_it_for_each_attempt() {
    let cleanup = |name: &str| {
        json!({
            "call": { "provider": MOCK, "onSuccess": { "assign": { "log": format!("{{{{ vars.log + '{name}' }}}}") } } }
        })
    };
    let outer = json!({ "provider": FINALLY, "onAlways": { "with": cleanup("o") } });
    let mut entry = retry(json!([policy(&["*"], 5)]), json!({ "assign": { "log": "{{ vars.log + 'f' }}" } }));
    entry["onSuccess"] = json!({ "assign": { "log": "{{ vars.log + 's' }}" } });
    entry["onAlways"] = json!({ "assign": { "log": "{{ vars.log + 'a' }}" } });
    let inner = json!({ "provider": FINALLY, "onAlways": { "with": cleanup("i") } });
    let mut first = call(
        json!([outer, entry, inner]),
        json!({ "failure": "{{ vars.log.matches('f.*f') ? null : {'code': 'A.B'} }}" }),
    );
    first["output"] = json!("{{ vars.log }}");
    let ran = flow(json!({ "first": first, "done": done() })).vars(json!({ "log": "" })).run();
    assert_eq!(ran.value(), "ififisao");
}

/// The parameters of onEntry and onFailure, as the document has them. What is not valid fails the phase.
#[test]
fn parameters_are_validated_when_the_phase_runs() {
    let code = |with: Value| {
        let entry = json!({ "provider": RETRY, "onEntry": { "with": with } });
        around(json!([entry]), json!({ "value": 1 })).run().code().to_owned()
    };
    for with in [
        json!({}),
        json!({ "policies": [] }),
        json!({ "policies": [{ "match": { "codes": ["*"] } }] }),
        json!({ "policies": [{ "attempts": 1 }] }),
        json!({ "policies": [{ "match": {}, "attempts": 1 }] }),
        json!({ "policies": [{ "match": { "codes": [] }, "attempts": 1 }] }),
        json!({ "policies": [{ "match": { "types": ["success"] }, "attempts": 1 }] }),
        json!({ "policies": [{ "match": { "retryable": null }, "attempts": 1 }] }),
        json!({ "policies": [{ "match": { "message": "x" }, "attempts": 1 }] }),
        json!({ "policies": [policy(&["*"], 0)] }),
        json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 1.5 }] }),
        json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 1, "backoff": {} }] }),
        json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 1, "backoff": { "initial": "1s" } }] }),
        json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 1, "backoff": { "initial": "PT1S", "rate": 0.5 } }] }),
        json!({ "policies": [{ "match": { "codes": ["*"] }, "attempts": 1, "backoff": { "initial": "PT1S", "jitter": "some" } }] }),
        json!({ "policies": [policy(&["*"], 1)], "other": 1 }),
    ] {
        assert_eq!(code(with.clone()), "System.ParameterValidationFailed", "{with}");
    }
    for delay in [json!("soon"), json!(5)] {
        let entry = retry(json!([policy(&["*"], 5)]), json!({ "with": { "delay": delay } }));
        let ran = around(json!([entry]), json!({ "failure": { "code": "A.B" } })).run();
        assert_eq!((ran.code(), &ran.result["previous"]["code"]), ("System.ParameterValidationFailed", &json!("A.B")));
    }
}
