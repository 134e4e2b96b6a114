//! The store itself.

use super::core::{Core, Shared};
use super::disk::Disk;
use super::notice::{Notice, reason};
use super::options::Options;
use super::store_state::StoreState;
use super::waiter::Durable;
use crate::{
    Claim, Claimed, Decider, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef, Listed, Missing,
    NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueLoad, QueueRefusal, Redrive, Refusal, Retention, Run,
    RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill, StartRefusal,
    Stepped, Store, StoreError, StoreFuture, Transition, WriteObserver,
};
use redrive_policy::{Moment, Span};
use std::future::ready;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A durable store in one folder. It holds all jobs in memory, and answers once the write is safe
/// from a power cut.
///
/// A verb does its work when it is called; its answer only waits for the disk. A list that looks at many jobs goes on
/// while its answer is waited for, and lets other verbs in. Decisions are made while the store is locked, so they
/// must not call it.
///
/// The memory is that of the jobs: up to 400 bytes for each that waits, beside its payload.
pub struct Embedded {
    pub(super) shared: Arc<Shared>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: Options,
    pub(super) running: Mutex<Option<Running>>,
}

/// What a store has until it is closed.
pub(super) struct Running {
    pub(super) flusher: JoinHandle<()>,
    pub(super) compactor: JoinHandle<()>,
    /// The lock on the folder.
    pub(super) _lock: Box<dyn Send + Sync>,
}

/// How a store is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How many jobs it has.
    pub jobs: usize,
    /// How many runs it has.
    pub runs: usize,
    /// How often it has flushed since it was opened.
    pub flushes: u64,
    /// The length of the newest snapshot, in bytes; 0 where there is none.
    pub snapshot_bytes: u64,
    /// How many bytes of the log would be read after it.
    pub log_bytes: u64,
    /// About how many bytes a snapshot would take now.
    pub live_bytes: u64,
    /// Why the store answers no more, where that is so.
    pub stopped: Option<StoreError>,
    /// What writes wait for, besides the disk.
    pub waiting: Option<String>,
    /// What became of the last compaction since the store was opened.
    pub compaction: Option<Result<(), StoreError>>,
}

impl Status {
    /// What an operator should see to, in sentences.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let failed = self.compaction.as_ref().and_then(|outcome| outcome.as_ref().err());
        let errors = self.stopped.iter().chain(failed.filter(|_| self.stopped.is_none()));
        errors.map(|why| reason(why).to_owned()).chain(self.waiting.clone()).collect()
    }
}

impl Embedded {
    /// Its folder, as it was named when the store was opened.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How the store is doing.
    #[must_use]
    pub fn status(&self) -> Status {
        let core = self.shared.lock();
        let written = self.shared.written();
        Status {
            jobs: core.store_state.slots.len(),
            runs: core.store_state.runs.len(),
            flushes: written.flushes,
            snapshot_bytes: core.base.bytes,
            log_bytes: written.appended.saturating_sub(core.base.at),
            live_bytes: core.store_state.live_bytes,
            stopped: core.stopped().cloned(),
            waiting: core.waiting.clone(),
            compaction: core.compaction.last.clone(),
        }
    }

    /// Calls `tell` with every later notice, from a thread of the store, which waits for it. Where the store
    /// has stopped already, that is the first notice. Only the first call counts.
    pub fn watch(&self, tell: impl Fn(&Notice) + Send + Sync + 'static) {
        self.shared.notices.set(Box::new(tell));
        let stopped = self.shared.lock().stopped().cloned();
        if let Some(why) = stopped {
            self.shared.notices.tell(&Notice::Stopped(why));
        }
    }

    /// Lets `observer` learn how the store writes from now on. Only the first one counts.
    pub fn observe(&self, observer: Arc<dyn WriteObserver>) {
        self.shared.observer.set(observer);
    }

    /// Replaces the log by a snapshot, and returns when that is done. The verbs go on meanwhile.
    ///
    /// # Errors
    /// Why there is no new snapshot; the log is as good as before.
    pub fn compact(&self) -> Result<(), StoreError> {
        let mut core = self.shared.lock();
        core.compaction.wanted += 1;
        let mine = core.compaction.wanted;
        self.shared.to_compact.notify_one();
        while core.compaction.over < mine {
            if let (true, Some(why)) = (core.compactor_ends, core.stopped()) {
                return Err(why.clone());
            }
            core = self.shared.compacted.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
        core.compaction.last.clone().unwrap_or(Ok(()))
    }

    /// Writes what is pending, marks the log as complete and unlocks the folder. A call that still waits
    /// gets an answer; later verbs do not. Closing again does nothing.
    ///
    /// # Errors
    /// Why the store had stopped already, or why the end of the log could not be marked. What was
    /// acknowledged is safe in both cases.
    pub fn close(&self) -> Result<(), StoreError> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(running) = running else { return Ok(()) };
        let mut core = self.shared.lock();
        let stopped = core.stopped().cloned();
        core.refuse(StoreError::Unavailable("the store is closed; open it again to go on".to_owned()));
        core.compactor_ends = true;
        drop(core);
        self.shared.to_compact.notify_all();
        self.shared.compacted.notify_all();
        let compactor = running.compactor.join();
        self.shared.lock().flusher_ends = true;
        self.shared.to_flush.notify_all();
        let flusher = running.flusher.join();
        if compactor.is_err() || flusher.is_err() {
            return Err(StoreError::Broken("a thread of the store panicked; this is a bug".to_owned()));
        }
        let failed = self.shared.lock().close_failed.clone();
        stopped.or(failed).map_or(Ok(()), Err)
    }

