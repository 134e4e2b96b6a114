//! Two stores, one history.

use super::answer::StepAnswer;
use super::plan::{self, HeldPlan, JobPlan, ListPlan, SpecPlan, StartPlan, UniquePlan};
use super::run_plan::RunsStep;
use super::sound::unsound;
use super::step::Step;
use super::world::World;
use crate::conformance::Subject;
use crate::{Memory, OnConflict, StoreError};
use std::fmt;

/// Where a subject differs from the reference model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement(String);

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Disagreement {}

impl From<StoreError> for Disagreement {
    fn from(error: StoreError) -> Self {
        Self(format!("a store failed: {error}"))
    }
}

/// Takes the same steps on the reference model and on a new store of the subject, and compares every
/// answer; then everything that can be read, before and after a last restart. Nothing may differ.
/// Returns the answers to the steps.
///
/// # Errors
/// The first step at which the two differ, and the answer of each; or an answer with a job whose fields
/// contradict each other.
pub fn agree(subject: &dyn Subject, steps: &[Step]) -> Result<Vec<StepAnswer>, Disagreement> {
    let mut outcome = Err(Disagreement("the subject did not wait for the end of the history".to_owned()));
    subject.wait(Box::pin(async { outcome = run_steps(subject, steps).await }));
    outcome
}

async fn run_steps(subject: &dyn Subject, steps: &[Step]) -> Result<Vec<StepAnswer>, Disagreement> {
    let mut world = World::new().map_err(|problems| Disagreement(format!("the model's own policies: {problems}")))?;
    let mut model = Memory::new();
    let mut store = subject.open();
    let mut answers = Vec::new();
    for (index, step) in steps.iter().chain(&final_reads()).enumerate() {
        if matches!(step, Step::Restart) {
            // A placeholder while the store is closed and not open again.
            drop(std::mem::replace(&mut store, Box::new(Memory::new())));
            store = subject.reopen();
            model = model.reopened();
        }
        let expected = world.apply(&model, step).await?;
        let found = world.apply(&*store, step).await?;
        let place = if index < steps.len() { format!("step {index}") } else { "the reads at the end".to_owned() };
        compare(&format!("{place}, {step:?}"), &expected, &found)?;
        world.record(step, &found);
        answers.push(found);
    }
    answers.truncate(steps.len());
    Ok(answers)
}

fn compare(place: &str, expected: &StepAnswer, found: &StepAnswer) -> Result<(), Disagreement> {
    if found != expected {
        let answers = format!("the model answers\n  {expected:?}\nand the store\n  {found:?}");
        return Err(Disagreement(format!("{place}: {answers}")));
    }
    for job in found.jobs() {
        if let Some(rule) = unsound(job) {
            return Err(Disagreement(format!("{place}: a job {rule}, but this one is\n  {job:?}")));
        }
    }
    Ok(())
}

/// Everything that can be read, twice, with a restart in between; and the jobs to which the keys lead.
fn final_reads() -> Vec<Step> {
    let all = || {
        let reads = [
            Step::List(ListPlan::ALL),
            Step::List(ListPlan { dead: Some(true), ..ListPlan::ALL }),
            Step::Queues,
            Step::NextWake(HeldPlan::None),
            Step::Runs(RunsStep::ALL),
            Step::Runs(RunsStep::ALL_PENDING),
            Step::Runs(RunsStep::Next(u8::MAX)),
        ];
        let keys = (0..plan::FEW).map(|key| Step::Runs(RunsStep::OfKey(key)));
        reads.into_iter().chain((0..8).map(Step::Get)).chain(keys)
    };
    let keys = (0..plan::FEW).map(|key| Step::Enqueue(vec![JobPlan { key: Some(key), ..pending() }]));
    let uniques = (0..plan::FEW).flat_map(|key| (0..8).map(move |state| unique(key, 1 << state)));
    all().chain([Step::Restart]).chain(all()).chain(keys).chain(uniques).collect()
}

/// A job that is pending, and has nothing else.
fn pending() -> JobPlan {
    JobPlan { id: None, spec: SpecPlan::default(), start: StartPlan::Pending, key: None, unique: None, depth: None }
}

/// Enqueues a job that is ignored where another with the key is in one of the states.
fn unique(key: u8, states: u8) -> Step {
    let unique = UniquePlan { key, states, period_ms: None, on_conflict: OnConflict::Ignore };
    Step::Enqueue(vec![JobPlan { unique: Some(unique), ..pending() }])
}
