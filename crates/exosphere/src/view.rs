//! The states of a run, as they are shown. What a job knows is taken from the job, as long as it is stored.

use crate::run::{Executed, RunState, Status, message};
use crate::state_id::StateId;
use redrive_ojs::body;
use redrive_policy::Moment;
use redrive_store::{Job, JobId, Run, State};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The names of all statuses.
pub const STATUSES: [&str; 8] =
    ["CREATED", "QUEUED", "EXECUTED", "NEXT_CREATED_ERROR", "RETRY_CREATED", "SUCCESS", "PRUNED", "ERRORED"];

/// A state as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct StateView {
    /// Its id.
    pub id: StateId,
    /// Its position among the states of the run.
    pub row: u32,
    /// The registered node.
    pub node_name: String,
    /// Its name in the graph.
    pub identifier: String,
    /// How far it is, as one of [`STATUSES`].
    pub status: &'static str,
    /// What went wrong.
    pub error: Option<String>,
    /// When it was created.
    pub created: Moment,
    /// When it last changed, as far as that is stored.
    pub updated: Moment,
    /// From when it may run, where it waits for that.
    pub due: Option<Moment>,
    /// Since when a runtime has it.
    pub taken: Option<Moment>,
}

/// The states of a run in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Those that succeeded or ended their branch.
    pub success: usize,
    /// Those that go on.
    pub pending: usize,
    /// Those that failed.
    pub errored: usize,
    /// Those that failed and were retried.
    pub retried: usize,
}

impl Totals {
    /// The numbers of a run, with the jobs of those of its states that go on.
    #[must_use]
    pub fn of(run: &Run, state: &RunState, jobs: &HashMap<JobId, Job>) -> Self {
        let mut totals = Self::default();
        for (index, row) in (0..).zip(&state.rows) {
            match row.status {
                Status::Success | Status::Pruned => totals.success += 1,
                Status::Started | Status::Executed => totals.pending += 1,
                Status::Errored | Status::NextCreatedError => totals.errored += 1,
                Status::Retried => totals.retried += 1,
            }
            if state.has_job(index) {
                totals.retried += current(run, state, jobs, index).retry as usize;
            }
        }
        totals
    }

    /// All of them.
    #[must_use]
    pub const fn all(&self) -> usize {
        self.success + self.pending + self.errored + self.retried
    }

    /// How far the run is.
    #[must_use]
    pub const fn status(&self, run: &Run) -> &'static str {
        match (&run.end, self.pending, self.errored) {
            (None, 1.., _) => "PENDING",
            // A run that exceeded a limit ended with states that go on.
            (Some(_), 1.., _) | (_, _, 1..) => "FAILED",
            _ if self.all() == 0 => "FAILED",
            _ => "SUCCESS",
        }
    }
}

/// The states of a run, each behind those that were retried before it.
#[must_use]
pub fn states_of(run: &Run, state: &RunState, jobs: &HashMap<JobId, Job>) -> Vec<StateView> {
    let mut views = Vec::with_capacity(state.rows.len());
    for (index, row) in (0..).zip(&state.rows) {
        let node = &state.template.nodes[row.node as usize];
        let (id, job) = (current(run, state, jobs, index), jobs.get(&state.job_id(run, index)));
        let created = Moment::from_micros(row.created_us);
        let view = StateView {
            id,
            row: index,
            node_name: node.node_name.clone(),
            identifier: node.identifier.clone(),
            status: status(row.status, job),
            error: row.error.clone(),
            created,
            updated: job.map_or(created, changed),
            due: job.filter(|job| matches!(job.state, State::Retryable | State::Scheduled)).and_then(|job| job.due),
            taken: job.filter(|job| job.state == State::Active).and_then(|job| job.times.started),
        };
        if state.has_job(index) {
            views.extend((0..id.retry).map(|retry| retried(&view, retry, job)));
        }
        let since = job.filter(|_| state.has_job(index)).and_then(|job| failed_at(job, id.retry.checked_sub(1)?));
        views.push(StateView { created: since.unwrap_or(created), ..view });
    }
    views
}

impl StateView {
    /// The states that it comes after, each with the identifier of its node; the first one first.
    #[must_use]
    pub fn parents(&self, run: &Run, state: &RunState, jobs: &HashMap<JobId, Job>) -> Vec<(String, StateId)> {
        let name = |row: u32| state.template.nodes[state.row(row).node as usize].identifier.clone();
        let above: Vec<u32> = state.above(self.row).collect();
        above.into_iter().rev().map(|row| (name(row), current(run, state, jobs, row))).collect()
    }

    /// What it was given, and what it returned.
    #[must_use]
    pub fn values(&self, state: &RunState, job: Option<&Job>) -> (Value, Map<String, Value>) {
        let args: Vec<Value> =
            job.and_then(|job| serde_json::from_str(body::args(&job.spec.body)).ok()).unwrap_or_default();
        let inputs = args.into_iter().next().unwrap_or_else(|| Map::new().into());
        let result = job.and_then(|job| job.result.as_ref()).map(|result| Executed::read(result).outputs);
        let number = self.id.output.unwrap_or(0) as usize;
        let returned = result.and_then(|outputs| outputs.into_iter().nth(number));
        let is_current = self.status != "RETRY_CREATED";
        let outputs = returned.unwrap_or_else(|| state.row(self.row).outputs.clone());
        (inputs, if is_current { outputs } else { Map::new() })
    }
}

/// The id of a state as it is now.
fn current(run: &Run, state: &RunState, jobs: &HashMap<JobId, Job>, index: u32) -> StateId {
    let (row, id) = (state.row(index), state.job_id(run, index));
    let own = match jobs.get(&id) {
        Some(job) => StateId::of(job),
        None => StateId { job: id, generation: 0, retry: state.row(state.row_of_job(index)).retries, output: None },
    };
    StateId { output: row.copy_of.map(|(_, number)| number), ..own }
}

fn status(status: Status, job: Option<&Job>) -> &'static str {
    match status {
        Status::Started if job.is_some_and(|job| job.state == State::Active) => "QUEUED",
        Status::Started => "CREATED",
        Status::Executed => "EXECUTED",
        Status::Success => "SUCCESS",
        Status::Errored => "ERRORED",
        Status::Pruned => "PRUNED",
        Status::NextCreatedError => "NEXT_CREATED_ERROR",
        Status::Retried => "RETRY_CREATED",
    }
}

/// A state that failed, and that another one came after.
fn retried(last: &StateView, retry: u32, job: Option<&Job>) -> StateView {
    let failure = job.and_then(|job| {
        job.failures.iter().find(|failure| failure.generation == job.generation && failure.attempt == retry + 1)
    });
    let created = retry.checked_sub(1).and_then(|before| failed_at(job?, before)).unwrap_or(last.created);
    StateView {
        id: StateId { retry, ..last.id },
        status: "RETRY_CREATED",
        error: failure.map(|failure| message(&failure.error)),
        created,
        updated: failure.map_or(created, |failure| failure.at),
        due: None,
        taken: None,
        ..last.clone()
    }
}

/// When a run of a job failed.
fn failed_at(job: &Job, retry: u32) -> Option<Moment> {
    let failures = job.failures.iter().filter(|failure| failure.generation == job.generation);
    failures.into_iter().find(|failure| failure.attempt == retry + 1).map(|failure| failure.at)
}

/// When something last happened to a job, as far as that is stored.
fn changed(job: &Job) -> Moment {
    let times = &job.times;
    [times.finished, times.started, times.available].into_iter().flatten().max().unwrap_or(times.created)
}
