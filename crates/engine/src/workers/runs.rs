//! What workers run, by the leases in the store, whichever node they talk to; and what happens to the runs of one
//! that is gone.

use super::Worker;
use crate::{Ending, Engine, EngineError, FailureReport, other_events};
use redrive_policy::{Moment, Signal};
use redrive_store::{Filter, Job, LeaseRef, Page, State, Token, end_step};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many active jobs are read at once.
const STEP: usize = 500;

/// What workers run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct HeldRuns {
    /// How many jobs each worker has, and its last sign of life by their leases.
    pub by_worker: BTreeMap<Arc<str>, (usize, Moment)>,
    /// Whether there are more active jobs than were looked at.
    pub is_cut: bool,
}

/// Why a worker is not removed.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerRefusal {
    /// This process knows no worker of this name, and no lease has it.
    NotFound,
    /// It was heard of lately.
    Alive(Box<Worker>),
    /// The store did not answer.
    Engine(EngineError),
}

impl From<EngineError> for WorkerRefusal {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Engine {
    /// Calls `each` with the active jobs, without their bodies, at most `most` of them. Answers whether there are more.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn for_each_active(&self, most: usize, mut each: impl FnMut(&Job)) -> Result<bool, EngineError> {
        let filter = Filter { state: Some(State::Active), ..Filter::default() };
        let mut page = Page { payloads: false, ..Page::new(0, STEP.min(most)) };
        let mut looked = 0;
        loop {
            let listed = self.list(filter.clone(), page).await?;
            looked += listed.jobs.len();
            listed.jobs.iter().for_each(&mut each);
            let Some(next) = listed.next else { return Ok(false) };
            if looked >= most {
                return Ok(true);
            }
            page = next;
            end_step().await;
        }
    }

    /// What workers run, by at most `most` leases.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn held_runs(&self, most: usize) -> Result<HeldRuns, EngineError> {
        let mut held = HeldRuns::default();
        let each = |job: &Job| {
            if let Some(lease) = &job.lease {
                let (count, alive) = held.by_worker.entry(Arc::clone(&lease.worker)).or_default();
                *count += 1;
                *alive = (*alive).max(lease.alive);
            }
        };
        let is_cut = self.throttled(self.for_each_active(most, each)).await?;
        held.is_cut = is_cut;
        Ok(held)
    }

    /// Forgets a worker that is stale, and ends its runs as failed: the retry policies of its jobs decide what happens
    /// to them. Answers how many runs that were.
    ///
    /// # Errors
    /// The worker is not known, it is alive, or the store did not answer.
    pub async fn remove_worker(&self, id: &str) -> Result<usize, WorkerRefusal> {
        let known = self.worker(id);
        let mut runs: Vec<LeaseRef> = Vec::new();
        let mut alive = Moment::default();
        let each = |job: &Job| {
            if let Some(lease) = job.lease.as_ref().filter(|lease| *lease.worker == *id) {
                alive = alive.max(lease.alive);
                runs.push(LeaseRef { id: job.id, token: Token::Lease(lease.token) });
            }
        };
        self.throttled(self.for_each_active(usize::MAX, each)).await?;
        if known.is_none() && runs.is_empty() {
            return Err(WorkerRefusal::NotFound);
        }
        let mut worker = known.unwrap_or_else(|| Worker::new(Arc::from(id), alive));
        worker.last_seen = worker.last_seen.max(alive);
        if !worker.is_stale(self.now()) {
            return Err(WorkerRefusal::Alive(Box::new(worker)));
        }
        let mut ended = 0;
        for step in runs.chunks(STEP) {
            let endings = step.iter().map(|run| (run.clone(), Ending::Failed(gone(id)))).collect();
            ended += self.settle(endings).await?.iter().flatten().count();
        }
        self.workers.known().remove(id);
        self.tell([other_events::worker_removed(&worker, ended)]);
        Ok(ended)
    }
}

/// The failure of a run whose worker is gone.
fn gone(worker: &str) -> FailureReport {
    let error = json!({
        "type": "worker_removed", "code": "timeout",
        "message": format!("worker \"{worker}\" was not heard of any more, and an operator removed it"),
        "details": { "timeout_kind": "stalled", "worker_id": worker },
    });
    FailureReport {
        types: vec!["worker_removed".to_owned()],
        code: "timeout".to_owned(),
        signal: Signal::Overdue,
        ..FailureReport::new(Arc::from(error.to_string().into_bytes()))
    }
}
