//! The ledger of workflows and schedules: what the clients sent, what was acknowledged, and what follows.

use super::plan::{SchedulePlan, When, WorkflowPlan};
use crate::ledger::{Acknowledged, text};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// What is known of one job of a workflow or of a schedule.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Its id, as soon as it was seen.
    pub(crate) job: Option<String>,
    /// Whether its success, or its last failure, was sent.
    pub(crate) succeeding: bool,
    pub(crate) failing: bool,
    /// When the client learned that it is over. An earlier request may have been answered before.
    over: Option<Instant>,
}

impl Work {
    fn is_over(&self) -> bool {
        self.succeeding || self.failing
    }

    /// A worker has the job; what is wrong about that.
    fn fetched(&mut self, id: &str, asked: Instant) -> Option<String> {
        match self.job.get_or_insert_with(|| id.to_owned()) {
            first if first != id => Some(format!("it was enqueued twice: as {first} and as {id}")),
            _ => self.over.filter(|over| asked >= *over).map(|_| format!("{id} was over, and was claimed")),
        }
    }
}

/// What is known of one workflow.
#[derive(Debug)]
pub(crate) struct Workflow {
    pub(crate) plan: WorkflowPlan,
    pub(crate) created: Acknowledged,
    pub(crate) cancelled: Option<Acknowledged>,
    pub(crate) steps: Vec<Work>,
}

/// What is known of one schedule.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) plan: SchedulePlan,
    pub(crate) created: Acknowledged,
    /// By the slot.
    pub(crate) slots: BTreeMap<String, Work>,
}

/// Which job of which workflow or schedule.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Step(String, usize),
    Slot(String, String),
}

impl Place {
    /// The place of a job, as the job says it.
    pub(crate) fn of(job: &Value) -> Self {
        let first = job["args"][0].as_str().unwrap_or_default().to_owned();
        match job["args"][1].as_u64() {
            Some(step) => Self::Step(first, usize::try_from(step).expect("a step")),
            None => Self::Slot(first, text(&job["meta"], "cron_scheduled_at")),
        }
    }
}

/// Everything that is known.
#[derive(Debug, Default)]
pub(crate) struct RunLedger {
    pub(crate) workflows: HashMap<String, Workflow>,
    pub(crate) schedules: HashMap<String, Schedule>,
    /// The violations so far.
    pub(crate) wrong: Vec<String>,
}

impl RunLedger {
    pub(crate) fn workflow_sent(&mut self, id: &str, plan: WorkflowPlan) {
        let steps = plan.steps.iter().map(|_| Work::default()).collect();
        let workflow = Workflow { plan, created: Acknowledged::Unknown, cancelled: None, steps };
        self.workflows.insert(id.to_owned(), workflow);
    }

    pub(crate) fn schedule_sent(&mut self, plan: SchedulePlan) {
        let schedule = Schedule { plan, created: Acknowledged::Unknown, slots: BTreeMap::new() };
        self.schedules.insert(schedule.plan.name.clone(), schedule);
    }

    pub(crate) fn workflow(&mut self, id: &str) -> &mut Workflow {
        self.workflows.get_mut(id).unwrap_or_else(|| panic!("the workflow {id} was never sent"))
    }

    pub(crate) fn schedule(&mut self, name: &str) -> &mut Schedule {
        self.schedules.get_mut(name).unwrap_or_else(|| panic!("the schedule {name} was never sent"))
    }

    fn work(&mut self, place: &Place) -> &mut Work {
        match place {
            Place::Step(id, step) => &mut self.workflow(id).steps[*step],
            Place::Slot(name, slot) => self.schedule(name).slots.entry(slot.clone()).or_default(),
        }
    }

    /// A worker has a job, for which it asked then.
    pub(crate) fn fetched(&mut self, job: &Value, asked: Instant) {
        let (id, place) = (text(job, "id"), Place::of(job));
        let problems = match &place {
            Place::Step(workflow, step) => self.problems_of_step(workflow, *step, job),
            Place::Slot(name, slot) => self.problem_of_slot(name, slot).into_iter().collect(),
        };
        let problems: Vec<String> = self.work(&place).fetched(&id, asked).into_iter().chain(problems).collect();
        self.wrong.extend(problems.into_iter().map(|problem| format!("{place:?}: {problem}: {job}")));
    }

    fn problems_of_step(&mut self, id: &str, index: usize, job: &Value) -> Vec<String> {
        let workflow = self.workflow(id);
        // What was seen is stored.
        workflow.created = Acknowledged::Yes;
        let (plan, steps) = (&workflow.plan, &workflow.steps);
        let step = &plan.steps[index];
        let mut problems = Vec::new();
        for before in &step.after {
            let over = if step.when == When::Completed { steps[*before].succeeding } else { steps[*before].is_over() };
            if !over {
                problems.push(format!("it was enqueued before the end of step {before}"));
            }
        }
        if job["parent_results"] != plan.given(index) {
            problems.push(format!("it was not given {}", plan.given(index)));
        }
        if job["workflow_id"] != *id {
            problems.push("it does not name its workflow".to_owned());
        }
        problems
    }

    fn problem_of_slot(&mut self, name: &str, slot: &str) -> Option<String> {
        let schedule = self.schedule(name);
        schedule.created = Acknowledged::Yes;
        let mut before = schedule.slots.range(..slot.to_owned());
        let open = before.find(|(_, work)| schedule.plan.one_by_one && !work.is_over());
        open.map(|(before, _)| format!("it was enqueued before the end of {before}"))
    }

    /// The end of an attempt is about to be sent: a success, or a failure that no retry follows.
    pub(crate) fn ending(&mut self, place: &Place, success: bool) {
        let work = self.work(place);
        if success { work.succeeding = true } else { work.failing = true }
    }

    /// The server has acknowledged it.
    pub(crate) fn ended(&mut self, place: &Place) {
        self.work(place).over.get_or_insert_with(Instant::now);
    }

    /// A step that had failed runs again, and succeeds.
    pub(crate) fn redriven(&mut self, id: &str, index: usize) {
        let workflow = self.workflow(id);
        // A callback that was enqueued because of the failure stays.
        for step in 0..workflow.steps.len() {
            if workflow.plan.steps[step].when == When::Failed && workflow.plan.is_enqueued(step) {
                workflow.plan.steps[step].when = When::Over;
            }
        }
        workflow.plan.steps[index].doomed = false;
        let work = &mut workflow.steps[index];
        *work = Work { job: work.job.take(), ..Work::default() };
    }
}

#[cfg(test)]
mod tests;
