//! What is refused, and where.

use crate::Definition;
use serde_json::{Value, json};

fn with(steps: Value) -> Value {
    json!({ "$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "a", "steps": steps })
}

fn paths(definition: &Value) -> Vec<String> {
    let read = Definition::read(&definition.to_string());
    read.map_or_else(|problems| problems.into_iter().map(|problem| problem.path).collect(), |_| Vec::new())
}

const MOCK: &str = "mwl:provider.call/mwl/mock/v1";

#[test]
fn every_static_check_names_the_path() {
    let call = |call: Value| with(json!({ "a": { "action": "Call", "call": call, "next": "a" } }));
    let entry = |entry: Value| {
        let mut definition = call(json!({ "provider": MOCK }));
        definition["middleware"] = json!([entry]);
        definition
    };
    let timeout = "mwl:provider.middleware/mwl/timeout/v1";
    let (looped, finally) = ("mwl:provider.middleware/mwl/loop/v1", "mwl:provider.middleware/mwl/finally/v1");
    let caught = |clause: Value| {
        with(json!({
            "a": { "action": "Call", "call": { "provider": MOCK }, "next": "a", "catch": [clause] },
        }))
    };
    for (definition, path) in [
        (json!([]), ""),
        (json!({ "entrypoint": "a", "steps": { "a": { "action": "Return" } } }), ""),
        (with(json!({ "b": { "action": "Return" } })), "/entrypoint"),
        (with(json!({ "a": {} })), "/steps/a"),
        (with(json!({ "a": { "action": "Jump" } })), "/steps/a/action"),
        (with(json!({ "a": { "action": "{{ 'Pass' }}" } })), "/steps/a/action"),
        (with(json!({ "a": { "action": "Return", "next": "a" } })), "/steps/a/next"),
        (with(json!({ "a": { "action": "Pass" } })), "/steps/a"),
        (with(json!({ "a": { "action": "Pass", "next": "b" } })), "/steps/a/next"),
        (with(json!({ "a": { "action": "Pass", "next": "{{ 'a' }}" } })), "/steps/a/next"),
        (with(json!({ "a": { "action": "Pass", "next": "a", "comment": 1 } })), "/steps/a/comment"),
        (with(json!({ "a": { "action": "Pass", "next": "a", "output": ["{{ ) }}"] } })), "/steps/a/output/0"),
        (
            with(json!({ "a": { "action": "Pass", "next": "a", "assign": { "x/y": "{{ f() }}" } } })),
            "/steps/a/assign/x~1y",
        ),
        (with(json!({ "a": { "action": "Sleep", "next": "a" } })), "/steps/a"),
        (with(json!({ "a": { "action": "Sleep", "for": "PT1S", "until": "x", "next": "a" } })), "/steps/a"),
        (with(json!({ "a": { "action": "Raise", "result": {} } })), "/steps/a/result"),
        (
            with(json!({ "a": { "action": "Raise", "result": { "code": "A", "type": "success" } } })),
            "/steps/a/result/type",
        ),
        (with(json!({ "a": { "action": "Match", "cases": [] } })), "/steps/a"),
        (
            with(json!({ "a": { "action": "Match", "cases": [{ "next": "a" }], "default": { "next": "a" } } })),
            "/steps/a/cases/0",
        ),
        (
            with(
                json!({ "a": { "action": "Match", "cases": [{ "when": true, "next": "a" }], "default": { "next": "a" } } }),
            ),
            "/steps/a/cases/0/when",
        ),
        (with(json!({ "a": { "action": "Gather", "next": "a" } })), "/steps/a"),
        (with(json!({ "a": { "action": "Gather", "calls": [], "next": "a" } })), "/steps/a/calls"),
        (
            with(
                json!({ "a": { "action": "Gather", "calls": [{ "provider": MOCK }], "concurrency": 0, "next": "a" } }),
            ),
            "/steps/a/concurrency",
        ),
        (
            with(
                json!({ "a": { "action": "Gather", "calls": [{ "provider": MOCK }], "completion": {}, "next": "a" } }),
            ),
            "/steps/a/completion",
        ),
        (call(json!({})), "/steps/a/call"),
        (call(json!({ "provider": MOCK, "flow": "B" })), "/steps/a/call"),
        (call(json!({ "provider": "mwl:provider.call/example/http/v1" })), "/steps/a/call/provider"),
        (call(json!({ "provider": timeout })), "/steps/a/call/provider"),
        (call(json!({ "flow": "B" })), "/steps/a/call/flow"),
        (call(json!({ "provider": MOCK, "with": 1 })), "/steps/a/call/with"),
        (call(json!({ "provider": MOCK, "onFailure": { "value": 1 } })), "/steps/a/call/onFailure/value"),
        (caught(json!({ "next": "a" })), "/steps/a/catch/0"),
        (caught(json!({ "match": {}, "next": "a" })), "/steps/a/catch/0/match"),
        (caught(json!({ "match": { "codes": [] }, "next": "a" })), "/steps/a/catch/0/match/codes"),
        (caught(json!({ "match": { "types": ["success"] }, "next": "a" })), "/steps/a/catch/0/match/types"),
        (entry(json!({})), "/middleware/0"),
        (entry(json!({ "provider": "mwl:provider.middleware/example/cache/v1" })), "/middleware/0/provider"),
        (entry(json!({ "provider": timeout, "onEntry": { "value": 1 } })), "/middleware/0/onEntry/value"),
        (entry(json!({ "provider": timeout, "onEntry": { "when": 1 } })), "/middleware/0/onEntry/when"),
        (entry(json!({ "provider": looped })), "/middleware/0"),
        (entry(json!({ "provider": finally })), "/middleware/0"),
        (entry(json!({ "provider": finally, "onAlways": { "with": {} } })), "/middleware/0/onAlways/with"),
        (
            entry(json!({ "provider": finally, "onAlways": { "with": { "call": { "flow": "B" } } } })),
            "/middleware/0/onAlways/with/call/flow",
        ),
    ] {
        assert_eq!(paths(&definition), [path], "{definition}");
    }
}

#[test]
fn problems_are_all_listed() {
    let definition =
        with(json!({ "a": { "action": "Pass", "next": "b", "output": "{{ }}" }, "c": { "action": "Jump" } }));
    assert_eq!(paths(&definition).len(), 3);
    assert_eq!(paths(&with(json!({}))), ["/entrypoint", "/steps"]);
    let twice = r#"{"$schema": "https://mwl.dev/v0.1/flow/schema.json", "entrypoint": "a", "entrypoint": "a", "steps": {"a": {"action": "Return"}}}"#;
    assert_eq!(Definition::read(twice).map_or_else(|problems| problems.len(), |_| 0), 1);
}

#[test]
fn flows_are_found_from_the_inside_out_and_do_not_call_themselves() {
    let calling = |name: &str| json!({ "entrypoint": "a", "steps": { "a": { "action": "Call", "call": { "flow": name }, "next": "a" } } });
    let ending = json!({ "entrypoint": "a", "steps": { "a": { "action": "Return" } } });
    let flows = |flows: Value| {
        let mut definition = with(json!({ "a": { "action": "Return" } }));
        definition["flows"] = flows;
        paths(&definition)
    };
    assert_eq!(flows(json!({ "A": calling("B"), "B": ending })), [""; 0]);
    assert_eq!(flows(json!({ "A": calling("A") })), ["/flows/A/steps/a/call/flow"]);
    let circle = flows(json!({ "A": calling("B"), "B": calling("C"), "C": calling("B") }));
    assert_eq!(circle, ["/flows/B/steps/a/call/flow", "/flows/C/steps/a/call/flow"]);
    let mut shadowing = calling("A");
    shadowing["flows"] = json!({ "A": ending });
    assert_eq!(flows(json!({ "A": shadowing })), [""; 0], "the nearest one");
}
