//! Jobs as they are stored: what the rules change, and what has to be written then.

use super::value::Tid;
use crate::{Job, JobId, Refusal, State, Transition};
use uuid::Uuid;

/// Where a job is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Among those that wait, in this row, which stays there while it is locked.
    Live(Tid),
    /// In this claim, at this place from 0.
    Claim(i64, usize),
    /// Among those that have ended, in this row, which stays there while it is locked.
    Ended(Tid),
}

/// A job, and what the database stores of it besides.
#[derive(Clone, Debug)]
pub(super) struct StoredRow {
    /// Boxed, because rows go from one collection to the next, and a job is large.
    pub(super) job: Box<Job>,
    /// What leads from its id to its row: many jobs that came one after the other have the same.
    pub(super) source: i64,
    pub(super) place: Place,
    /// How it is counted in the database.
    pub(super) was: i16,
    pub(super) changed: bool,
}

/// Dead letters are counted as a state of their own.
const DEAD: i16 = 8;

/// How a job is counted: by its state, which is its index in [`State::ALL`], or as a dead letter.
pub(super) const fn counted(job: &Job) -> i16 {
    if job.dead { DEAD } else { job.state as i16 }
}

impl StoredRow {
    pub(super) fn new(job: Job, source: i64, place: Place) -> Self {
        Self { was: counted(&job), job: Box::new(job), source, place, changed: false }
    }

    /// A job of another store.
    pub(super) fn arrived(job: Job, source: i64) -> Self {
        let place = match job.state {
            // The number of its claim is not known yet.
            State::Active => Place::Claim(0, 0),
            state if state.is_terminal() => Place::Ended(Tid::default()),
            _ => Place::Live(Tid::default()),
        };
        Self::new(job, source, place)
    }

    /// The row in which it waits, or in which it is among those that have ended.
    pub(super) fn tid(&self) -> Option<Tid> {
        match self.place {
            Place::Live(tid) | Place::Ended(tid) => Some(tid),
            Place::Claim(..) => None,
        }
    }

    /// Applies a rule; the job stays as it is where the rule refuses.
    pub(super) fn change<T: Changed>(&mut self, rule: impl FnOnce(Job) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let answer = rule(Job::clone(&self.job))?;
        if let Some(changed) = answer.changed() {
            self.changed = true;
            self.job.as_mut().clone_from(changed);
        }
        Ok(answer)
    }

    /// As [`StoredRow::change`], for callers that need no job that the rule refuses: the job is copied once, not twice.
    pub(super) fn changed_by<T: Changed>(
        mut self,
        rule: impl FnOnce(Job) -> Result<T, Refusal>,
    ) -> Result<(T, Self), Refusal> {
        let answer = rule(*self.job)?;
        self.changed |= answer.changed().is_some();
        *self.job = answer.job().clone();
        Ok((answer, self))
    }
}

/// What a rule answers.
pub(super) trait Changed {
    /// The job as it is now.
    fn job(&self) -> &Job;

    /// The job as it becomes, where something has happened to it.
    fn changed(&self) -> Option<&Job> {
        Some(self.job())
    }
}

impl Changed for Job {
    fn job(&self) -> &Job {
        self
    }
}

impl Changed for Transition {
    fn job(&self) -> &Job {
        &self.job
    }
}

/// The ids of jobs as the database takes them.
pub(super) fn uuids<'a>(ids: impl IntoIterator<Item = &'a JobId>) -> Vec<Uuid> {
    ids.into_iter().map(|id| Uuid::from_bytes(id.to_bytes())).collect()
}
