//! A store that is interrupted at one of its writes.

use redrive_policy::{Moment, Span};
use redrive_store::{
    Claim, Claimed, Decider, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef, Listed, Memory,
    Missing, NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueRefusal, Redrive, Refusal, Retention, Run,
    RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill, StartRefusal,
    Stepped, Store, StoreError, StoreFuture, Transition,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a store is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Nowhere.
    None,
    /// Before the write of this number, from 1: nothing of it is stored.
    Before(u64),
    /// After the write of this number: all of it is stored, and its caller does not learn of it.
    After(u64),
}

/// A store in memory that does not answer one of its writes.
pub(super) struct Interrupted {
    memory: Memory,
    at: Interruption,
    writes: AtomicU64,
}

impl Interrupted {
    pub(super) const fn new(memory: Memory, at: Interruption) -> Self {
        Self { memory, at, writes: AtomicU64::new(0) }
    }

    /// How many writes there were.
    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn write<'a, T: Send + 'a>(&self, call: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a) -> StoreFuture<'a, T> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        let at = self.at;
        let lost = || StoreError::Unavailable("the answer is lost".to_owned());
        Box::pin(async move {
            if at == Interruption::Before(number) {
                return Err(lost());
            }
            let answer = call().await?;
            if at == Interruption::After(number) { Err(lost()) } else { Ok(answer) }
        })
    }
}

/// Passes verbs on: those that write by way of [`Interrupted::write`], the others as they are.
macro_rules! verbs {
    (
        write { $($write:ident($($written:ident: $of:ty),*) -> $wrote:ty;)* }
        read { $($read:ident($($asked:ident: $as:ty),*) -> $answer:ty;)* }
    ) => {
        $(fn $write(&self, $($written: $of),*) -> StoreFuture<'_, $wrote> {
            self.write(move || self.memory.$write($($written),*))
        })*
        $(fn $read(&self, $($asked: $as),*) -> StoreFuture<'_, $answer> {
            self.memory.$read($($asked),*)
        })*
    };
}

impl Store for Interrupted {
    verbs! {
        write {
            enqueue(jobs: Vec<NewJob>, now: Moment) -> Result<Vec<Enqueued>, EnqueueRefusal>;
            settle(settlements: Vec<Settlement>, now: Moment) -> Vec<Result<Settled, Refusal>>;
            cancel(id: JobId, now: Moment) -> Result<Transition, Refusal>;
            redrive(id: JobId, redrive: Redrive, now: Moment) -> Result<Transition, Refusal>;
            start_runs(runs: Vec<NewRun>, now: Moment) -> Result<Vec<Run>, StartRefusal>;
            advance(steps: Vec<RunStep>, now: Moment) -> Vec<Stepped>;
            signal(id: RunId, signal: Signal, now: Moment) -> Result<Run, RunRefusal>;
        }
        read {
            claim(claim: Claim, now: Moment) -> Claimed;
            extend(refs: Vec<LeaseRef>, span: Option<Span>, now: Moment) -> Vec<Result<Job, Refusal>>;
            stood_still(standstill: Standstill) -> ();
            activate(id: JobId, now: Moment) -> Result<Transition, Refusal>;
            remove(id: JobId) -> Result<Job, Refusal>;
            prune(retention: Retention, limit: usize, now: Moment) -> usize;
            pause(queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> Option<Queue>;
            forget_queue(queue: Arc<str>) -> Result<Queue, QueueRefusal>;
            prune_queues(age: Span, now: Moment) -> Vec<Arc<str>>;
            set_limit(group: Group, setting: Option<Setting>, now: Moment) -> ();
            hold_group(group: Group, until: Moment, now: Moment) -> ();
            settings() -> Vec<(Group, Setting)>;
            standings(group: Option<Group>, now: Moment) -> Vec<Standing>;
            get(id: JobId) -> Option<Job>;
            list(filter: Filter, page: Page) -> Listed;
            queues() -> Vec<Queue>;
            pending_runs(pending: PendingRuns, now: Moment) -> Vec<PendingRun>;
            run(id: RunId) -> Option<Run>;
            run_of_key(key: Arc<str>) -> Option<Run>;
            runs(filter: RunFilter, limit: usize) -> Vec<Run>;
            next_run(programs: Vec<(Arc<str>, u32)>) -> Option<Moment>;
            prune_runs(age: Span, limit: usize, now: Moment) -> usize;
        }
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.memory.reclaim(decide, limit, now)
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.memory.promote(held, limit, now)
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        self.memory.next_wake(held)
    }
}