    /// Stores the time, and how far the wall clock is ahead of it, in microseconds: the process that opens the store
    /// next goes on from there. What is acknowledged later than this call is not safe before it.
    pub fn keep_clock(&self, at: Moment, ahead_us: i64) {
        drop(self.answer(|store_state| {
            store_state.keep_clock(at, ahead_us);
            Ok(())
        }));
    }

    /// Does the work of a verb immediately, and returns a future that waits for the disk.
    pub(super) fn answer<'a, T: Send + 'a>(
        &'a self,
        verb: impl FnOnce(&mut StoreState) -> Result<T, StoreError>,
    ) -> StoreFuture<'a, T> {
        let mut core = self.shared.lock();
        if let Some(why) = core.stopped() {
            return Box::pin(ready(Err(why.clone())));
        }
        let outcome = verb(&mut core.store_state);
        let waiter = core.waiter();
        let wake = should_wake(&mut core);
        drop(core);
        if wake {
            self.shared.to_flush.notify_one();
        }
        match outcome {
            Ok(answer) => Box::pin(Durable::new(answer, waiter)),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }
}

/// Whether the flusher sleeps and should not; only the first to notice wakes it.
fn should_wake(core: &mut Core) -> bool {
    core.has_work() && std::mem::take(&mut core.flusher_sleeps)
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // No caller is left to report an error to; what was acknowledged is safe.
        let _ = self.close();
    }
}

impl Store for Embedded {
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        self.answer(|store_state| store_state.enqueue(&jobs, now))
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        self.answer(|store_state| Ok(store_state.claim(&claim, now)))
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        self.answer(|store_state| {
            Ok(lease_refs.iter().map(|lease_ref| store_state.extend(lease_ref, span, now)).collect())
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        self.answer(|store_state| {
            Ok(settlements.iter().map(|settlement| store_state.settle(settlement, now)).collect())
        })
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.answer(|store_state| Ok(store_state.reclaim(decide, limit, now)))
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        self.answer(|store_state| {
            store_state.stood_still(standstill);
            Ok(())
        })
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        self.answer(|store_state| Ok(store_state.promote(held, limit, now)))
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.answer(|store_state| Ok(store_state.cancel(id, now)))
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.answer(|store_state| Ok(store_state.activate(id, now)))
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        self.answer(|store_state| store_state.redrive(id, &redrive, now))
    }

    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>> {
        self.answer(|store_state| Ok(store_state.forget(id)))
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.answer(|store_state| Ok(store_state.prune(retention, limit, now)))
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        self.answer(|store_state| Ok(store_state.pause_queue(&queue, paused, missing, now)))
    }

    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>> {
        self.answer(|store_state| Ok(store_state.forget_queue(&queue)))
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        self.answer(|store_state| Ok(store_state.prune_queues(age, now)))
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        self.answer(|store_state| {
            store_state.set_limit(&group, setting, now);
            Ok(())
        })
    }

    fn hold_group(&self, group: Group, until: Moment, _: Moment) -> StoreFuture<'_, ()> {
        self.answer(|store_state| {
            store_state.hold_group(&group, until);
            Ok(())
        })
    }

    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>> {
        self.answer(|store_state| Ok(store_state.settings()))
    }

    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>> {
        self.answer(|store_state| Ok(store_state.standings(group, now)))
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        self.answer(|store_state| Ok(store_state.find(id).and_then(|place| store_state.job(place))))
    }

    fn get_many(&self, ids: Vec<JobId>) -> StoreFuture<'_, Vec<Job>> {
        self.answer(move |store_state| {
            let places = ids.into_iter().filter_map(|id| store_state.find(id));
            Ok(places.filter_map(|place| store_state.job(place)).collect())
        })
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        self.list_in_steps(filter, page)
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        self.answer(|store_state| Ok(store_state.queues()))
    }

    fn loads(&self, now: Moment) -> StoreFuture<'_, Vec<QueueLoad>> {
        self.answer(|store_state| Ok(store_state.loads(now)))
    }

    fn paused(&self) -> StoreFuture<'_, Vec<Arc<str>>> {
        self.answer(|store_state| Ok(store_state.paused_queues()))
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        self.answer(|store_state| Ok(store_state.next_wake(held)))
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        self.answer(|store_state| Ok(store_state.start_runs(&runs, now)))
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        self.answer(|store_state| Ok(store_state.runs.pending(&pending, now)))
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        self.answer(|store_state| steps.iter().map(|step| store_state.advance(step, now)).collect())
    }

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        self.answer(|store_state| Ok(store_state.signal(id, signal, now)))
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        self.answer(|store_state| Ok(store_state.runs.get(id).map(|slot| slot.run.clone())))
    }

    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>> {
        self.answer(|store_state| {
            let slot = store_state.runs.of_key(&key).and_then(|id| store_state.runs.get(id));
            Ok(slot.map(|slot| slot.run.clone()))
        })
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        self.answer(|store_state| Ok(store_state.runs.list(&filter, limit)))
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        self.answer(|store_state| Ok(store_state.runs.next(programs)))
    }

    fn probe(&self, now: Moment) -> StoreFuture<'_, ()> {
        self.answer(|store_state| {
            // The newest mark of the clock, once more; a store that has none yet gets one at this time.
            let (at, ahead_us) = store_state.clock.unwrap_or((now, 0));
            store_state.keep_clock(at, ahead_us);
            Ok(())
        })
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.answer(|store_state| Ok(store_state.prune_runs(age, limit, now)))
    }
}
