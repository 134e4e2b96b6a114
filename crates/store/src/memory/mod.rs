//! The reference model of a store: obviously right rather than fast, and gone with the process.
//!
//! It has rules of its own. A job is the list of its events, and each of its members follows from the whole list.
//! The durable stores share `rules.rs`, which changes a job step by step; were the model to share it too, a wrong
//! rule would be wrong on both sides of every comparison. `scripts/plant` shows that wrong rules are seen.

mod advance;
mod contents;
mod derived;
mod enqueue;
mod event;
mod limits;
mod recorded;
mod runs;

use crate::{
    Claim, Claimed, Decider, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef, Listed, Missing,
    NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueLoad, QueueRefusal, Redrive, Refusal, Retention, Run,
    RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill, StartRefusal,
    Stepped, Store, StoreFuture, Transition,
};
use contents::Contents;
use redrive_policy::{Moment, Span};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store in memory. It defines what the verbs mean: other stores are compared with it, answer by answer. Every verb
/// looks at every job, and a job stores every event, so it is meant for tests and small trials.
///
/// A clone is the same store. Answers are ready at the first poll.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    contents: Arc<Mutex<Contents>>,
    standstills: Arc<Mutex<Vec<Standstill>>>,
}

impl Memory {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same jobs for a server that has just started: what concerned only the one before it is dropped.
    #[must_use]
    pub fn reopened(&self) -> Self {
        Self { contents: Arc::clone(&self.contents), standstills: Arc::default() }
    }

    fn standstills(&self) -> MutexGuard<'_, Vec<Standstill>> {
        self.standstills.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The contents, also after a decision panicked: it runs before its job is changed.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Memory {
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        Box::pin(async move { Ok(self.contents().enqueue(&jobs, now)) })
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        Box::pin(async move { Ok(self.contents().claim(&claim, now)) })
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        Box::pin(async move {
            let mut contents = self.contents();
            Ok(lease_refs.iter().map(|lease_ref| contents.extend(lease_ref, span, now)).collect())
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        Box::pin(async move {
            let mut contents = self.contents();
            Ok(settlements.iter().map(|settlement| contents.settle(settlement, now)).collect())
        })
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        Box::pin(async move { Ok(self.contents().reclaim(decide, limit, &self.standstills(), now)) })
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        self.standstills().push(standstill);
        Box::pin(std::future::ready(Ok(())))
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        Box::pin(async move { Ok(self.contents().promote(held, limit, now)) })
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move { Ok(self.contents().cancel(id, now)) })
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move { Ok(self.contents().activate(id, now)) })
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move { Ok(self.contents().redrive(id, &redrive, now)) })
    }

    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>> {
        Box::pin(async move { Ok(self.contents().remove(id)) })
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        Box::pin(async move { Ok(self.contents().prune(retention, limit, now)) })
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        Box::pin(async move { Ok(self.contents().pause(&queue, paused, missing, now)) })
    }

    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>> {
        Box::pin(async move { Ok(self.contents().forget_queue(&queue)) })
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        Box::pin(async move { Ok(self.contents().prune_queues(age, now)) })
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.contents().set_limit(group, setting, now);
            Ok(())
        })
    }

    fn hold_group(&self, group: Group, until: Moment, _: Moment) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.contents().limits.held.insert(group, until);
            Ok(())
        })
    }

    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>> {
        Box::pin(async move { Ok(self.contents().limits.settings.clone().into_iter().collect()) })
    }

    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>> {
        Box::pin(async move { Ok(self.contents().standings(group, now)) })
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        Box::pin(async move { Ok(self.contents().get(id)) })
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        Box::pin(async move { Ok(self.contents().list(&filter, page)) })
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        Box::pin(async move { Ok(self.contents().queues()) })
    }

    fn loads(&self, now: Moment) -> StoreFuture<'_, Vec<QueueLoad>> {
        Box::pin(async move { Ok(self.contents().loads(now)) })
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        Box::pin(async move { Ok(self.contents().next_wake(held, &self.standstills())) })
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        Box::pin(async move { Ok(self.contents().runs.start(&runs, now)) })
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        Box::pin(async move { Ok(self.contents().runs.pending(&pending, now)) })
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        Box::pin(async move {
            let mut contents = self.contents();
            Ok(steps.iter().map(|step| contents.advance(step, now)).collect())
        })
    }

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        Box::pin(async move { Ok(self.contents().runs.signal(id, signal, now)) })
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        Box::pin(async move { Ok(self.contents().runs.get(id)) })
    }

    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>> {
        Box::pin(async move { Ok(self.contents().runs.of_key(&key)) })
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        Box::pin(async move { Ok(self.contents().runs.list(&filter, limit)) })
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        Box::pin(async move { Ok(self.contents().runs.next(programs)) })
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        Box::pin(async move { Ok(self.contents().runs.prune(age, limit, now)) })
    }
}
