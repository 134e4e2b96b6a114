//! A job in memory, in as few bytes as it needs: most jobs are new.

use super::shared_spec::SharedSpec;
use super::uniques;
use crate::codec::row::Row;
use crate::job::{FIXED_BYTES, failure_bytes, payload_bytes};
use crate::standstill::Grace;
use crate::{
    Blob, EventKind, FailedAttempt, Job, JobId, KEPT_FAILURES, KEPT_REVISIONS, Parent, Revision, Spec, State, Unique,
};
use redrive_policy::Moment;
use std::sync::Arc;

/// A job as it is held in memory.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: JobId,
    pub(super) created: Moment,
    pub(super) shared_spec: Arc<SharedSpec>,
    pub(super) body: Blob,
    pub(super) expires: Option<Moment>,
    record: Record,
}

/// What has happened to a job.
#[derive(Debug)]
enum Record {
    /// Nothing: it is available since, or due at, this time, or pending.
    Fresh(State, Moment),
    Past(Box<Past>),
}

#[derive(Debug)]
struct Past {
    row: Row,
    failures: Vec<FailedAttempt>,
    revisions: Vec<Revision>,
}

/// Under which keys a job stands in the indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexKeys {
    pub(super) queue_index: u32,
    pub(super) lane: u64,
    pub(super) priority: i32,
    pub(super) state: State,
    pub(super) dead: bool,
    /// Since when it waits for a worker.
    pub(super) ready: Option<Moment>,
    pub(super) due: Option<Moment>,
    pub(super) expires: Option<Moment>,
    /// When the run is overdue, with all that it is granted.
    pub(super) overdue: Option<Moment>,
    pub(super) finished: Option<Moment>,
}

/// What a job's records take beside its texts, roughly.
const RECORD_BYTES: usize = 64;

impl Slot {
    /// A job without failures and revisions.
    pub(super) fn new(
        id: JobId,
        created: Moment,
        shared_spec: Arc<SharedSpec>,
        body: Blob,
        expires: Option<Moment>,
        row: Row,
    ) -> Self {
        Self { id, created, shared_spec, body, expires, record: Record::of(created, row, Vec::new(), Vec::new()) }
    }

    /// A job with this shared specification.
    pub(super) fn of(job: &Job, shared_spec: Arc<SharedSpec>) -> Self {
        let (created, spec) = (job.times.created, &job.spec);
        let record = Record::of(created, Row::of(job), job.failures.clone(), job.revisions.clone());
        Self { id: job.id, created, shared_spec, body: Arc::clone(&spec.body), expires: spec.expires, record }
    }

    pub(super) fn job(&self) -> Job {
        let (row, failures, revisions) = match &self.record {
            Record::Fresh(state, at) => (fresh(self.created, *state, *at), Vec::new(), Vec::new()),
            Record::Past(past) => (past.row.clone(), past.failures.clone(), past.revisions.clone()),
        };
        row.into_job(self.id, self.spec(), self.created, failures, revisions)
    }

    /// Its specification.
    pub(super) fn spec(&self) -> Arc<Spec> {
        Arc::new(self.shared_spec.spec(&self.body, self.expires))
    }

    pub(super) fn places(&self, grace: &Grace) -> IndexKeys {
        let state = self.state();
        let row = self.row();
        let lease = row.and_then(|row| row.lease.as_ref());
        let (available, due) = match &self.record {
            Record::Fresh(_, at) => (Some(*at), Some(*at)),
            Record::Past(past) => (past.row.available, past.row.due),
        };
        IndexKeys {
            queue_index: self.shared_spec.queue_index,
            lane: self.shared_spec.lane_number(),
            priority: self.shared_spec.priority,
            state,
            dead: self.is_dead(),
            ready: available.filter(|_| state == State::Available),
            due: due.filter(|_| state.after(EventKind::Due).is_some()),
            expires: self.expires.filter(|_| state.after(EventKind::Expired).is_some()),
            overdue: lease.map(|lease| grace.overdue(lease)),
            finished: row.and_then(|row| row.finished).filter(|_| state.is_terminal()),
        }
    }

    pub(super) fn state(&self) -> State {
        match &self.record {
            Record::Fresh(state, _) => *state,
            Record::Past(past) => past.row.state,
        }
    }

    /// The run that started it.
    pub(super) fn parent(&self) -> Option<Parent> {
        self.row().and_then(|row| row.parent.as_deref().copied())
    }

    /// What it must be unique in.
    pub(super) fn unique(&self) -> Option<&Arc<Unique>> {
        self.row()?.unique.as_ref()
    }

    /// Its entry in the index of jobs that must be unique.
    pub(super) fn unique_entry(&self) -> Option<uniques::Entry> {
        Some((self.unique()?.key, self.state(), self.created, self.id))
    }

