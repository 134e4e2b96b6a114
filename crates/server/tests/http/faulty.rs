//! A store that fails on demand.

use redrive_policy::{Moment, Span};
use redrive_store::{
    Claim, Claimed, Decider, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef, Listed, Memory,
    Missing, NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueRefusal, Redrive, Refusal, Retention, Run,
    RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill, StartRefusal,
    Stepped, Store, StoreError, StoreFuture, Transition,
};
use std::sync::{Arc, Mutex};

/// What the store does.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    Works,
    Fails(StoreError),
    Panics,
}

pub(crate) struct Faulty {
    inner: Memory,
    behaviour: Mutex<Behaviour>,
}

impl Faulty {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { inner: Memory::new(), behaviour: Mutex::new(Behaviour::Works) })
    }

    pub(crate) fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    fn tried<'a, T: Send + 'a>(&self, answer: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        let behaviour = self.behaviour.lock().unwrap().clone();
        match behaviour {
            Behaviour::Works => answer,
            Behaviour::Fails(error) => Box::pin(async move { Err(error) }),
            Behaviour::Panics => panic!("the store was set to panic"),
        }
    }
}

impl Store for Faulty {
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        self.tried(self.inner.enqueue(jobs, now))
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        self.tried(self.inner.claim(claim, now))
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        self.tried(self.inner.extend(lease_refs, span, now))
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        self.tried(self.inner.settle(settlements, now))
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.tried(self.inner.reclaim(decide, limit, now))
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        self.tried(self.inner.stood_still(standstill))
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.tried(self.inner.promote(held, limit, now))
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.tried(self.inner.cancel(id, now))
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.tried(self.inner.activate(id, now))
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.tried(self.inner.redrive(id, redrive, now))
    }

    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>> {
        self.tried(self.inner.remove(id))
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.tried(self.inner.prune(retention, limit, now))
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        self.tried(self.inner.pause(queue, paused, missing, now))
    }

    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>> {
        self.tried(self.inner.forget_queue(queue))
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        self.tried(self.inner.prune_queues(age, now))
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        self.tried(self.inner.set_limit(group, setting, now))
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        self.tried(self.inner.hold_group(group, until, now))
    }

    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>> {
        self.tried(self.inner.settings())
    }

    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>> {
        self.tried(self.inner.standings(group, now))
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        self.tried(self.inner.get(id))
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        self.tried(self.inner.list(filter, page))
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        self.tried(self.inner.queues())
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        self.tried(self.inner.start_runs(runs, now))
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        self.tried(self.inner.pending_runs(pending, now))
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        self.tried(self.inner.advance(steps, now))
    }

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        self.tried(self.inner.signal(id, signal, now))
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        self.tried(self.inner.run(id))
    }

    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>> {
        self.tried(self.inner.run_of_key(key))
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        self.tried(self.inner.runs(filter, limit))
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        self.tried(self.inner.next_run(programs))
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.tried(self.inner.prune_runs(age, limit, now))
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        self.tried(self.inner.next_wake(held))
    }
}
