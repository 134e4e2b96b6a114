//! Stores in memory that do one thing wrong with runs.

use crate::store_kind::StoreKind;
use redrive_policy::{Moment, Span};
use redrive_store::{
    Claim, Claimed, Decider, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef, Listed, Memory,
    Missing, NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueRefusal, Redrive, Refusal, Retention, Run,
    RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill, StartRefusal,
    Stepped, Store, StoreFuture, Transition,
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

impl Store for FlawedStore {
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

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        self.inner.signal(id, signal, now)
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        self.inner.set_limit(group, setting, now)
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        self.inner.hold_group(group, until, now)
    }

    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>> {
        self.inner.settings()
    }

    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>> {
        self.inner.standings(group, now)
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        self.inner.run(id)
    }

    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>> {
        self.inner.run_of_key(key)
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        self.inner.runs(filter, limit)
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        self.inner.next_run(programs)
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.inner.prune_runs(age, limit, now)
    }

    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        self.inner.enqueue(jobs, now)
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        self.inner.claim(claim, now)
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        self.inner.extend(lease_refs, span, now)
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        self.inner.settle(settlements, now)
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.inner.reclaim(decide, limit, now)
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        self.inner.stood_still(standstill)
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.inner.promote(held, limit, now)
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.inner.cancel(id, now)
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.inner.activate(id, now)
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.inner.redrive(id, redrive, now)
    }

    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>> {
        self.inner.remove(id)
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.inner.prune(retention, limit, now)
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        self.inner.pause(queue, paused, missing, now)
    }

    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>> {
        self.inner.forget_queue(queue)
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        self.inner.prune_queues(age, now)
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        self.inner.get(id)
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        self.inner.list(filter, page)
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        self.inner.queues()
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        self.inner.next_wake(held)
    }
}
