//! Random jobs, compared with the reference model answer by answer.

use crate::subject::InSchema;
use proptest::prelude::*;
use redrive_store::conformance::model::{agree, steps};

proptest! {
    // A case takes about a hundred round trips; the other stores run the same cases in larger numbers.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_store_agrees_with_the_model(steps in steps(80)) {
        agree(&InSchema::default(), &steps).map_err(|found| TestCaseError::fail(found.to_string()))?;
    }
}
