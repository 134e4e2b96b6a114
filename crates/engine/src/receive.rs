//! Taking in what applications have left in the store in their own transactions.

use crate::events::Happening;
use crate::{Engine, EngineError};
use redrive_store::{Letter, Opener, Received};

impl Engine {
    /// Makes jobs of what was left in the store, at most `most`; `open` reads each.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn receive(&self, open: &Opener<'_>, most: usize) -> Result<Received, EngineError> {
        let now = self.clock.now();
        let open = |letter: &Letter<'_>| open(letter).map(|job| self.kept_job(job));
        let received = self.store.receive(&open, most, now).await?;
        self.chronicle.note(now, received.jobs.iter().map(|job| (Happening::Enqueued, job)));
        self.ring(received.jobs.iter());
        Ok(Received { jobs: self.shown_jobs(received.jobs), ..received })
    }
}
