//! The suite.

redrive_store::conformance_tests!(crate::subject::InSchema::default());
