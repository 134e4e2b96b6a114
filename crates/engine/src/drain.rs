//! Draining the inbox: jobs that applications have left in the store in their own transactions.

use crate::events::Happening;
use crate::{Engine, EngineError, Submission};
use redrive_store::{Drained, InboxEntry};

/// Reads the job that an entry of the inbox asks for, or says why that is not possible.
pub type SubmissionDecoder<'a> = dyn Fn(&InboxEntry<'_>) -> Result<Submission, String> + Send + Sync + 'a;

impl Engine {
    /// Makes jobs of what was left in the store, at most `most`; `decode` reads each.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn drain_inbox(&self, decode: &SubmissionDecoder<'_>, most: usize) -> Result<Drained, EngineError> {
        let now = self.clock.now();
        let open = |entry: &InboxEntry<'_>| {
            let job = self.new_job(decode(entry)?, &mut self.new_ids(entry.at));
            Ok(self.stored_job(job.map_err(|error| error.to_string())?))
        };
        let drained = self.store.drain_inbox(&open, most, now).await?;
        self.chronicle.note(now, drained.jobs.iter().map(|job| (Happening::Enqueued, job)));
        self.wake(drained.jobs.iter());
        Ok(Drained { jobs: self.shown_jobs(drained.jobs), ..drained })
    }
}
