//! Taking in what applications have left in the store in their own transactions.

use crate::events::Happening;
use crate::{Engine, EngineError};
use redrive_store::{Decoder, Drained, InboxEntry};

impl Engine {
    /// Makes jobs of what was left in the store, at most `most`; `open` reads each.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn drain_inbox(&self, open: &Decoder<'_>, most: usize) -> Result<Drained, EngineError> {
        let now = self.clock.now();
        let open = |entry: &InboxEntry<'_>| open(entry).map(|job| self.stored_job(job));
        let drained = self.store.drain_inbox(&open, most, now).await?;
        self.chronicle.note(now, drained.jobs.iter().map(|job| (Happening::Enqueued, job)));
        self.wake(drained.jobs.iter());
        Ok(Drained { jobs: self.shown_jobs(drained.jobs), ..drained })
    }
}
