//! Draining the inbox: jobs that applications have left in the store in their own transactions.

use crate::{Engine, EngineError, Submission};
use redrive_store::{Drained, EventKind, InboxEntry, Transition};

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
        let Drained { jobs, known, replaced, refused } = self.store.drain_inbox(&open, most, now).await?;
        let enqueued = |job| Transition::new(job, EventKind::Enqueued, None, now);
        let enqueued: Vec<Transition> = jobs.into_iter().map(enqueued).collect();
        self.publish(replaced.iter().chain(&enqueued));
        if replaced.iter().any(|transition| transition.told_run().is_some()) {
            self.advance_woken().await;
        }
        let jobs = self.shown_jobs(enqueued.into_iter().map(|transition| transition.job));
        let replaced = replaced.into_iter().map(|transition| self.shown_transition(transition)).collect();
        Ok(Drained { jobs, known, replaced, refused })
    }
}
