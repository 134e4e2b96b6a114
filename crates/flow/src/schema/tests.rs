//! Every keyword: one value that it allows, and one that it does not.

use super::Schema;
use crate::problem::Findings;
use serde_json::{Value, json};

fn read(parameters: &Value) -> (Schema, Findings) {
    let text = parameters.to_string();
    let (node, _) = crate::json::parse(&text).unwrap_or_else(|fault| panic!("{fault:?}"));
    let mut findings = Findings::default();
    let schema = Schema::parameters(&node, "/parameters", &mut findings);
    (schema, findings)
}

/// A schema for the argument `x`.
fn valid(schema: &Value, value: &Value) -> bool {
    let definitions =
        json!({ "name": { "type": "string" }, "tree": { "items": { "$ref": "#/$defs/tree" }, "type": "array" } });
    let (schema, findings) = read(&json!({ "type": "object", "properties": { "x": schema }, "$defs": definitions }));
    assert!(findings.is_empty(), "{:?}", findings.located(""));
    schema.problems(&json!({ "x": value })).is_empty()
}

#[test]
fn keywords() {
    for (schema, right, wrong) in [
        (json!({ "type": "integer" }), json!(3.0), json!(3.5)),
        (json!({ "type": ["string", "null"] }), json!(null), json!(1)),
        (json!({ "type": "boolean" }), json!(true), json!(1)),
        (json!({ "enum": [1, "a"] }), json!(1.0), json!(2)),
        (json!({ "const": { "a": [1] } }), json!({ "a": [1.0] }), json!({ "a": [2] })),
        (json!({ "required": ["a"] }), json!({ "a": 1 }), json!({ "b": 1 })),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1, "b": 1 }), json!({ "a": 1 })),
        (json!({ "properties": { "a": { "type": "string" } } }), json!({ "a": "", "b": 1 }), json!({ "a": 1 })),
        (json!({ "additionalProperties": false }), json!({}), json!({ "a": 1 })),
        (
            json!({ "properties": { "a": true }, "additionalProperties": { "type": "null" } }),
            json!({ "a": 1, "b": null }),
            json!({ "b": 1 }),
        ),
        (json!({ "patternProperties": { "^a": false } }), json!({ "b": 1 }), json!({ "ab": 1 })),
        (json!({ "propertyNames": { "maxLength": 1 } }), json!({ "a": 1 }), json!({ "ab": 1 })),
        (json!({ "items": { "type": "string" } }), json!(["a"]), json!(["a", 1])),
        (json!({ "prefixItems": [{ "type": "string" }], "items": false }), json!(["a"]), json!(["a", 1])),
        (json!({ "uniqueItems": true }), json!([1, 2]), json!([1, 1.0])),
        (json!({ "minItems": 1, "maxItems": 2 }), json!([1]), json!([])),
        (json!({ "minLength": 2, "maxLength": 3 }), json!("éé"), json!("éééé")),
        (json!({ "minProperties": 1, "maxProperties": 1 }), json!({ "a": 1 }), json!({})),
        (json!({ "minimum": 1, "maximum": 2 }), json!(2), json!(2.1)),
        (json!({ "exclusiveMinimum": 1, "exclusiveMaximum": 2 }), json!(1.5), json!(1)),
        (json!({ "multipleOf": 0.5 }), json!(1.5), json!(1.7)),
        (json!({ "pattern": "^a.c$" }), json!("abc"), json!("xabc")),
        (json!({ "format": "duration" }), json!("-PT0.5S"), json!("5s")),
        (json!({ "format": "date-time" }), json!("2026-01-01T00:00:00Z"), json!("2026-02-30T00:00:00Z")),
        (json!({ "format": "date" }), json!("2026-01-01"), json!("2026-13-01")),
        (json!({ "format": "time" }), json!("12:00:00Z"), json!("noon")),
        (json!({ "format": "uuid" }), json!("0192f0c1-7a7e-7c3e-9f55-0d5f1f3a2b4c"), json!("0192f0c1")),
        (json!({ "format": "ipv4" }), json!("127.0.0.1"), json!("::1")),
        (json!({ "format": "ipv6" }), json!("::1"), json!("127.0.0.1")),
        (json!({ "format": "regex" }), json!("a+"), json!("(")),
        (json!({ "allOf": [{ "minimum": 1 }, { "maximum": 2 }] }), json!(1), json!(3)),
        (json!({ "anyOf": [{ "type": "string" }, { "minimum": 1 }] }), json!(1), json!(0)),
        (json!({ "oneOf": [{ "multipleOf": 2 }, { "multipleOf": 3 }] }), json!(4), json!(6)),
        (json!({ "not": { "type": "string" } }), json!(1), json!("a")),
        (
            json!({ "if": { "type": "string" }, "then": { "minLength": 1 }, "else": { "minimum": 1 } }),
            json!("a"),
            json!(0),
        ),
        (json!({ "$ref": "#/$defs/name" }), json!("a"), json!(1)),
        (json!({ "$ref": "#/$defs/tree" }), json!([[], [[]]]), json!([[1]])),
        (json!(true), json!(1), Value::Null),
    ] {
        assert!(valid(&schema, &right), "{schema} allows {right}");
        assert!(schema == json!(true) || !valid(&schema, &wrong), "{schema} does not allow {wrong}");
    }
}

#[test]
fn parameters_are_closed_unless_they_say_otherwise() {
    let problems = |parameters: Value, arguments: Value| read(&parameters).0.problems(&arguments).len();
    assert_eq!(problems(json!({ "type": "object" }), json!({ "a": 1 })), 1);
    assert_eq!(problems(json!({ "type": "object", "properties": { "a": true } }), json!({ "a": 1, "b": 2 })), 1);
    assert_eq!(problems(json!({ "type": "object", "additionalProperties": true }), json!({ "a": 1 })), 0);
    assert_eq!(problems(json!({ "type": "object" }), json!([])), 1);
    assert_eq!(Schema::no_parameters().problems(&json!({ "a": 1 })).len(), 1);
}

#[test]
fn a_problem_has_its_paths_and_what_was_found() {
    let schema = json!({ "type": "object", "properties": { "a/b": { "items": { "minimum": 1 } } } });
    let problems = read(&schema).0.problems(&json!({ "a/b": [1, 0] }));
    let found: Vec<_> = problems.iter().map(|one| (one.path.as_str(), one.schema.as_str(), &one.found)).collect();
    assert_eq!(found, [("/a~1b/1", "/properties/a~1b/items/minimum", &json!(0))]);
}

#[test]
fn what_is_not_known_or_not_a_schema_is_refused() {
    for schema in [
        json!({ "type": "array" }),
        json!({ "properties": {} }),
        json!({ "type": "object", "contains": {} }),
        json!({ "type": "object", "properties": { "a": 1 } }),
        json!({ "type": "object", "properties": { "a": { "type": "text" } } }),
        json!({ "type": "object", "properties": { "a": { "minimum": "1" } } }),
        json!({ "type": "object", "properties": { "a": { "minLength": -1 } } }),
        json!({ "type": "object", "properties": { "a": { "pattern": "(" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/none" } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "https://example.org/x" } } }),
        json!({ "type": "object", "anyOf": [] }),
        json!([]),
    ] {
        assert!(!read(&schema).1.is_empty(), "{schema}");
    }
}

#[test]
fn references_in_a_circle_end() {
    let schema = json!({ "type": "object", "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
    assert!(!read(&schema).0.problems(&json!({})).is_empty());
}
