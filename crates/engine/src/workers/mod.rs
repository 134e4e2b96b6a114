//! Workers: who has called lately, what they say about themselves, and what operators tell them.
//!
//! This is in memory, of this process: it is for people who watch and for graceful shutdown. Who may run a job is
//! decided by leases alone.

mod runs;

pub use runs::{HeldRuns, WorkerRefusal};

use crate::{Engine, other_events};
use redrive_policy::{Moment, Span};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many workers are known. With more, the one that was not heard of for the longest time is forgotten.
const MOST_WORKERS: usize = 5_000;
/// After how long without a fetch or a heartbeat a worker counts as stale.
pub const STALE_AFTER: Span = Span::from_secs(60);
/// After how long it is forgotten.
const FORGOTTEN_AFTER: Span = Span::from_secs(3_600);

/// What a worker does, or is told to do; each of them comes after the ones before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerState {
    /// It fetches jobs and runs them.
    #[default]
    Running,
    /// It fetches no more, and goes on with the jobs that it has.
    Quiet,
    /// It fetches no more, and ends when its jobs have ended.
    Drain,
    /// It ends within its grace period.
    Terminate,
}

impl WorkerState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Running, Self::Quiet, Self::Drain, Self::Terminate];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Quiet => "quiet",
            Self::Drain => "drain",
            Self::Terminate => "terminate",
        }
    }
}

/// What a worker says about itself. What is absent stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerReport {
    /// What it does.
    pub state: Option<WorkerState>,
    /// The machine that it runs on.
    pub hostname: Option<Arc<str>>,
    /// Its process there.
    pub pid: Option<u64>,
    /// The queues that it fetches from.
    pub queues: Option<Vec<Arc<str>>>,
    /// How many jobs it runs at once.
    pub concurrency: Option<u64>,
    /// Words for people.
    pub labels: Option<Vec<Arc<str>>>,
    /// The version of its program.
    pub version: Option<Arc<str>>,
    /// When it started, by the wall clock.
    pub started: Option<Moment>,
}

/// A worker, as far as this process knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Worker {
    /// Its name.
    pub id: Arc<str>,
    /// What it last said about itself.
    pub report: WorkerReport,
    /// What an operator tells it to do, if anything.
    pub directive: Option<WorkerState>,
    /// When it was first heard of.
    pub first_seen: Moment,
    /// When it was last heard of.
    pub last_seen: Moment,
    /// When its last heartbeat came.
    pub last_heartbeat: Option<Moment>,
}

impl Worker {
    fn new(id: Arc<str>, now: Moment) -> Self {
        let report = WorkerReport::default();
        Self { id, report, directive: None, first_seen: now, last_seen: now, last_heartbeat: None }
    }

    /// A worker of which nothing but the last sign of life is known: it talks to another node, or did so before this
    /// process started.
    #[must_use]
    pub fn elsewhere(id: Arc<str>, alive: Moment) -> Self {
        Self::new(id, alive)
    }

    /// What it does, by its own word.
    #[must_use]
    pub fn state(&self) -> WorkerState {
        self.report.state.unwrap_or_default()
    }

    /// What it should do: what it does, or what an operator tells it, whichever goes further.
    #[must_use]
    pub fn wanted(&self) -> WorkerState {
        self.state().max(self.directive.unwrap_or_default())
    }

    /// Whether a report is of another process that goes by the same name. What the one before was told is not for it.
    fn is_other_process(&self, report: &WorkerReport) -> bool {
        let differs = |known: Option<i64>, now: Option<i64>| known.is_some() && now.is_some() && known != now;
        let pid = |report: &WorkerReport| report.pid.map(u64::cast_signed);
        let started = |report: &WorkerReport| report.started.map(Moment::micros);
        differs(pid(&self.report), pid(report)) || differs(started(&self.report), started(report))
    }

    /// Whether it was not heard of for so long that it may be gone.
    #[must_use]
    pub fn is_stale(&self, now: Moment) -> bool {
        now.since(self.last_seen) > STALE_AFTER
    }
}

/// The workers that are known.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    known: Mutex<HashMap<Arc<str>, Worker>>,
    /// Changes whenever a worker may not fetch any more.
    held: watch::Sender<()>,
}

impl Workers {
    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Worker>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known of a worker that is heard of now. Answers what it should do.
    fn note(&self, id: &str, now: Moment, change: impl FnOnce(&mut Worker)) -> WorkerState {
        let mut known = self.known();
        if !known.contains_key(id) {
            if known.len() >= MOST_WORKERS {
                let longest = known.values().min_by_key(|worker| worker.last_seen).map(|worker| Arc::clone(&worker.id));
                longest.and_then(|id| known.remove(&id));
            }
            let id: Arc<str> = Arc::from(id);
            known.insert(Arc::clone(&id), Worker::new(id, now));
        }
        let Some(worker) = known.get_mut(id) else { return WorkerState::Running };
        worker.last_seen = worker.last_seen.max(now);
        let before = worker.wanted();
        change(worker);
        let wanted = worker.wanted();
        self.announce(before, wanted);
        wanted
    }

