//! The store: its verbs, each delegated to its module.

use super::batcher::Batcher;
use super::clock::{self, DatabaseClock};
use super::core::Core;
use super::db_error::DbError;
use super::notifier::{self, Change};
use super::options::Options;
use super::value::Statement;
use super::verbs::attempts::AttemptAnswer;
use super::verbs::{self, attempts, claim, enqueue, inbox, limits, list, manage, remove, sweep};
use super::{listeners, pooler, privileges, queues, run, schema, vacuum};
use crate::observer::Observed;
use crate::rules;
use crate::{
    Claim, Claimed, Decider, Decoder, Drained, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef,
    Listed, Missing, NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueLoad, QueueRefusal, Redrive, Refusal,
    Retention, Run, RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill,
    StartRefusal, Stepped, Store, StoreError, StoreFuture, Transition, WriteObserver,
};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

/// The most that one verb uses at the same time.
const LEAST_CONNECTIONS: usize = 2;

/// A store on PostgreSQL, for any number of nodes.
///
/// It runs on the tokio runtime on which it was opened, and its futures are awaited there.
#[derive(Debug)]
pub struct Postgres {
    core: Arc<Core>,
    enqueues: Batcher<enqueue::Call, enqueue::Reply>,
    claims: Batcher<claim::Call, Claimed>,
    runs: Batcher<attempts::Call, attempts::Answers>,
    removals: Batcher<remove::Call, remove::Answer>,
    clock: Arc<DatabaseClock>,
    observer: Observed,
    /// Inbox entries are read one batch at a time: their transaction needs a second connection for a moment, and
    /// two of them could wait for each other.
    receiving: tokio::sync::Mutex<()>,
}

impl Postgres {
    /// Connects, and creates the tables or migrates them.
    ///
    /// # Errors
    /// The database cannot be reached, lacks a privilege, holds tables of a newer version, or is behind a pooler
    /// that lends its connections for single transactions.
    pub async fn open(options: Options) -> Result<Self, StoreError> {
        let connections = options.connections.max(LEAST_CONNECTIONS);
        let core = Core::new(options.with_connections(connections));
        let clock = Arc::new(DatabaseClock::new());
        if let Err(db_error) = begin(&core, &clock).await {
            return Err(privileges::explained(&core.pool, db_error).await.into());
        }
        tokio::spawn(clock::follow(Arc::clone(&clock), Arc::downgrade(&core)));
        tokio::spawn(vacuum::run(Arc::clone(&core.vacuum), Arc::downgrade(&core)));
        let observer = Observed::default();
        let [for_enqueues, for_claims, for_runs, for_removals] = [(); 4].map(|()| Arc::clone(&core));
        Ok(Self {
            enqueues: Batcher::open(&observer, move |calls| enqueue::batch(Arc::clone(&for_enqueues), calls)),
            claims: Batcher::open(&observer, move |calls| claim::batch(Arc::clone(&for_claims), calls)),
            runs: Batcher::open(&observer, move |calls| attempts::batch(Arc::clone(&for_runs), calls)),
            removals: Batcher::open(&observer, move |calls| remove::batch(Arc::clone(&for_removals), calls)),
            core,
            clock,
            observer,
            receiving: tokio::sync::Mutex::default(),
        })
    }

    /// Calls `heard` with the notifications of other nodes from now on, and notifies them of changes on this one. To be
    /// called once.
    pub fn listen(&self, heard: impl Fn(Change) + Send + Sync + 'static) {
        let options = self.core.pool.options().clone();
        let core = Arc::downgrade(&self.core);
        let heard = move |change| {
            if let (Change::Anything | Change::Nothing, Some(core)) = (&change, core.upgrade()) {
                // Where this fails, the next look comes by itself.
                tokio::spawn(async move { drop(listeners::look(&core).await) });
            }
            heard(change);
        };
        tokio::spawn(notifier::run(options, Arc::downgrade(&self.core.notifier), heard));
    }

    /// Calls `tell` with the id and the reason whenever this node has set aside a job that it cannot read. To be
    /// called once.
    pub fn watch_unreadable(&self, tell: impl Fn(JobId, &str) + Send + Sync + 'static) {
        self.core.pool.watcher.set(tell);
    }

    /// Lets `observer` learn how the store writes from now on. Only the first one counts.
    pub fn observe(&self, observer: Arc<dyn WriteObserver>) {
        self.observer.set(observer);
    }

    /// The time as the database has it, for the engine: all nodes on one database share it.
    #[must_use]
    pub fn clock(&self) -> Arc<DatabaseClock> {
        Arc::clone(&self.clock)
    }
}

