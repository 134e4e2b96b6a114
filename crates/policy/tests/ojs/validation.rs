//! §11 and §14: what is refused, and where the message points.

use super::OJS;
use super::common::{assert_field_accepts, assert_field_refuses, assert_refused, reading};
use serde_json::{Value, json};

/// Values that are of the wrong kind for every field of the policy except those named.
fn wrong_kinds(except: &[&str]) -> Vec<Value> {
    [
        ("null", json!(null)),
        ("boolean", json!(true)),
        ("number", json!(7)),
        ("string", json!("7")),
        ("array", json!([])),
    ]
    .into_iter()
    .chain([("object", json!({}))])
    .filter(|(kind, _)| !except.contains(kind))
    .map(|(_, value)| value)
    .collect()
}

#[test]
fn ojs_11_1_max_attempts_is_a_non_negative_integer() {
    assert_field_refuses(OJS, "/max_attempts", &[json!(-1), json!(2.5), json!(-0.5), json!(1e300)]);
    assert_field_refuses(OJS, "/max_attempts", &wrong_kinds(&["number"]));
    assert_field_accepts(OJS, "/max_attempts", &[json!(0), json!(3), json!(3.0), json!(u32::MAX)]);
}

#[test]
fn ojs_11_1_initial_interval_is_a_valid_duration() {
    assert_field_refuses(OJS, "/initial_interval", &[json!("5s"), json!("P1W"), json!("PT1S\n")]);
    assert_field_refuses(OJS, "/initial_interval", &wrong_kinds(&[]));
}

#[test]
fn ojs_11_1_initial_interval_is_greater_than_zero() {
    assert_field_refuses(
        OJS,
        "/initial_interval",
        &[json!("PT0S"), json!("P0D"), json!("PT0.000S"), json!("P0Y0M0DT0H")],
    );
    assert_field_accepts(OJS, "/initial_interval", &[json!("PT0.000001S")]);
}

#[test]
fn ojs_11_1_backoff_coefficient_is_at_least_1() {
    assert_field_refuses(OJS, "/backoff_coefficient", &[json!(0.99), json!(0), json!(-1)]);
    assert_field_refuses(OJS, "/backoff_coefficient", &wrong_kinds(&["number"]));
}

#[test]
fn ojs_11_1_max_interval_is_a_valid_duration() {
    assert_field_refuses(OJS, "/max_interval", &[json!("5m"), json!("PT5M "), json!("-PT5M")]);
    assert_field_refuses(OJS, "/max_interval", &wrong_kinds(&[]));
}

#[test]
fn ojs_11_1_max_interval_is_at_least_initial_interval() {
    assert_refused(OJS, &json!({"initial_interval": "PT10S", "max_interval": "PT9.999S"}), &["/max_interval"]);
    assert_refused(OJS, &json!({"max_interval": "PT0S"}), &["/max_interval"]);
    reading(OJS, &json!({"initial_interval": "PT10S", "max_interval": "PT10S"}));
}

#[test]
fn ojs_11_1_jitter_is_a_boolean() {
    assert_field_refuses(OJS, "/jitter", &wrong_kinds(&["boolean"]));
    assert_field_accepts(OJS, "/jitter", &[json!(true), json!(false)]);
}

#[test]
fn ojs_11_1_non_retryable_errors_is_an_array_of_strings() {
    assert_field_refuses(OJS, "/non_retryable_errors", &wrong_kinds(&["array"]));
    let mixed = json!({"non_retryable_errors": ["a.b", 7, "c", null]});
    assert_refused(OJS, &mixed, &["/non_retryable_errors/1", "/non_retryable_errors/3"]);
}

#[test]
fn ojs_11_1_on_exhaustion_is_discard_or_dead_letter() {
    assert_field_refuses(OJS, "/on_exhaustion", &[json!("drop"), json!("DISCARD"), json!("dead-letter"), json!("")]);
    assert_field_refuses(OJS, "/on_exhaustion", &wrong_kinds(&[]));
    assert_field_accepts(OJS, "/on_exhaustion", &[json!("discard"), json!("dead_letter")]);
}

