//! The reference model agrees with itself, and the histories are rich enough to find wrong stores.

use crate::MemorySubject;
use crate::flawed::{Flaw, FlawedSubject};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use redrive_store::conformance::model::{Step, StepAnswer, agree, shortened, steps};
use redrive_store::{Enqueued, Refusal, State};
use std::collections::BTreeSet;

proptest! {
    #[test]
    fn the_model_agrees_with_itself_and_its_jobs_are_sound(steps in steps(80)) {
        agree(&MemorySubject::default(), &steps).map_err(|found| TestCaseError::fail(found.to_string()))?;
    }
}

/// Histories that are the same in every run.
fn histories(count: usize) -> Vec<Vec<Step>> {
    let mut runner = TestRunner::deterministic();
    let histories = (0..count).filter_map(|_| steps(80).new_tree(&mut runner).ok());
    let histories: Vec<_> = histories.map(|tree| tree.current()).collect();
    assert_eq!(histories.len(), count, "a history is never rejected");
    histories
}

#[test]
fn the_histories_reach_every_state_and_every_refusal() {
    let mut reached = BTreeSet::new();
    for history in histories(200) {
        for seen in agree(&MemorySubject::default(), &history).expect("the model agrees with itself") {
            reached.extend(seen.refusals().into_iter().map(name));
            reached.extend(seen.jobs().into_iter().map(|job| job.state.name().to_owned()));
            let jobs = seen.jobs();
            reached.extend(jobs.iter().filter(|job| job.dead).map(|_| "a dead letter".to_owned()));
            reached.extend(jobs.iter().filter(|job| job.generation > 1).map(|_| "a third generation".to_owned()));
            reached.extend(jobs.iter().filter(|job| job.attempt > 2).map(|_| "a third run".to_owned()));
            reached.extend(jobs.iter().filter(|job| job.attempt > 30).map(|_| "a thirtieth run".to_owned()));
            reached.extend(jobs.iter().filter(|job| job.releases > 1).map(|_| "a second release".to_owned()));
            reached.extend(special(&seen).map(str::to_owned));
        }
    }
    let refusals = [
        Refusal::NotFound,
        Refusal::StaleLease,
        Refusal::WrongLease,
        Refusal::OtherWorker,
        Refusal::TooManyReleases(0),
    ];
    let mut expected: BTreeSet<String> = refusals.iter().map(name).collect();
    for state in State::ALL {
        expected.insert(state.name().to_owned());
        expected.insert(name(&Refusal::WrongState(state)));
    }
    expected.extend(
        ["a dead letter", "a third generation", "a third run", "a thirtieth run", "a second release"]
            .map(str::to_owned),
    );
    expected.extend(["a taken id", "a known key", "a pruned job"].map(str::to_owned));
    let missing: Vec<_> = expected.difference(&reached).collect();
    assert!(missing.is_empty(), "200 histories never came to {missing:?}");
}

#[test]
fn every_flaw_is_found_by_some_history() {
    let histories = histories(400);
    for flaw in Flaw::ALL {
        let found = histories.iter().position(|history| agree(&FlawedSubject::new(flaw), history).is_err());
        assert!(found.is_some(), "none of {} histories finds that a store {flaw:?}", histories.len());
    }
}

#[test]
fn a_disagreement_shrinks_to_a_short_history() {
    let config = || ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() };
    let rng = || TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for (flaw, most) in [(Flaw::CallsStaleWrong, 4), (Flaw::LosesPausesAtRestart, 1), (Flaw::StopsAtAHeldJob, 6)] {
        let result = TestRunner::new_with_rng(config(), rng()).run(&steps(80), |history| {
            let agreed = agree(&FlawedSubject::new(flaw), &history);
            agreed.map(drop).map_err(|found| TestCaseError::fail(found.to_string()))
        });
        let Err(TestError::Fail(_, history)) = result else { panic!("no history finds that a store {flaw:?}") };
        let history = shortened(history, |history| agree(&FlawedSubject::new(flaw), history).is_err());
        assert!(history.len() <= most, "{flaw:?} takes {} steps: {history:?}", history.len());
    }
}

/// A refusal without the number in it.
fn name(refusal: &Refusal) -> String {
    match refusal {
        Refusal::TooManyReleases(_) => "TooManyReleases".to_owned(),
        other => format!("{other:?}"),
    }
}

fn special(seen: &StepAnswer) -> Option<&'static str> {
    match seen {
        StepAnswer::Enqueued(Err(_)) => Some("a taken id"),
        StepAnswer::Enqueued(Ok(answers)) if answers.iter().any(|a| matches!(a, Enqueued::Existing(_))) => {
            Some("a known key")
        }
        StepAnswer::Count(1..) => Some("a pruned job"),
        _ => None,
    }
}