    /// When it may run, as it is stored.
    pub(super) fn due(&self) -> Option<Moment> {
        match &self.record {
            Record::Fresh(State::Scheduled, due) => Some(*due),
            Record::Fresh(..) => None,
            Record::Past(past) => past.row.due,
        }
    }

    /// Whether it is a dead letter.
    pub(super) fn is_dead(&self) -> bool {
        self.state() == State::Discarded && self.row().is_some_and(|row| row.dead)
    }

    /// What has happened to it; nothing so far is `None`.
    pub(super) fn row(&self) -> Option<&Row> {
        match &self.record {
            Record::Fresh(..) => None,
            Record::Past(past) => Some(&past.row),
        }
    }

    pub(super) fn failures(&self) -> &[FailedAttempt] {
        match &self.record {
            Record::Fresh(..) => &[],
            Record::Past(past) => &past.failures,
        }
    }

    pub(super) fn revisions(&self) -> &[Revision] {
        match &self.record {
            Record::Fresh(..) => &[],
            Record::Past(past) => &past.revisions,
        }
    }

    pub(super) fn set_row(&mut self, row: Row) {
        match &mut self.record {
            Record::Past(past) => past.row = row,
            fresh @ Record::Fresh(..) => *fresh = Record::of(self.created, row, Vec::new(), Vec::new()),
        }
    }

    /// Adds a failed attempt, unless this one or a later one is known already. Runs fail in the
    /// order of their generations and attempts, each once.
    pub(super) fn add_failure(&mut self, run: FailedAttempt) {
        let Some(past) = self.past() else { return };
        if past.failures.last().is_none_or(|last| order(last) < order(&run)) {
            past.failures.push(run);
            let surplus = past.failures.len().saturating_sub(KEPT_FAILURES);
            past.failures.drain(..surplus);
        }
    }

    /// Adds what a redrive replaced, unless this or something later is known already. A generation is
    /// followed by at most one redrive.
    pub(super) fn add_revision(&mut self, revision: Revision) {
        let Some(past) = self.past() else { return };
        if past.revisions.last().is_none_or(|last| last.generation < revision.generation) {
            past.revisions.push(revision);
            let surplus = past.revisions.len().saturating_sub(KEPT_REVISIONS);
            past.revisions.drain(..surplus);
        }
    }

    /// Its past, which it has from now on.
    fn past(&mut self) -> Option<&mut Past> {
        if let Record::Fresh(state, at) = self.record {
            let row = fresh(self.created, state, at);
            self.record = Record::Past(Box::new(Past { row, failures: Vec::new(), revisions: Vec::new() }));
        }
        match &mut self.record {
            Record::Past(past) => Some(past),
            Record::Fresh(..) => None,
        }
    }

    /// As [`Job::bytes`], with or without what lists can leave out.
    pub(super) fn bytes(&self, payloads: bool) -> usize {
        let result = self.row().and_then(|row| row.result.as_ref());
        let payload = if payloads { payload_bytes(&self.body, result, self.revisions()) } else { 0 };
        FIXED_BYTES + failure_bytes(self.failures()) + payload
    }

    /// About how many bytes its records take.
    pub(super) fn weight(&self) -> usize {
        let past = match &self.record {
            Record::Fresh(..) => 0,
            Record::Past(past) => {
                let errors: usize = past.failures.iter().map(|run| run.error.len() + RECORD_BYTES).sum();
                let bodies: usize = past.revisions.iter().map(|old| old.body.len() + RECORD_BYTES).sum();
                errors + bodies + past.row.result.as_ref().map_or(0, |result| result.len()) + RECORD_BYTES
            }
        };
        self.body.len() + RECORD_BYTES + past
    }
}

/// In which order runs fail.
pub(super) fn order(run: &FailedAttempt) -> (u32, u32) {
    (run.generation, run.attempt)
}

fn fresh(created: Moment, state: State, at: Moment) -> Row {
    let (available, due) = match state {
        State::Available => (Some(at), None),
        State::Scheduled => (None, Some(at)),
        _ => (None, None),
    };
    Row::fresh(created, state, available, due)
}

impl Record {
    fn of(created: Moment, row: Row, failures: Vec<FailedAttempt>, revisions: Vec<Revision>) -> Self {
        let at = match row.state {
            State::Available => row.available,
            State::Scheduled => row.due,
            State::Pending => Some(created),
            _ => None,
        };
        let nothing = failures.is_empty() && revisions.is_empty();
        match at {
            Some(at) if nothing && row == fresh(created, row.state, at) => Self::Fresh(row.state, at),
            _ => Self::Past(Box::new(Past { row, failures, revisions })),
        }
    }
}
