//! Random histories, compared with the reference model answer by answer.

use crate::conformance::InMemory;
use proptest::prelude::*;
use redrive_store::conformance::model::{agree, steps};

proptest! {
    #[test]
    fn the_embedded_store_agrees_with_the_model(steps in steps(80)) {
        agree(&InMemory::default(), &steps).map_err(|found| TestCaseError::fail(found.to_string()))?;
    }
}