/// Checks and prepares all that a node needs.
async fn begin(core: &Core, clock: &DatabaseClock) -> Result<(), DbError> {
    core.repeat(|| pooler::refuse(&core.pool)).await?;
    core.repeat(|| schema::migrate(&core.pool)).await?;
    core.repeat(|| clock.look(core)).await?;
    core.repeat(|| listeners::look(core)).await
}

/// The result of one transaction, repeated where that is safe.
macro_rules! answer {
    ($self:ident, $work:expr) => {
        Box::pin(async move {
            let core = &*$self.core;
            let work = $work;
            core.repeat(|| work(core)).await.map_err(StoreError::from)
        })
    };
}

impl Store for Postgres {
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        Box::pin(self.enqueues.call((jobs, now)))
    }

    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        Box::pin(self.claims.call((claim, now)))
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        Box::pin(async move {
            let answers =
                self.runs.call(attempts::Call { run_call: attempts::RunCall::Alive(lease_refs, span), now }).await?;
            Ok(answers.into_iter().map(|answer| answer.map(AttemptAnswer::into_job)).collect())
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        Box::pin(async move {
            let answers =
                self.runs.call(attempts::Call { run_call: attempts::RunCall::Ended(settlements), now }).await?;
            Ok(answers.into_iter().map(|answer| answer.map(AttemptAnswer::into_settled)).collect())
        })
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        answer!(self, |core| sweep::reclaim(core, decide, limit, now))
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        self.core.stood_still(standstill);
        Box::pin(std::future::ready(Ok(())))
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        answer!(self, |core| sweep::promote(core, held, limit, now))
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        answer!(self, |core| manage::change(core, id, move |job| rules::cancel(job, now)))
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        answer!(self, |core| manage::change(core, id, move |job| rules::activate(job, now)))
    }

    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        answer!(self, |core| manage::redrive(core, id, &redrive, now))
    }

    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>> {
        Box::pin(self.removals.call(remove::Call(id)))
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        answer!(self, |core| sweep::prune(core, retention, limit, now))
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        answer!(self, |core| manage::pause(core, &queue, paused, missing, now))
    }

    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>> {
        answer!(self, |core| verbs::queues::forget(core, &queue))
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        answer!(self, |core| verbs::queues::prune(core, age, now))
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        answer!(self, |core| limits::change(core, &group, |row| row.setting.clone_from(&setting), now))
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        answer!(self, |core| limits::change(core, &group, |row| row.held = Some(until), now))
    }

    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>> {
        answer!(self, |core| limits::settings(core))
    }

    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>> {
        answer!(self, |core| limits::standings(core, group.as_ref(), now))
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        answer!(self, |core| list::get(core, id))
    }

    fn get_many(&self, ids: Vec<JobId>) -> StoreFuture<'_, Vec<Job>> {
        answer!(self, |core| list::get_many(core, &ids))
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        answer!(self, |core| list::list(core, &filter, page))
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        answer!(self, all_queues)
    }

    fn loads(&self, now: Moment) -> StoreFuture<'_, Vec<QueueLoad>> {
        answer!(self, |core| queues::loads(core, now))
    }

    fn paused(&self) -> StoreFuture<'_, Vec<Arc<str>>> {
        answer!(self, |core| queues::paused(core))
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        answer!(self, |core| sweep::next_wake(core, held))
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        Box::pin(async move { Ok(run::start(&self.core, &runs, now).await?) })
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        answer!(self, |core| run::pending(core, &pending, now))
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        Box::pin(async move { Ok(run::advance(&self.core, &steps, now).await?) })
    }

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        answer!(self, |core| run::signal(core, id, &signal, now))
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        answer!(self, |core| run::get(core, id))
    }

    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>> {
        answer!(self, |core| run::of_key(core, &key))
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        answer!(self, |core| run::list(core, &filter, limit))
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        answer!(self, |core| run::next(core, &programs))
    }

    fn probe(&self, _: Moment) -> StoreFuture<'_, ()> {
        answer!(self, probe)
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        answer!(self, |core| run::prune(core, age, limit, now))
    }

    fn drain_inbox<'a>(&'a self, open: &'a Decoder<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Drained> {
        Box::pin(async move {
            let _one = self.receiving.lock().await;
            inbox::drain_inbox(&self.core, open, limit, now).await.map_err(StoreError::from)
        })
    }
}

async fn all_queues(core: &Core) -> Result<Vec<Queue>, DbError> {
    queues::read(core, None).await
}

/// A message in the log of the database that nothing reads: committing it flushes the log, and a database that takes
/// no writes refuses it.
const PROBE: &str = "SELECT pg_logical_emit_message(true, 'redrive', ''::text)";

async fn probe(core: &Core) -> Result<(), DbError> {
    core.session().await?.write(&Statement::new(PROBE, Vec::new())).await.map(drop)
}
