//! Whatever is enqueued is read or refused, with paths that a person can follow.

use super::arbitrary::{dialects, pointers, texts, values};
use super::documents::{documents, failures};
use proptest::prelude::*;
use proptest::sample::Index;
use redrive_policy::dialect::Dialect;
use redrive_policy::lab::replay::Script;
use redrive_policy::{Problems, wire};
use serde_json::Value;

/// Every path leads into the document, or to a member that is missing from an object in it.
fn assert_paths_lead_somewhere(document: &Value, refusal: &Problems) -> Result<(), TestCaseError> {
    prop_assert!(!refusal.0.is_empty());
    for problem in &refusal.0 {
        let missing = || {
            let parent = problem.path.rsplit_once('/').and_then(|(parent, _)| document.pointer(parent));
            problem.message.starts_with("missing") && parent.is_some_and(Value::is_object)
        };
        let leads = document.pointer(&problem.path).is_some() || missing();
        prop_assert!(leads, "{:?} leads nowhere in {document}: {}", problem.path, problem.message);
        prop_assert!(problem.message.len() > 10, "{problem:?}");
    }
    Ok(())
}

/// A document in which one value was replaced, or taken away, and where the value stood.
fn near_misses(dialect: Dialect) -> impl Strategy<Value = (Dialect, (Value, String))> {
    let broken = |(mut document, at, junk): (Value, Index, Option<Value>)| {
        let places = pointers(&document);
        let place = at.get(&places);
        match (junk, place.rsplit_once('/')) {
            (Some(junk), _) => *document.pointer_mut(place).expect("a place") = junk,
            (None, None) => document = Value::Null,
            (None, Some((parent, key))) => match document.pointer_mut(parent).expect("a parent") {
                Value::Object(fields) => drop(fields.remove(&key.replace("~1", "/").replace("~0", "~"))),
                Value::Array(items) => drop(items.remove(key.parse().expect("an index"))),
                other => panic!("{other} has no members"),
            },
        }
        (document, place.clone())
    };
    let parts = (documents(dialect), any::<Index>(), proptest::option::weighted(0.8, values()));
    (Just(dialect), parts.prop_map(broken))
}

proptest! {
    #[test]
    fn arbitrary_json_is_read_or_refused_by_every_reader(document in values()) {
        for dialect in Dialect::ALL {
            if let Err(refusal) = dialect.read(&document) {
                assert_paths_lead_somewhere(&document, &refusal)?;
            }
            if let Err(refusal) = dialect.read_failure("", &document) {
                assert_paths_lead_somewhere(&document, &refusal)?;
            }
        }
        let _ = redrive_policy::notation::recognise(&document);
        let _ = Script::of(&document);
    }

    #[test]
    fn arbitrary_text_is_json_or_a_syntax_error_with_a_place(
        text in "\\PC{0,80}|[\\[\\]{}\",:0-9eE.+\\-a-z\\\\ \n]{0,80}"
    ) {
        match wire::parse_json(&text) {
            Ok(value) => prop_assert_eq!(wire::parse_json(&value.to_string()), Ok(value)),
            Err(error) => prop_assert!(!error.message.is_empty() && error.line >= 1, "{error:?}"),
        }
    }

    #[test]
    fn arbitrary_bytes_taken_as_text_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = wire::parse_json(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn what_is_json_survives_its_own_text(value in values()) {
        prop_assert_eq!(wire::parse_json(&value.to_string()), Ok(value));
    }

    #[test]
    fn a_repeated_key_is_refused_and_named(key in prop_oneof![texts(), Just(" at line 1 column 2".to_owned())]) {
        let written = Value::from(key.clone()).to_string();
        let error = wire::parse_json(&format!("{{{written}: 1, {written}: 2}}")).expect_err("a key that stands twice");
        prop_assert!(error.message.contains(&key) && error.message.contains("keep one of them"), "{error:?}");
        prop_assert!(!error.message.contains("column") || key.contains("column"), "{error:?}");
    }

    #[test]
    fn valid_documents_and_failures_are_read(
        (dialect, document, failure) in dialects().prop_flat_map(|d| (Just(d), documents(d), failures(d)))
    ) {
        prop_assert!(dialect.read(&document).is_ok(), "{:?}", dialect.read(&document));
        prop_assert!(dialect.read_failure("", &failure).is_ok(), "{:?}", dialect.read_failure("", &failure));
    }

    #[test]
    fn near_misses_are_read_or_refused_with_paths_that_lead_somewhere(
        (dialect, (document, place)) in dialects().prop_flat_map(near_misses)
    ) {
        let parent = place.rsplit_once('/').map_or("", |(parent, _)| parent);
        if let Err(refusal) = dialect.read(&document) {
            assert_paths_lead_somewhere(&document, &refusal)?;
            // One thing is wrong: nothing is said of the parts that were not touched.
            for problem in &refusal.0 {
                prop_assert!(problem.path.starts_with(parent), "{place:?} was changed: {problem:?}");
            }
        }
    }

    #[test]
    fn near_miss_failures_are_read_or_refused_with_paths_that_lead_somewhere(
        (dialect, failure, key, junk) in
            dialects().prop_flat_map(|d| (Just(d), failures(d), any::<Index>(), values()))
    ) {
        let mut keys: Vec<String> = failure.as_object().expect("an object").keys().cloned().collect();
        keys.push("elapsed_ms".to_owned());
        let key: &String = key.get(&keys);
        let failure = super::arbitrary::with_field(&failure, key, junk);
        if let Err(refusal) = dialect.read_failure("", &failure) {
            assert_paths_lead_somewhere(&failure, &refusal)?;
        }
    }
}
