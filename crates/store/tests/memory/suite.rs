//! One test for each case of the suite, and tests of the suite itself.

use crate::MemorySubject;
use crate::flawed::{Flaw, FlawedSubject};
use redrive_store::conformance::{cases, check};
use std::collections::BTreeSet;

redrive_store::conformance_tests!(MemorySubject::default());

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: BTreeSet<_> = cases().iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases().len());
}

#[test]
fn every_flaw_is_found_by_some_case() {
    for flaw in Flaw::ALL {
        let found = cases().iter().find_map(|case| case.run(&FlawedSubject::new(flaw)).err());
        let failed = found.unwrap_or_else(|| panic!("no case finds that a store {flaw:?}"));
        let message = failed.to_string();
        assert!(message.starts_with(&failed.case) && message.contains(".rs:"), "{flaw:?}: {message}");
    }
}

#[test]
fn an_unknown_case_is_not_passed() {
    assert!(check("no_such_case", &MemorySubject::default()).is_err());
}
