//! The canonical form: what is valid comes back from its JSON, what is broken is refused.

use super::arbitrary::{any_policy, pointers, policies, with_field};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use redrive_policy::{Policy, wire};
use serde_json::{Value, json};

fn to_json(policy: &Policy) -> Value {
    serde_json::to_value(policy).expect("a policy is JSON")
}

fn read(document: &Value) -> Result<Policy, serde_json::Error> {
    serde_json::from_str(&document.to_string())
}

proptest! {
    #[test]
    fn a_policy_survives_its_json(policy in any_policy()) {
        let text = serde_json::to_string(&policy).expect("a policy is JSON");
        let back: Policy = wire::from_json(&text).expect("and comes back from it");
        prop_assert_eq!(&back, &policy, "{}", text);
        prop_assert_eq!(Policy::new(policy.clone().into_parts()).expect("still valid"), policy);
    }

    #[test]
    fn an_unknown_field_is_refused_at_every_path(policy in policies(), at in any::<Index>()) {
        let mut document = to_json(&policy);
        let is_object = |place: &String| document.pointer(place).is_some_and(Value::is_object);
        let objects: Vec<String> = pointers(&document).into_iter().filter(is_object).collect();
        let place = at.get(&objects);
        let extended = with_field(document.pointer(place).expect("an object"), "unheard_of", json!(1));
        *document.pointer_mut(place).expect("an object") = extended;
        prop_assert!(read(&document).is_err(), "{place:?} accepts an unknown field: {document}");
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_refused_wherever_it_stands(policy in policies(), at in any::<Index>()) {
        let mut document = to_json(&policy);
        let places = pointers(&document);
        let place = at.get(&places);
        let value = document.pointer_mut(place).expect("a place");
        *value = match value {
            Value::Number(_) => json!("7"),
            Value::String(_) => json!(7),
            Value::Bool(_) => json!("true"),
            _ => json!(3.5),
        };
        prop_assert!(read(&document).is_err(), "{place:?} takes a value of the wrong kind: {document}");
    }

    #[test]
    fn parts_that_contradict_the_rules_are_refused(
        policy in policies(),
        (place, broken) in select(vec![
            ("/rules", json!([])),
            ("/rules/0/budget", json!(0)),
            ("/rules/0/backoff/initial_ms", json!(-1)),
            ("/rules/0/backoff/initial_ms", json!(1e30)),
            ("/rules/0/backoff/curve", json!({"kind": "exponential", "rate": 0.5})),
            ("/rules/0/backoff/curve", json!({"kind": "exponential"})),
            ("/rules/0/backoff/curve", json!({"kind": "polynomial", "exponent": -1})),
            ("/rules/0/backoff/curve", json!({"kind": "cubic"})),
            ("/rules/0/backoff/jitter", json!({"kind": "scale", "low": 2, "high": 1})),
            ("/rules/0/backoff/jitter", json!({"kind": "scale", "low": -1, "high": 1})),
            ("/rules/0/backoff/jitter", json!({"kind": "scale", "low": 0})),
            ("/rules/0/backoff/cap", json!({"at_ms": 5})),
            ("/rules/0/backoff/cap", json!({"at_ms": -5, "place": "after_jitter"})),
            ("/rules/0/backoff/rounding", json!("up")),
            ("/attempts", json!({"at_most": -1})),
            ("/attempts", json!("forever")),
            ("/max_elapsed_ms", json!(-1)),
            ("/on_stop", json!("drop")),
            ("/unmatched", json!(null)),
        ])
    ) {
        let (parent, key) = place.rsplit_once('/').expect("a member");
        let mut document = to_json(&policy);
        let changed = with_field(document.pointer(parent).expect("an object"), key, broken);
        *document.pointer_mut(parent).expect("an object") = changed;
        prop_assert!(read(&document).is_err(), "{document}");
    }

    #[test]
    fn a_missing_part_is_refused(
        policy in policies(),
        place in select(&["/rules", "/attempts", "/on_stop", "/unmatched", "/rules/0/backoff"][..])
    ) {
        let (parent, key) = place.rsplit_once('/').expect("a member");
        let mut document = to_json(&policy);
        let fields = document.pointer_mut(parent).and_then(Value::as_object_mut).expect("an object");
        fields.remove(key).expect("a member");
        prop_assert!(read(&document).is_err(), "{document}");
    }
}

#[test]
fn decorrelated_jitter_with_a_cap_before_it_is_refused() {
    for place in ["before_jitter", "before_and_after"] {
        let document = json!({
            "rules": [{"backoff": {
                "initial_ms": 1, "curve": {"kind": "fixed"}, "jitter": {"kind": "decorrelated"},
                "cap": {"at_ms": 9, "place": place}
            }}],
            "attempts": "unlimited", "on_stop": "fail", "unmatched": "passes_through"
        });
        let refusal = read(&document).expect_err("refused").to_string();
        assert!(refusal.contains("/rules/0/backoff/cap/place"), "{refusal}");
    }
}

#[test]
fn a_rule_that_no_policy_can_hold_has_no_retries() {
    let policy = redrive_policy::dialect::Dialect::Ojs.read(&json!({})).expect("valid").policy;
    let rule = redrive_policy::Rule { budget: Some(0), ..policy.rules[0].clone() };
    assert_eq!(policy.max_retries(&rule), Some(0));
}
