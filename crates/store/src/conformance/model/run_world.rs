//! What the plans about runs stand for.

use super::answer::StepAnswer;
use super::plan::FEW;
use super::run_plan::{AdvancePlan, RunPlan, RunsStep};
use super::world::{START, World, moved, word};
use crate::{
    Blob, Interest, JobId, NewRun, OtherEvent, Parent, PendingRun, PendingRuns, RunFilter, RunId, RunKeys, RunStep,
    Signal, Store, StoreError,
};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

impl World {
    pub(super) async fn apply_to_runs(&self, store: &dyn Store, step: &RunsStep) -> Result<StepAnswer, StoreError> {
        let now = self.now;
        Ok(match step {
            RunsStep::Start(plans) => {
                let runs = (0..).zip(plans).map(|(place, plan)| self.new_run(place, *plan)).collect();
                StepAnswer::Started(store.start_runs(runs, now).await?)
            }
            RunsStep::Advance(plans) => {
                let mut steps = Vec::new();
                let (mut jobs, mut runs) = (0, 0);
                for plan in plans {
                    steps.push(self.run_step(store, plan, jobs, runs).await?);
                    (jobs, runs) = (jobs + plan.jobs.len(), runs + plan.runs.len());
                }
                StepAnswer::Stepped(store.advance(steps, now).await?)
            }
            RunsStep::Signal(run, name) => {
                StepAnswer::Signalled(store.signal(self.run_id(*run), signal(*name), now).await?)
            }
            RunsStep::Pending { newest, only, limit, messages } => {
                let only = only.as_ref().map(|only| only.iter().map(|run| self.run_id(*run)).collect());
                let pending = PendingRuns { programs: programs(*newest), only, limit: *limit, messages: *messages };
                let found = store.pending_runs(pending, now).await?;
                StepAnswer::Pending(found.into_iter().map(without_numbers).collect())
            }
            RunsStep::Next(newest) => StepAnswer::Wake(store.next_run(programs(*newest)).await?),
            RunsStep::PassToNext => StepAnswer::Wake(store.next_run(programs(u8::MAX)).await?),
            RunsStep::Get(run) => StepAnswer::Run(store.run(self.run_id(*run)).await?),
            RunsStep::OfKey(key) => StepAnswer::Run(store.run_of_key(word("run-key", *key)).await?),
            RunsStep::List { program, ended, after, limit } => {
                let filter = RunFilter {
                    program: program.map(|program| word("program", program)),
                    ended: *ended,
                    after: after.map(|after| self.run_id(after)),
                    keys: None,
                };
                StepAnswer::Runs(store.runs(filter, *limit).await?)
            }
            RunsStep::ListKeys(after, limit) => {
                let keys = RunKeys { prefix: "run-".into(), after: after.map(|after| word("run-key", after)) };
                let filter = RunFilter { keys: Some(keys), ..RunFilter::default() };
                StepAnswer::Runs(store.runs(filter, *limit).await?)
            }
            RunsStep::Prune(age_ms, limit) => {
                StepAnswer::Count(store.prune_runs(Span::from_millis(*age_ms), *limit, now).await?)
            }
        })
    }

    /// Records the ids that a step has given out.
    pub(super) fn record_runs(&mut self, step: &RunsStep) {
        let mut runs: Vec<&RunPlan> = Vec::new();
        if let RunsStep::Start(plans) = step {
            runs.extend(plans);
        }
        if let RunsStep::Advance(plans) = step {
            runs.extend(plans.iter().flat_map(|plan| &plan.runs));
            let jobs = (0..).zip(plans.iter().flat_map(|plan| &plan.jobs));
            let new: Vec<JobId> =
                jobs.filter(|(_, (_, job))| job.id.is_none()).map(|(place, _)| self.new_id(place)).collect();
            self.ids.extend(new);
            let jobs: usize = plans.iter().map(|plan| plan.jobs.len()).sum();
            self.enqueued = self.enqueued.saturating_add(u32::try_from(jobs).unwrap_or(u32::MAX));
        }
        let new = (0..).zip(&runs).filter(|(_, plan)| plan.id.is_none());
        let new: Vec<RunId> = new.map(|(place, _)| self.new_run_id(place)).collect();
        self.runs.extend(new);
        self.started = self.started.saturating_add(u32::try_from(runs.len()).unwrap_or(u32::MAX));
    }

