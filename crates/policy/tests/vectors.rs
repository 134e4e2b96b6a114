//! The shared vectors: policies in five dialects with the verdicts that they must give.

#![cfg(feature = "lab")]
#![allow(clippy::expect_used, clippy::panic)]

use redrive_policy::dialect::Dialect;
use redrive_policy::lab::replay::{Script, replay};
use redrive_policy::{Seeded, wire};
use serde_json::{Value, json};

const FILES: [(Dialect, &str); 5] = [
    (Dialect::Ojs, include_str!("vectors/ojs.json")),
    (Dialect::Azolla, include_str!("vectors/azolla.json")),
    (Dialect::TaskHarbor, include_str!("vectors/taskharbor.json")),
    (Dialect::Exosphere, include_str!("vectors/exosphere.json")),
    (Dialect::Mwl, include_str!("vectors/mwl.json")),
];

fn vectors() -> impl Iterator<Item = (Dialect, Value)> {
    FILES.into_iter().flat_map(|(dialect, text)| {
        let Value::Array(cases) = wire::parse_json(text).expect("vectors are JSON") else { panic!("not an array") };
        cases.into_iter().map(move |case| (dialect, case))
    })
}

fn failures_of(case: &Value) -> Vec<Value> {
    match &case["failures_repeat"] {
        Value::Object(repeat) => {
            let times = repeat["times"].as_u64().expect("a number") as usize;
            vec![repeat["failure"].clone(); times]
        }
        _ => case["failures"].as_array().cloned().unwrap_or_default(),
    }
}

fn verdicts(dialect: Dialect, case: &Value, seed: u64) -> Vec<Value> {
    let document = json!({ "policy": case["policy"], "failures": failures_of(case) });
    let script = Script::of(&document).expect("a script");
    let policy = dialect.read(script.policy).expect("valid").policy;
    let failures = script.read_failures(dialect).expect("failures");
    replay(&policy, &failures, &mut Seeded::new(seed)).iter().map(|s| s.to_json(dialect == Dialect::Mwl)).collect()
}

fn assert_expected(name: &str, actual: &Value, expected: &Value) {
    let expected = expected.as_object().expect("an object");
    for (key, wanted) in expected {
        let found = &actual[key];
        let equal = match (wanted.as_f64(), found.as_f64()) {
            (Some(a), Some(b)) => a == b,
            _ => wanted == found,
        };
        assert!(equal, "{name}: {key} is {found}, wanted {wanted}, in {actual}");
    }
    assert_eq!(actual.get("rule").is_some(), expected.contains_key("rule"), "{name}: {actual}");
    if let Some(delay) = actual["delay_ms"].as_f64() {
        let (min, max) = (actual["min_ms"].as_f64().expect("min"), actual["max_ms"].as_f64().expect("max"));
        assert!((min..=max).contains(&delay), "{name}: {delay} outside of {min}..={max}");
    }
}

#[test]
fn every_valid_vector_gives_its_verdicts() {
    let mut checked = 0;
    for (dialect, case) in vectors().filter(|(_, case)| case["valid"] == true) {
        let name = format!("{dialect}: {}", case["name"]);
        for seed in 0..20 {
            let actual = verdicts(dialect, &case, seed);
            if let Some(expected) = case["verdicts"].as_array() {
                assert_eq!(actual.len(), expected.len(), "{name}");
                actual.iter().zip(expected).for_each(|(a, e)| assert_expected(&name, a, e));
            } else {
                let tail = case["verdicts_tail"].as_array().expect("verdicts or their tail");
                assert_eq!(actual.len(), failures_of(&case).len(), "{name}");
                actual[actual.len() - tail.len()..].iter().zip(tail).for_each(|(a, e)| assert_expected(&name, a, e));
            }
        }
        checked += 1;
    }
    assert_eq!(checked, 87, "every valid vector was looked at");
}

#[test]
fn every_invalid_vector_is_refused_with_a_path_and_a_message() {
    let mut checked = 0;
    for (dialect, case) in vectors().filter(|(_, case)| case["valid"] == false) {
        let problems = dialect.read(&case["policy"]).expect_err("must be refused").0;
        assert!(!problems.is_empty(), "{}", case["name"]);
        for problem in problems {
            assert!(
                problem.path.is_empty()
                    || case["policy"].pointer(&problem.path).is_some()
                    || problem.message.contains("missing"),
                "{}: {} does not point into the policy",
                case["name"],
                problem.path
            );
            assert!(problem.message.len() > 10, "{}", problem.message);
        }
        checked += 1;
    }
    assert_eq!(checked, 67, "every invalid vector was looked at");
}
