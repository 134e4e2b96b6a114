//! The reference model agrees with itself, and the histories are rich enough to find wrong stores.

use crate::MemorySubject;
use crate::flawed::{Flaw, FlawedSubject};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use redrive_store::conformance::model::{Step, StepAnswer, agree, shortened, steps};
use redrive_store::{
    ChildEnd, EnqueueRefusal, Enqueued, MessageBody, Refusal, RunRefusal, StartRefusal, State, Stepped,
};
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
    for history in histories(800) {
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
            reached.extend(of_runs(&seen).into_iter().map(str::to_owned));
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
    expected.extend(["a taken id", "a known key", "a pruned job", "a duplicate", "a full queue"].map(str::to_owned));
    expected.extend(["a duplicate of an ended job", "an ignored job", "a replaced job"].map(str::to_owned));
    expected.insert("Duplicate".to_owned());
    expected.extend(OF_RUNS.map(str::to_owned));
    let missing: Vec<_> = expected.difference(&reached).collect();
    assert!(missing.is_empty(), "800 histories never came to {missing:?}");
}

#[test]
fn every_flaw_is_found_by_some_history() {
    let histories = histories(800);
    // No history fills an inbox.
    for flaw in Flaw::ALL.into_iter().filter(|flaw| *flaw != Flaw::TakesSignalsWithoutLimit) {
        let found = histories.iter().position(|history| agree(&FlawedSubject::new(flaw), history).is_err());
        assert!(found.is_some(), "none of {} histories finds that a store {flaw:?}", histories.len());
    }
}

#[test]
fn a_disagreement_shrinks_to_a_short_history() {
    let config = || ProptestConfig { failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() };
    let rng = || TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    for (flaw, most) in [(Flaw::CallsStaleWrong, 5), (Flaw::LosesPausesAtRestart, 1), (Flaw::StopsAtAHeldJob, 10)] {
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
        Refusal::Duplicate(_) => "Duplicate".to_owned(),
        other => format!("{other:?}"),
    }
}

/// What histories have to reach with runs.
const OF_RUNS: [&str; 16] = [
    "a run whose id is taken",
    "a run whose key is taken",
    "a step",
    "a step of a run that is gone",
    "a step that is too late",
    "a step with the id of another job",
    "a step with the id of another run",
    "a step with a duplicate",
    "a step that ends a run",
    "a job of a run",
    "a cancelled job of a run",
    "success of a job",
    "a failure of a job",
    "the expiry of a job",
    "a redriven job",
    "the end of a run",
];

fn of_runs(seen: &StepAnswer) -> Vec<&'static str> {
    let message = |body: &MessageBody| match body {
        MessageBody::JobEnded { end: ChildEnd::Completed { .. }, .. } => "success of a job",
        MessageBody::JobEnded { end: ChildEnd::Failed { .. }, .. } => "a failure of a job",
        MessageBody::JobEnded { end: ChildEnd::Expired { .. }, .. } => "the expiry of a job",
        MessageBody::JobEnded { end: ChildEnd::Cancelled { .. }, .. } => "a cancelled job of a run",
        MessageBody::JobRedriven { .. } => "a redriven job",
        MessageBody::RunEnded { .. } => "the end of a run",
        MessageBody::Signal(_) => "a signal",
        MessageBody::Event { .. } => "an event",
    };
    let step = |answer: &Stepped| match answer {
        Ok(advanced) if advanced.run.end.is_some() => "a step that ends a run",
        Ok(advanced) if !advanced.transitions.is_empty() => "a job of a run",
        Ok(_) => "a step",
        Err(RunRefusal::NotFound) => "a step of a run that is gone",
        Err(RunRefusal::Changed(_)) => "a step that is too late",
        Err(RunRefusal::JobIdTaken(_)) => "a step with the id of another job",
        Err(RunRefusal::RunIdTaken(_)) => "a step with the id of another run",
        Err(RunRefusal::Duplicate(..)) => "a step with a duplicate",
        Err(RunRefusal::InboxFull(_)) => "a full inbox",
    };
    match seen {
        StepAnswer::Started(Err(StartRefusal::IdTaken(_))) => vec!["a run whose id is taken"],
        StepAnswer::Started(Err(StartRefusal::KeyTaken(..))) => vec!["a run whose key is taken"],
        StepAnswer::Stepped(answers) => answers.iter().map(step).collect(),
        StepAnswer::Pending(runs) => {
            runs.iter().flat_map(|(_, messages)| messages).map(|(_, body)| message(body)).collect()
        }
        _ => Vec::new(),
    }
}

fn special(seen: &StepAnswer) -> Option<&'static str> {
    match seen {
        StepAnswer::Enqueued(Err(EnqueueRefusal::IdTaken { .. })) => Some("a taken id"),
        StepAnswer::Enqueued(Err(EnqueueRefusal::Duplicate { duplicate, .. })) if duplicate.irreplaceable => {
            Some("a duplicate of an ended job")
        }
        StepAnswer::Enqueued(Err(EnqueueRefusal::Duplicate { .. })) => Some("a duplicate"),
        StepAnswer::Enqueued(Err(EnqueueRefusal::QueueFull { .. })) => Some("a full queue"),
        StepAnswer::Enqueued(Ok(answers)) if answers.iter().any(|a| matches!(a, Enqueued::Ignored(_))) => {
            Some("an ignored job")
        }
        StepAnswer::Enqueued(Ok(answers)) if answers.iter().any(|a| matches!(a, Enqueued::Replaced { .. })) => {
            Some("a replaced job")
        }
        StepAnswer::Enqueued(Ok(answers)) if answers.iter().any(|a| matches!(a, Enqueued::Existing(_))) => {
            Some("a known key")
        }
        StepAnswer::Count(1..) => Some("a pruned job"),
        _ => None,
    }
}
