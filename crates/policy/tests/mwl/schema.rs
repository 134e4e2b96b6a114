//! The parameter schema of `onEntry`, constraint by constraint.

use super::common::{assert_refused, assert_same, reading, set, without};
use super::{MWL, any};
use serde_json::{Value, json};

/// A document that uses every member of the schema.
fn full() -> Value {
    json!({
        "policies": [{
            "match": {"codes": ["Provider.Call.Http.*"], "types": ["error", "timeout"], "retryable": true},
            "attempts": 4,
            "backoff": {"initial": "PT1S", "rate": 2, "max": "PT30S", "jitter": "none"}
        }]
    })
}

/// Every value of the list is refused at this place of the full document.
fn assert_place_refuses(place: &str, values: &[Value]) {
    for value in values {
        assert_refused(MWL, &set(&full(), place, value.clone()), &[place]);
    }
}

fn assert_place_accepts(place: &str, values: &[Value]) {
    for value in values {
        reading(MWL, &set(&full(), place, value.clone()));
    }
}

#[test]
fn mwl_schema_types() {
    reading(MWL, &full());
    assert_place_refuses("", &[json!(null), json!([]), json!("x"), json!(1), json!(true)]);
    let not_an_array = [json!(null), json!({}), json!("x"), json!(1), json!(true)];
    let not_an_object = [json!(null), json!([]), json!("x"), json!(1), json!(true)];
    let not_a_string = [json!(null), json!([]), json!({}), json!(1), json!(true)];
    assert_place_refuses("/policies", &not_an_array);
    assert_place_refuses("/policies/0", &not_an_object);
    assert_place_refuses("/policies/0/match", &not_an_object);
    assert_place_refuses("/policies/0/match/codes", &not_an_array);
    assert_place_refuses("/policies/0/match/codes/0", &not_a_string);
    assert_place_refuses("/policies/0/match/types", &not_an_array);
    assert_place_refuses("/policies/0/match/types/1", &not_a_string);
    assert_place_refuses("/policies/0/match/retryable", &[json!(null), json!("true"), json!(1), json!([]), json!({})]);
    assert_place_refuses("/policies/0/attempts", &[json!(null), json!("3"), json!(true), json!([]), json!({})]);
    assert_place_refuses("/policies/0/backoff", &not_an_object);
    assert_place_refuses("/policies/0/backoff/initial", &not_a_string);
    assert_place_refuses("/policies/0/backoff/rate", &[json!(null), json!("2"), json!(true), json!([]), json!({})]);
    assert_place_refuses("/policies/0/backoff/max", &not_a_string);
    assert_place_refuses("/policies/0/backoff/jitter", &not_a_string);
}

#[test]
fn mwl_schema_required() {
    for place in ["/policies", "/policies/0/match", "/policies/0/attempts", "/policies/0/backoff/initial"] {
        assert_refused(MWL, &without(&full(), place), &[place]);
    }
    for optional in [
        "/policies/0/backoff",
        "/policies/0/backoff/rate",
        "/policies/0/backoff/max",
        "/policies/0/backoff/jitter",
        "/policies/0/match/codes",
        "/policies/0/match/types",
        "/policies/0/match/retryable",
    ] {
        reading(MWL, &without(&full(), optional));
    }
}

#[test]
fn mwl_schema_min_items_and_min_properties() {
    assert_place_refuses("/policies", &[json!([])]);
    assert_place_refuses("/policies/0/match", &[json!({})]);
    assert_place_refuses("/policies/0/match/codes", &[json!([])]);
    assert_place_refuses("/policies/0/match/types", &[json!([])]);
}

#[test]
fn mwl_schema_additional_properties_at_each_level() {
    for place in ["", "/policies/0", "/policies/0/match", "/policies/0/backoff"] {
        let extra = format!("{place}/extra");
        assert_refused(MWL, &set(&full(), &extra, json!(1)), &[&extra]);
    }
}

#[test]
fn mwl_schema_attempts_integer_minimum_1() {
    assert_place_refuses("/policies/0/attempts", &[json!(0), json!(-1), json!(2.5)]);
    assert_place_accepts("/policies/0/attempts", &[json!(1), json!(3.0), json!(u32::MAX)]);
    assert_same(
        MWL,
        &any(3, json!({"initial": "PT1S"})),
        &set(&any(1, json!({"initial": "PT1S"})), "/policies/0/attempts", json!(3.0)),
    );
}

#[test]
fn mwl_schema_rate_number_minimum_1_default_1() {
    assert_place_refuses("/policies/0/backoff/rate", &[json!(0.99), json!(0), json!(-1)]);
    assert_place_accepts("/policies/0/backoff/rate", &[json!(1), json!(1.0), json!(2.5)]);
    assert_same(MWL, &any(3, json!({"initial": "PT1S"})), &any(3, json!({"initial": "PT1S", "rate": 1})));
}

#[test]
fn mwl_schema_types_not_success() {
    assert_place_refuses("/policies/0/match/types/0", &[json!("success")]);
    assert_place_accepts("/policies/0/match/types/0", &[json!("Success"), json!("successful"), json!("cancelled")]);
}

#[test]
fn mwl_schema_jitter_enum_default_none() {
    assert_place_refuses("/policies/0/backoff/jitter", &[json!("half"), json!("Full"), json!("")]);
    assert_place_accepts(
        "/policies/0/backoff/jitter",
        &["none", "full", "equal", "decorrelated"].map(|name| json!(name)),
    );
    assert_same(MWL, &any(3, json!({"initial": "PT1S"})), &any(3, json!({"initial": "PT1S", "jitter": "none"})));
}

#[test]
fn mwl_schema_format_duration() {
    for place in ["/policies/0/backoff/initial", "/policies/0/backoff/max"] {
        let refused = ["", "1s", "P", "PT", "PT1", "P1DT", "pt1s", "PT1S ", "PT5S1M", "P1.5W", "P1W1D", "--PT1S"];
        assert_place_refuses(place, &refused.map(|text| json!(text)));
        let accepted = ["PT0S", "PT0.2S", "PT1M", "PT1H", "P1D", "P1M", "P1Y", "P2W", "P1Y2M3DT4H5M6.7S", "-PT30S"];
        assert_place_accepts(place, &accepted.map(|text| json!(text)));
    }
}

#[test]
fn mwl_schema_every_problem_of_every_policy_is_listed() {
    let document = json!({"policies": [
        {"match": {}, "attempts": 0},
        7,
        {"attempts": 2, "backoff": {"rate": 0.5, "jitter": "half"}},
        {"match": {"codes": ["*", 1], "types": ["success"]}, "attempts": 2}
    ]});
    let mut paths: Vec<String> =
        MWL.read(&document).expect_err("much is wrong").0.into_iter().map(|p| p.path).collect();
    paths.sort_unstable();
    let expected = [
        "/policies/0/attempts",
        "/policies/0/match",
        "/policies/1",
        "/policies/2/backoff/initial",
        "/policies/2/backoff/jitter",
        "/policies/2/backoff/rate",
        "/policies/2/match",
        "/policies/3/match/codes/1",
        "/policies/3/match/types/0",
    ];
    assert_eq!(paths, expected);
}
