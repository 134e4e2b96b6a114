//! Stores in memory that do one thing wrong with runs.

use crate::store_kind::StoreKind;
use redrive_policy::Moment;
use redrive_store::testing::Wrapper;
use redrive_store::{
    JobId, Memory, NewJob, NewRun, PendingRun, PendingRuns, Run, RunStep, StartRefusal, Stepped, Store, StoreFuture,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A message is gone before its run has read it.
    LosesMessages,
    /// Messages that a step has read are there again.
    RepeatsMessages,
    /// A step is written, and its timer is not.
    LosesTimers,
    /// A job of a run is enqueued again under another id.
    EnqueuesChildrenTwice,
    /// A run that was started is not stored.
    LosesRuns,
    /// A step is written although another was written since it was computed.
    IgnoresRevisions,
}

impl Flaw {
    pub(crate) const ALL: [Self; 6] = [
        Self::LosesMessages,
        Self::RepeatsMessages,
        Self::LosesTimers,
        Self::EnqueuesChildrenTwice,
        Self::LosesRuns,
        Self::IgnoresRevisions,
    ];
}

/// Where such a store stands.
pub(crate) struct FlawedRuns {
    pub(crate) flaw: Flaw,
    pub(crate) memory: Memory,
    calls: Arc<AtomicU64>,
}

impl FlawedRuns {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self { flaw, memory: Memory::new(), calls: Arc::default() }
    }
}

impl StoreKind for FlawedRuns {
    fn open(&mut self) -> Arc<dyn Store> {
        self.memory = Memory::new();
        self.reopen()
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        self.memory = self.memory.reopened();
        Arc::new(FlawedStore { flaw: self.flaw, inner: self.memory.clone(), calls: Arc::clone(&self.calls) })
    }
}

struct FlawedStore {
    flaw: Flaw,
    inner: Memory,
    calls: Arc<AtomicU64>,
}

impl FlawedStore {
    /// Whether it is this store's flaw, and its turn: every fifth call.
    fn errs(&self, flaw: Flaw) -> bool {
        self.flaw == flaw && (self.calls.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(5)
    }

    async fn changed(&self, step: RunStep) -> RunStep {
        let mut step = step;
        if !step.consumed.is_empty() && self.errs(Flaw::RepeatsMessages) {
            step.consumed.clear();
        }
        if step.timer.is_some() && self.errs(Flaw::LosesTimers) {
            step.timer = None;
        }
        if let Some((child, job)) = step.jobs.first().filter(|_| self.errs(Flaw::EnqueuesChildrenTwice)) {
            let mut bytes = job.id.to_bytes();
            bytes[15] ^= 1;
            let again = (*child, NewJob { id: JobId::from_bytes(bytes), ..job.clone() });
            step.jobs.push(again);
        }
        if self.flaw == Flaw::IgnoresRevisions
            && let Ok(Some(run)) = self.inner.run(step.id).await
        {
            step.revision = run.revision;
        }
        step
    }
}

impl Wrapper for FlawedStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        let lost = self.errs(Flaw::LosesRuns);
        let store = if lost { Memory::new() } else { self.inner.clone() };
        Box::pin(async move { store.start_runs(runs, now).await })
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        Box::pin(async move {
            let mut found = self.inner.pending_runs(pending, now).await?;
            for pending in &mut found {
                if !pending.messages.is_empty() && self.errs(Flaw::LosesMessages) {
                    let consumed = pending.messages.pop().map(|message| message.number).into_iter().collect();
                    let step = RunStep { consumed, ..RunStep::of(&pending.run) };
                    if let Some(Ok(stepped)) = self.inner.advance(vec![step], now).await?.pop() {
                        // Before its first step a run would miss that too, which is not what is tried here.
                        let revision = stepped.run.revision;
                        pending.run = Run { revision, ..stepped.run };
                    }
                }
            }
            Ok(found)
        })
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        Box::pin(async move {
            let mut changed = Vec::with_capacity(steps.len());
            for step in steps {
                changed.push(self.changed(step).await);
            }
            self.inner.advance(changed, now).await
        })
    }
}