    fn announce(&self, before: WorkerState, wanted: WorkerState) {
        if before == WorkerState::Running && wanted > before {
            self.held.send_replace(());
        }
    }

    fn wanted(&self, id: &str) -> WorkerState {
        self.known().get(id).map_or(WorkerState::Running, Worker::wanted)
    }
}

impl Engine {
    /// A worker asks for jobs of these queues. Answers what it should do: only one that is running gets any.
    pub fn note_fetch(&self, id: &str, queues: &[Arc<str>]) -> WorkerState {
        let now = self.clock.now();
        self.workers.note(id, now, |worker| {
            // A worker that drains goes on with its heartbeats. One that does not, and fetches, has started anew.
            if worker.last_heartbeat.is_none_or(|at| now.since(at) > STALE_AFTER) {
                worker.report.state = None;
            }
            if worker.report.queues.as_deref() != Some(queues) {
                worker.report.queues = Some(queues.to_vec());
            }
        })
    }

    /// A worker sends a heartbeat. Answers what it should do.
    pub fn note_heartbeat(&self, id: &str, report: WorkerReport) -> WorkerState {
        let (now, mut told) = (self.clock.now(), None);
        let wanted = self.workers.note(id, now, |worker| {
            if worker.is_other_process(&report) {
                *worker = Worker::new(Arc::clone(&worker.id), now);
            }
            let before = worker.last_heartbeat.map(|_| worker.state());
            worker.last_heartbeat = Some(now);
            let known = &mut worker.report;
            let WorkerReport { state, hostname, pid, queues, concurrency, labels, version, started } = report;
            known.state = state.or(known.state);
            known.hostname = hostname.or_else(|| known.hostname.take());
            known.pid = pid.or(known.pid);
            known.queues = queues.or_else(|| known.queues.take());
            known.concurrency = concurrency.or(known.concurrency);
            known.labels = labels.or_else(|| known.labels.take());
            known.version = version.or_else(|| known.version.take());
            known.started = started.or(known.started);
            told = other_events::of_change(before, worker);
        });
        if told.is_some() {
            self.tell(told);
        }
        wanted
    }

    /// Completes once a worker may not fetch any more. It may never do so.
    pub async fn worker_held(self: Arc<Self>, id: Arc<str>) {
        let mut held = self.workers.held.subscribe();
        while self.workers.wanted(&id) == WorkerState::Running {
            // The sender lives as long as the engine.
            let _ = held.changed().await;
        }
    }

    /// Tells a worker what to do, with its next heartbeat and its next fetch; `None` cancels what it was told.
    /// Answers the worker; `None` where this process knows none of this name.
    pub fn direct_worker(&self, id: &str, directive: Option<WorkerState>) -> Option<Worker> {
        let mut known = self.workers.known();
        let worker = known.get_mut(id)?;
        let before = worker.wanted();
        worker.directive = directive;
        self.workers.announce(before, worker.wanted());
        Some(self.shown_worker(worker.clone()))
    }

    /// One worker, if this process knows it.
    #[must_use]
    pub fn worker(&self, id: &str) -> Option<Worker> {
        let worker = self.workers.known().get(id).cloned();
        worker.map(|worker| self.shown_worker(worker))
    }

    /// The workers that this process knows, by name. Those that were not heard of for an hour are forgotten.
    #[must_use]
    pub fn workers(&self) -> Vec<Worker> {
        let now = self.clock.now();
        let mut known = self.workers.known();
        known.retain(|_, worker| now.since(worker.last_seen) < FORGOTTEN_AFTER);
        let mut workers: Vec<Worker> = known.values().map(|worker| self.shown_worker(worker.clone())).collect();
        workers.sort_by(|one, other| one.id.cmp(&other.id));
        workers
    }

    fn shown_worker(&self, mut worker: Worker) -> Worker {
        worker.first_seen = self.shown(worker.first_seen);
        worker.last_seen = self.shown(worker.last_seen);
        worker.last_heartbeat = worker.last_heartbeat.map(|at| self.shown(at));
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_bounded_and_the_longest_unheard_leaves() {
        let workers = Workers::default();
        let at = |second: usize| Moment::from_micros(second as i64 * 1_000_000);
        for number in 0..MOST_WORKERS {
            workers.note(&format!("w{number}"), at(number), |_| {});
        }
        workers.note("w0", at(MOST_WORKERS), |_| {});
        workers.note("new", at(MOST_WORKERS), |_| {});
        let known = workers.known();
        assert_eq!(known.len(), MOST_WORKERS);
        assert!(known.contains_key("w0") && known.contains_key("new") && !known.contains_key("w1"));
    }
}
