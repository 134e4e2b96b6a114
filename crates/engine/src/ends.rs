//! Callers that wait for the end of a job: they are woken by the event, and not by looking again and again.

use crate::{Engine, EngineError};
use redrive_store::{JobId, Transition};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many jobs are looked at in one call to the store.
const STEP: usize = 500;

/// The jobs whose ends callers wait for.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    awaited: Mutex<HashMap<JobId, watch::Sender<()>>>,
    /// How many, so that no lock is taken where none is awaited.
    count: AtomicUsize,
}

impl Ends {
    fn awaited(&self) -> MutexGuard<'_, HashMap<JobId, watch::Sender<()>>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jobs have ended.
    pub(crate) fn tell<'a>(&self, transitions: impl Iterator<Item = &'a Transition>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let awaited = self.awaited();
        for transition in transitions.filter(|transition| transition.end().is_some()) {
            if let Some(waiting) = awaited.get(&transition.job.id) {
                waiting.send_replace(());
            }
        }
    }
}

/// Waits for the end of a job. Any number of callers may wait for the same.
pub struct AwaitedEnd {
    engine: Arc<Engine>,
    job: JobId,
    ended: watch::Receiver<()>,
}

impl AwaitedEnd {
    /// Completes after the job has ended, each time that it does.
    pub async fn ended(&mut self) {
        // The sender stays as long as this receiver.
        let _ = self.ended.changed().await;
    }
}

impl Drop for AwaitedEnd {
    fn drop(&mut self) {
        let ends = &self.engine.ends;
        let mut awaited = ends.awaited();
        if awaited.get(&self.job).is_some_and(|waiting| waiting.receiver_count() == 1) {
            awaited.remove(&self.job);
            ends.count.store(awaited.len(), Ordering::SeqCst);
        }
    }
}

impl Engine {
    /// Waits for the end of a job. To miss none, call this first, and then look whether it has ended.
    #[must_use]
    pub fn await_end(self: &Arc<Self>, job: JobId) -> AwaitedEnd {
        let mut awaited = self.ends.awaited();
        let ended = awaited.entry(job).or_insert_with(|| watch::Sender::new(())).subscribe();
        self.ends.count.store(awaited.len(), Ordering::SeqCst);
        AwaitedEnd { engine: Arc::clone(self), job, ended }
    }

    /// Looks which of the jobs that callers wait for have ended, and wakes these callers: for stores that other nodes
    /// write to, of whose events this one does not hear.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn look_for_ends(&self) -> Result<(), EngineError> {
        let jobs: Vec<JobId> = self.ends.awaited().keys().copied().collect();
        for step in jobs.chunks(STEP) {
            let found = self.store.get_many(step.to_vec()).await?;
            let awaited = self.ends.awaited();
            for job in found.iter().filter(|job| job.state.is_terminal()) {
                if let Some(waiting) = awaited.get(&job.id) {
                    waiting.send_replace(());
                }
            }
        }
        Ok(())
    }
}