    /// A step of a run as a store has it. Numbers of messages are the store's own.
    async fn run_step(
        &self,
        store: &dyn Store,
        plan: &AdvancePlan,
        first_job: usize,
        first_run: usize,
    ) -> Result<RunStep, StoreError> {
        let id = self.run_id(plan.run);
        let run = store.run(id).await?;
        let pending = PendingRuns { programs: programs(u8::MAX), only: Some(vec![id]), limit: 1, messages: usize::MAX };
        let pending = store.pending_runs(pending, self.now).await?;
        let messages = pending.iter().flat_map(|pending| &pending.messages);
        let place = |first: usize, index: usize| u32::try_from(first + index).unwrap_or(u32::MAX);
        let jobs = plan.jobs.iter().enumerate();
        let runs = plan.runs.iter().enumerate().map(|(index, plan)| {
            // A child of this run, or of none.
            let parent = plan.parent.map(|_| Parent { run: id, child: plan.program.into() });
            NewRun { parent, ..self.new_run(place(first_run, index), *plan) }
        });
        Ok(RunStep {
            id,
            revision: run.as_ref().map_or(0, |run| run.revision) + u64::from(plan.ahead),
            version: run.as_ref().map_or(0, |run| run.version),
            state: format!("{plan:?}").into_bytes().into(),
            timer: plan.timer_ms.map(|ms| moved(self.now, ms.into())),
            end: plan.end.map(|(succeeded, result)| (succeeded, Blob::from([result]))),
            consumed: messages.take(plan.consumed).map(|message| message.number).collect(),
            jobs: jobs
                .map(|(index, (child, plan))| (u64::from(*child), self.new_job(place(first_job, index), plan)))
                .collect(),
            cancelled: plan.cancelled.iter().map(|job| self.id(*job)).collect(),
            withdrawn: plan.withdrawn.iter().map(|job| self.id(*job)).collect(),
            runs: runs.collect(),
            signals: plan.signals.iter().map(|(run, name)| (self.run_id(*run), signal(*name))).collect(),
            interest: interest(plan),
            events: plan.timer_ms.map(|_| told()).into_iter().collect(),
        })
    }

    /// The id of a run that was started, counted back from the last; an unknown id before the first.
    fn run_id(&self, back: u8) -> RunId {
        let known = self.runs.iter().rev().nth(back.into()).copied();
        known.unwrap_or_else(|| RunId::new(START, u128::MAX - u128::from(back)))
    }

    fn new_run_id(&self, place: u32) -> RunId {
        let number = self.started.wrapping_add(place).wrapping_mul(0x9e37_79b1);
        RunId::new(START, u128::from(number))
    }

    fn new_run(&self, place: u32, plan: RunPlan) -> NewRun {
        let id = plan.id.map_or_else(|| self.new_run_id(place), |back| self.run_id(back));
        // No run starts itself.
        let parent = plan.parent.map(|run| self.run_id(run)).filter(|parent| *parent != id);
        NewRun {
            id,
            program: word("program", plan.program),
            version: plan.version.into(),
            state: format!("{plan:?}").into_bytes().into(),
            key: plan.key.map(|key| word("run-key", key)),
            parent: parent.map(|run| Parent { run, child: plan.program.into() }),
            depth: plan.version.into(),
            seed: u64::MAX - u64::from(place),
        }
    }
}

fn programs(newest: u8) -> Vec<(Arc<str>, u32)> {
    (0..FEW).map(|program| (word("program", program), newest.into())).collect()
}

fn signal(name: u8) -> Signal {
    Signal { name: word("signal", name), body: Blob::from([name]) }
}

/// A pending run as every store answers it.
fn without_numbers(pending: PendingRun) -> (crate::Run, Vec<(Moment, crate::MessageBody)>) {
    let messages = pending.messages.into_iter().map(|message| (message.at, message.body)).collect();
    (pending.run, messages)
}

/// Which events a run wants after a step. It follows from the plan, so that steps which stop listening come about too.
fn interest(plan: &AdvancePlan) -> Option<Arc<Interest>> {
    let types: &[&str] = match plan.consumed.wrapping_add(plan.signals.len()) % 3 {
        0 => return None,
        1 => &["job.completed", "flow.*"],
        _ => &["*"],
    };
    let types = types.iter().map(|one| Arc::from(*one)).collect();
    Some(Arc::new(Interest { types, ..Interest::default() }))
}

/// What a step with a timer tells.
fn told() -> OtherEvent {
    OtherEvent {
        event_type: "flow.went".into(),
        subject: "s".into(),
        queue: None,
        job_type: None,
        data: Blob::from(*b"{}"),
    }
}
