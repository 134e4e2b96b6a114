//! A store with hooks around every call.

use redrive_policy::{Moment, Span};
use redrive_store::{
    Claim, Claimed, Decider, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef, Listed, Missing,
    NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueRefusal, Redrive, Refusal, Retention, Run, RunFilter,
    RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill, StartRefusal, Stepped,
    Store, StoreError, StoreFuture, Transition,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// An operation of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Enqueue,
    Claim,
    Extend,
    Settle,
    Reclaim,
    StoodStill,
    Promote,
    Cancel,
    Activate,
    Redrive,
    Remove,
    Prune,
    Pause,
    SetLimit,
    HoldGroup,
    Settings,
    Standings,
    Get,
    List,
    Queues,
    NextWake,
    ForgetQueue,
    PruneQueues,
    StartRuns,
    PendingRuns,
    Advance,
    Signal,
    Run,
    RunOfKey,
    Runs,
    NextRun,
    PruneRuns,
}

/// The result of a hook: an error replaces the answer of the call.
pub(crate) type Passing = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// Hooks around the calls of a store.
pub(crate) trait Around: Send + Sync {
    /// Runs before the call reaches the store. An error prevents the call.
    fn before(&self, verb: Verb) -> Passing;

    /// Runs after the call. An error replaces its answer.
    fn after(&self, verb: Verb) -> Passing;
}

/// A store with hooks.
///
/// A call to the store itself is atomic: it blocks until the answer is there, also if another thread answers, so that
/// the order of events depends only on the hooks.
pub(crate) struct Wrapped<A> {
    inner: Arc<dyn Store>,
    around: Arc<A>,
}

impl<A: Around> Wrapped<A> {
    pub(crate) const fn new(inner: Arc<dyn Store>, around: Arc<A>) -> Self {
        Self { inner, around }
    }

    fn around<'a, T: Send + 'a>(
        &'a self,
        verb: Verb,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.around.before(verb).await?;
            let answer = in_place(call(&*self.inner));
            self.around.after(verb).await?;
            answer
        })
    }
}

impl<A: Around> Store for Wrapped<A> {
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        self.around(Verb::Enqueue, move |store| store.enqueue(jobs, now))
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        self.around(Verb::Claim, move |store| store.claim(claim, now))
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        self.around(Verb::Extend, move |store| store.extend(lease_refs, span, now))
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        self.around(Verb::Settle, move |store| store.settle(settlements, now))
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.around(Verb::Reclaim, move |store| store.reclaim(decide, limit, now))
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        self.around(Verb::StoodStill, move |store| store.stood_still(standstill))
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.around(Verb::Promote, move |store| store.promote(held, limit, now))
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.around(Verb::Cancel, move |store| store.cancel(id, now))
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.around(Verb::Activate, move |store| store.activate(id, now))
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.around(Verb::Redrive, move |store| store.redrive(id, redrive, now))
    }

    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>> {
        self.around(Verb::Remove, move |store| store.remove(id))
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.around(Verb::Prune, move |store| store.prune(retention, limit, now))
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        self.around(Verb::Pause, move |store| store.pause(queue, paused, missing, now))
    }

    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>> {
        self.around(Verb::ForgetQueue, move |store| store.forget_queue(queue))
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        self.around(Verb::PruneQueues, move |store| store.prune_queues(age, now))
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        self.around(Verb::SetLimit, move |store| store.set_limit(group, setting, now))
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        self.around(Verb::HoldGroup, move |store| store.hold_group(group, until, now))
    }

    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>> {
        self.around(Verb::Settings, move |store| store.settings())
    }

    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>> {
        self.around(Verb::Standings, move |store| store.standings(group, now))
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        self.around(Verb::Get, move |store| store.get(id))
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        self.around(Verb::List, move |store| store.list(filter, page))
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        self.around(Verb::Queues, |store| store.queues())
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        self.around(Verb::StartRuns, move |store| store.start_runs(runs, now))
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        self.around(Verb::PendingRuns, move |store| store.pending_runs(pending, now))
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        self.around(Verb::Advance, move |store| store.advance(steps, now))
    }

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        self.around(Verb::Signal, move |store| store.signal(id, signal, now))
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        self.around(Verb::Run, move |store| store.run(id))
    }

    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>> {
        self.around(Verb::RunOfKey, move |store| store.run_of_key(key))
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        self.around(Verb::Runs, move |store| store.runs(filter, limit))
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        self.around(Verb::NextRun, move |store| store.next_run(programs))
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.around(Verb::PruneRuns, move |store| store.prune_runs(age, limit, now))
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        self.around(Verb::NextWake, move |store| store.next_wake(held))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the answer is there.
pub(crate) fn in_place<T>(mut answer: StoreFuture<'_, T>) -> Result<T, StoreError> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
