//! Jobs as they are stored: what the rules change, and what has to be written then.

use crate::{Job, JobId, Refusal};
use uuid::Uuid;

/// A job, and what the database stores of it besides.
#[derive(Clone, Debug)]
pub(super) struct StoredRow {
    pub(super) job: Job,
    /// The number of its last write, as it is in the database.
    pub(super) revision: i64,
    /// Whether it is stored among those that have ended.
    pub(super) ended: bool,
    pub(super) changed: bool,
    /// Whether the last failure is not written yet.
    pub(super) new_failure: bool,
}

impl StoredRow {
    /// A job of another store, with all its failures.
    pub(super) fn arrived(job: Job) -> Self {
        Self { ended: job.state.is_terminal(), job, revision: 0, changed: true, new_failure: true }
    }

    /// Applies a rule; the job stays as it is where the rule refuses.
    pub(super) fn change<T: AsRef<Job>>(&mut self, rule: impl FnOnce(Job) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let answer = rule(self.job.clone())?;
        let changed = answer.as_ref();
        if *changed != self.job {
            // No two failures of a job are equal: they differ in generation or attempt.
            self.new_failure |= changed.failures.last() != self.job.failures.last();
            self.changed = true;
            self.job.clone_from(changed);
        }
        Ok(answer)
    }
}

/// The ids of jobs as the database takes them.
pub(super) fn uuids<'a>(ids: impl IntoIterator<Item = &'a JobId>) -> Vec<Uuid> {
    ids.into_iter().map(|id| Uuid::from_bytes(id.to_bytes())).collect()
}