#[test]
fn ojs_11_every_problem_is_listed_at_once() {
    let document = json!({
        "max_attempts": -1,
        "initial_interval": "soon",
        "backoff_coefficient": 0.5,
        "max_interval": "later",
        "jitter": "yes",
        "non_retryable_errors": [""],
        "on_exhaustion": "drop",
        "priority": 3
    });
    let problems = OJS.read(&document).expect_err("nothing is right here").0;
    let mut paths: Vec<&str> = problems.iter().map(|problem| problem.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "/backoff_coefficient",
            "/initial_interval",
            "/jitter",
            "/max_attempts",
            "/max_interval",
            "/non_retryable_errors/0",
            "/on_exhaustion",
            "/priority"
        ]
    );
}

#[test]
fn ojs_14_type_object() {
    for document in [json!(null), json!(true), json!(3), json!("PT1S"), json!([])] {
        assert_refused(OJS, &document, &[""]);
    }
}

#[test]
fn ojs_14_max_attempts_integer_minimum_0() {
    assert_field_refuses(OJS, "/max_attempts", &[json!(-1), json!(0.5)]);
    assert_field_accepts(OJS, "/max_attempts", &[json!(0), json!(2.0)]);
}

#[test]
fn ojs_14_interval_pattern() {
    let refused = [
        "P", "PT", "P1DT", "PT1", "P1W", "PT1.5H", "PT1.5M", "P0.5D", "PT.5S", "PT1.S", "pt1s", "-PT1S", "+PT1S",
        " PT1S", "PT1S ", "PT1S\n", "PT5S1M", "PT1S1S", "P1M1Y", "PT1,5S", "P1S", "PT1D", "PTT1S", "P1DT1D",
    ];
    let refused: Vec<Value> = refused.iter().map(|text| json!(text)).collect();
    assert_field_refuses(OJS, "/initial_interval", &refused);
    assert_field_refuses(OJS, "/max_interval", &refused);
    let accepted = ["PT1S", "PT1.5S", "PT1M", "PT1H", "P1D", "P1M", "P1Y", "P1Y2M3DT4H5M6.7S", "PT2H5S", "P1YT1S"];
    let accepted: Vec<Value> = accepted.iter().map(|text| json!(text)).collect();
    assert_field_accepts(OJS, "/max_interval", &accepted);
}

#[test]
fn ojs_14_backoff_coefficient_number_minimum_1() {
    assert_field_refuses(OJS, "/backoff_coefficient", &[json!(0.999), json!("2.0"), json!(true)]);
    assert_field_accepts(OJS, "/backoff_coefficient", &[json!(1), json!(1.0), json!(2.5)]);
}

#[test]
fn ojs_14_jitter_boolean() {
    assert_field_refuses(OJS, "/jitter", &[json!("true"), json!(1), json!(0), json!(null)]);
}

#[test]
fn ojs_14_non_retryable_errors_items_min_length_1() {
    assert_refused(OJS, &json!({"non_retryable_errors": ["a", ""]}), &["/non_retryable_errors/1"]);
    assert_field_accepts(OJS, "/non_retryable_errors", &[json!([]), json!(["a"]), json!(["a.*", "*"]), json!([" "])]);
}

#[test]
fn ojs_14_on_exhaustion_enum() {
    assert_field_refuses(OJS, "/on_exhaustion", &[json!("Discard"), json!(["discard"]), json!(null)]);
}

#[test]
fn ojs_14_additional_properties_false() {
    for field in ["max_attempt", "retry", "maxAttempts", "$schema", "a/b", ""] {
        let mut document = json!({});
        document[field] = json!(1);
        let path = format!("/{}", field.replace('/', "~1"));
        assert_refused(OJS, &document, &[&path]);
    }
}
