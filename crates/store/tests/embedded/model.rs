//! Random histories, compared with the reference model answer by answer.

use crate::conformance::InMemory;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use redrive_store::conformance::model::{Disagreement, Step, agree, shortened, steps};

proptest! {
    #[test]
    fn the_embedded_store_agrees_with_the_model(steps in steps(80)) {
        compared(&steps).map_err(|found| TestCaseError::fail(found.to_string()))?;
    }
}

fn compared(steps: &[Step]) -> Result<(), Disagreement> {
    agree(&InMemory::default(), steps).map(drop)
}

#[test]
#[ignore = "needs wrong rules, which scripts/plant makes in a copy of the project"]
fn a_wrong_rule_is_seen_in_a_short_history() {
    let planted = std::env::var("REDRIVE_PLANTED").expect("scripts/plant says which rule is wrong");
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let found =
        runner.run(&steps(80), |steps| compared(&steps).map_err(|found| TestCaseError::fail(found.to_string())));
    let Err(TestError::Fail(_, history)) = found else { panic!("{planted}: the model test does not see it") };
    let history = shortened(history, |steps| compared(steps).is_err());
    eprintln!("{planted}: {} steps: {history:?}", history.len());
    assert!(history.len() <= 12, "{planted} takes {} steps", history.len());
}
