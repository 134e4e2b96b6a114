//! Sweeping: due jobs become available, overdue runs end, ended jobs leave.

use crate::{Engine, EngineError, decide};
use redrive_policy::{Moment, Span};
use redrive_store::Standstill;
use std::sync::Arc;

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// Jobs that became ready, or expired.
    pub promoted: usize,
    /// Runs that were overdue.
    pub reclaimed: usize,
}

/// Whether a step of a sweep has done everything that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backlog {
    /// There may be more.
    Left,
    /// There was no more.
    Done,
}

impl Engine {
    /// Does everything that is due by now.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn sweep(&self) -> Result<Swept, EngineError> {
        let mut swept = Swept::default();
        while self.sweep_once(&mut swept).await? == Backlog::Left {}
        Ok(swept)
    }

    /// One step of a sweep: as many jobs as the operator allows in a single step of the store. Whatever else has to
    /// happen goes on between the steps.
    ///
    /// # Errors
    /// The store did not answer.
    pub(crate) async fn sweep_once(&self, swept: &mut Swept) -> Result<Backlog, EngineError> {
        let now = self.clock.now();
        let step = self.sweep_step();
        let decide = |job: &_, why| decide::overdue(job, why, now, self.randomness.draw());
        let reclaimed = self.store.reclaim(&decide, step, now).await?;
        let promoted = match self.is_under_maintenance() {
            true => Vec::new(),
            false => self.store.promote(&self.admission.held(), step, now).await?,
        };
        self.admission.open_windows(now);
        self.publish(reclaimed.iter().chain(&promoted));
        swept.reclaimed += reclaimed.len();
        swept.promoted += promoted.len();
        let whole_step = promoted.len() >= step || reclaimed.len() >= step;
        Ok(if whole_step { Backlog::Left } else { Backlog::Done })
    }

    /// Records that the server stood still for so long, until now, and could not hear its workers. Their runs
    /// are not ended before they have had time to be heard.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn stood_still(&self, length: Span) -> Result<(), EngineError> {
        Ok(self.store.stood_still(Standstill { ended: self.clock.now(), length }).await?)
    }

    /// Removes jobs that ended long enough ago; answers how many.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn prune(&self) -> Result<usize, EngineError> {
        let mut pruned = 0;
        loop {
            let step = self.sweep_step();
            let count = self.store.prune(self.settings.retention, step, self.clock.now()).await?;
            pruned += count;
            if count < step {
                return Ok(pruned);
            }
        }
    }

    /// Removes queues that have no jobs, are not paused, and are older than finished jobs get; answers their names.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn prune_queues(&self) -> Result<Vec<Arc<str>>, EngineError> {
        Ok(self.store.prune_queues(self.settings.retention.finished, self.now()).await?)
    }

    /// Writes a mark to the store that changes nothing. The answer says that a write is flushed at this moment.
    ///
    /// # Errors
    /// Nothing can be written.
    pub async fn probe(&self) -> Result<(), EngineError> {
        Ok(self.store.probe(self.clock.now()).await?)
    }

    /// At least one: a step that touches nothing would be followed by another for ever.
    fn sweep_step(&self) -> usize {
        self.settings.sweep_step.max(1)
    }

    /// When the next sweep has something to do, by the engine's own clock; absent where nothing waits. What is held
    /// back gives a sweep nothing to do.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn next_sweep(&self) -> Result<Option<Moment>, EngineError> {
        Ok(self.store.next_wake(&self.admission.held()).await?)
    }
}
