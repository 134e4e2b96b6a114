//! The verbs of a store. Each is atomic, and each is given the time.

use crate::limit::Room;
use crate::{
    Blob, Decoder, Drained, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseToken, Listed, Missing,
    NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueLoad, QueueRefusal, Redrive, Refusal, Run, RunFilter,
    RunId, RunRefusal, RunStep, Setting, Settled, Signal, Standing, Standstill, StartRefusal, Stepped, StoreError,
    Transition,
};
use redrive_policy::{Moment, Policy, Span, Verdict};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The answer of a store, given once the write is safe from a power cut.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A store of jobs. It never computes a delay and never reads a clock: the caller decides, and the
/// decision runs inside the same atomic step that writes its outcome.
///
/// Where the caller drops an answer before it came, the write happens as a whole or not at all.
pub trait Store: Send + Sync {
    /// Stores new jobs, all or none. A start that is not in the future is now.
    ///
    /// Where a stored job, or an earlier job of the batch, has the same idempotency key, the answer is that job. The
    /// key is checked before the id, so that a request that is sent twice with both is no duplicate.
    ///
    /// A job that must be unique is a duplicate of the jobs with its key, stored or earlier in the batch, that are in
    /// one of its states and younger than its period: of the one that was created first, then of the lowest id. What
    /// happens then is up to its policy. An answer says how a job was when it was stored, even if a later job of the
    /// batch replaced it.
    ///
    /// A job that brings a bound on the depth of its queue refuses the batch where more jobs would wait in that queue
    /// than it allows: scheduled, pending, available and retryable ones. A batch that does not make the queue any
    /// deeper is never refused for that. This is checked last, in the same atomic step, for the jobs in their order.
    fn enqueue(&self, jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>>;

    /// Claims available jobs under leases: queues in the order given, in each the highest priority first, then what
    /// became available first, then by id. A job that has expired is not claimed. The run counts from here on. A job
    /// that does not fit into the bytes of the claim ends it; no job behind it is claimed in its place.
    ///
    /// Queues that are held, and queues that are paused, are passed over as a whole. Whether a queue is paused is
    /// the store's own knowledge, whatever the caller holds: another server on the same store may have paused it.
    ///
    /// A job is passed over where a limit of one of its groups allows no further run, and the next that is allowed is
    /// claimed in its place. Limits are checked in the atomic step that claims, against all that is stored: active
    /// jobs, and the starts of runs, which are stored with it.
    fn claim(&self, claim: Claim, now: Moment) -> StoreFuture<'_, Claimed>;

    /// A heartbeat: each lease lasts `span` from now, or else its own span, and no less than the job asks for. Its
    /// deadline stays.
    ///
    /// A lease that ran out is still extended as long as the run has not been ended: the worker is alive, and no
    /// other worker has the job. A run that [`Store::reclaim`] or another verb ended stays ended.
    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>>;

    /// Ends runs in the order given. Each is answered separately, and a refusal of one does not affect the others.
    ///
    /// The checks, in this order: there is such a job; it is active, otherwise a token that it once had is stale, and
    /// everything else is refused for the wrong state; the token fits the lease. As with an extension, a lease that
    /// ran out is valid as long as the run has not been ended. Success that is reported again with the token that
    /// reported it first changes nothing, and the answer says that it was repeated.
    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>>;

    /// Ends runs whose lease ran out or whose timeout passed, at most `limit`, by the same decision as reported
    /// failures: what was overdue first comes first, then by id. Where both apply, the run timed out. After a
    /// standstill, runs have more time, as [`Store::stood_still`] says.
    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>>;

    /// Records that the server stood still and could not receive heartbeats and reports, which may still arrive. A run
    /// without a heartbeat since then is not overdue before one span of its lease has passed from the end of the
    /// standstill, or the length of the standstill, if that is less.
    ///
    /// This applies to the server that calls it. It is not stored, and other servers on the same store go on.
    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()>;

    /// Discards waiting jobs that have expired, in the order of time, then by id; then makes due jobs
    /// available; at most `limit` of both.
    ///
    /// Due jobs of one queue go in the order of time, then by id. Queues take turns: first the first due
    /// job of each queue, then the second of each, and so on, in each turn in the order of time, then by
    /// id. So a queue with many due jobs delays no other queue by more than a turn.
    ///
    /// Due jobs that are `held` stay as they are, delay no other job, and do not count; they expire like any
    /// other. The store passes over a held queue as a whole, however many jobs wait in it. Whether a queue is
    /// paused is no concern of this verb.
    ///
    /// A job that has failed and expires before its retry becomes a dead letter where its policy says so.
    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>>;

    /// Cancels a job, whether or not a worker has it.
    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>>;

    /// Makes a pending job available.
    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>>;

    /// Makes a job that has ended run again as if it were new, with another specification where the redrive brings
    /// one. Without a new expiry, the job does not expire any more. Its failures stay, a body that is replaced is
    /// stored as a revision, and leases are counted on.
    ///
    /// A job that must be unique is refused while another job makes it a duplicate, whatever its policy says about
    /// conflicts.
    fn redrive(&self, id: JobId, redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>>;

    /// Removes a job that has ended, and its idempotency key.
    fn remove(&self, id: JobId) -> StoreFuture<'_, Result<Job, Refusal>>;

    /// Removes jobs that ended long enough ago, at most `limit`: first those that are no dead letters, then dead
    /// letters, of each what ended first, then by id. Answers how many.
    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize>;

    /// Pauses or resumes a queue. A queue that no job and no pause has named so far is created or refused as
    /// `missing` says; `None` is the refusal, and nothing has changed.
    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>>;

    /// Removes a queue that has no jobs, paused or not. The next job that names it creates it again.
    fn forget_queue(&self, queue: Arc<str>) -> StoreFuture<'_, Result<Queue, QueueRefusal>>;

    /// Removes all queues that have no jobs, are not paused, and were created at least `age` ago. Answers their
    /// names, in order.
    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>>;

    /// Sets the limits of a group; absent, what was set is removed. They apply from the next claim on, on all nodes. A
    /// queue for which something is set exists, and is not pruned.
    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()>;

    /// No run of a group starts before this time, whatever its limits allow: the group of a key or of a type. A queue
    /// is paused instead.
    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()>;

    /// What is set for which groups, in their order.
    fn settings(&self) -> StoreFuture<'_, Vec<(Group, Setting)>>;

    /// How groups stand, in their order: the one that is asked for, or all of which something is known. A group of
    /// which nothing is set or stored, and that has no available or active jobs, is not known.
    fn standings(&self, group: Option<Group>, now: Moment) -> StoreFuture<'_, Vec<Standing>>;

    /// One job.
    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>>;

    /// Those of some jobs that are stored, in the order asked for.
    fn get_many(&self, ids: Vec<JobId>) -> StoreFuture<'_, Vec<Job>> {
        Box::pin(async move {
            let mut jobs = Vec::with_capacity(ids.len());
            for id in ids {
                jobs.extend(self.get(id).await?);
            }
            Ok(jobs)
        })
    }

    /// Jobs that match a filter: dead letters by when they ended, the latest first, then by id; all others by id, the
    /// newest first.
    ///
    /// A list delays other verbs only for a moment. Its pages are not a snapshot: a job that is there, and matches,
    /// from the first page to the last is on exactly one of them.
    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed>;

    /// All queues that a job or a pause has named and that were not removed since, by name.
    fn queues(&self) -> StoreFuture<'_, Vec<Queue>>;

    /// The same with what waits in them at this time. The effort does not grow with the number of jobs.
    fn loads(&self, now: Moment) -> StoreFuture<'_, Vec<QueueLoad>>;

    /// The names of the queues that are paused, in order.
    fn paused(&self) -> StoreFuture<'_, Vec<Arc<str>>> {
        Box::pin(async move {
            let queues = self.queues().await?;
            Ok(queues.into_iter().filter(|queue| queue.paused).map(|queue| queue.name).collect())
        })
    }

    /// The next moment at which there is something to reclaim or to promote, which may be past; absent
    /// where nothing waits. Due times of jobs that are `held` do not count; their leases and expiries do. A
    /// time that has come counts as over: due at 5 is due at 5.
    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>>;

    /// Stores new runs, all or none. Each is pending.
    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>>;

    /// Runs that are pending, and their messages. Nothing changes: what comes of it is written by [`Store::advance`].
    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>>;

    /// Writes steps of runs in the order given. Each is one atomic step, is answered separately, and is refused whole
    /// where its run has advanced since it was computed: then the same messages are there to be read again.
    ///
    /// A step that ends a run which another run has started leaves a message in the inbox of that run. So does a job
    /// of a run whenever it ends or is redriven, whatever verb does that, as long as the run is stored. A run that has
    /// ended still has an inbox, and a step can make it go on.
    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>>;

    /// Leaves a message in the inbox of a run, whether or not it has ended, unless too many wait there.
    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>>;

    /// One run.
    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>>;

    /// The run that has a key.
    fn run_of_key(&self, key: Arc<str>) -> StoreFuture<'_, Option<Run>>;

    /// Runs that match a filter, at most `limit`: by id, the newest first, or by key where the filter has keys.
    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>>;

    /// When the next run of these programs, of these versions or older ones, is pending, which may be past; absent
    /// where none will be without a message.
    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>>;

    /// Writes a mark that changes nothing, as every verb writes: the answer says that what is written now is safe from
    /// a power cut. A store that writes nothing to a disk has nothing to find out.
    fn probe(&self, now: Moment) -> StoreFuture<'_, ()> {
        let _ = now;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Removes runs that ended at least `age` ago and have no messages, at most `limit`: what ended first comes first,
    /// then by id. Answers how many.
    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize>;

    /// Makes jobs of the inbox entries that applications have written in their own transactions, at most `limit`, the
    /// oldest first. `open` decodes an entry in the atomic step that stores the job and deletes the entry. An entry
    /// that cannot be decoded is set aside with the reason. An entry with the idempotency key of a stored job makes
    /// no second job.
    ///
    /// Stores that applications cannot write to have no inbox.
    fn drain_inbox<'a>(&'a self, open: &'a Decoder<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Drained> {
        let _ = (open, limit, now);
        Box::pin(std::future::ready(Ok(Drained::default())))
    }
}

/// A worker's request for jobs.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The queues, the most wanted first.
    pub queues: Vec<Arc<str>>,
    /// What is held.
    pub held: Arc<Held>,
    /// How many jobs at most.
    pub count: usize,
    /// How many bytes the jobs may have together, by [`Job::bytes`]. The claim ends before the job that would exceed
    /// it, so that no job is claimed and not delivered. The first job always fits.
    pub bytes: usize,
    /// Who asks; empty where it gives no name.
    pub worker: Arc<str>,
    /// How long a lease lasts, where the job does not say.
    pub lease: Span,
    /// How long a run may take, where the job does not say; absent, as long as it likes.
    pub timeout: Option<Span>,
    /// Random bits, from which each lease gets its nonce.
    pub seed: u64,
}

impl Claim {
    /// A claim of one job of any size, without a worker's name; nothing is held, and runs have no limit.
    #[must_use]
    pub fn new(queues: Vec<Arc<str>>, lease: Span, seed: u64) -> Self {
        let (held, worker) = (Arc::default(), Arc::default());
        Self { queues, held, count: 1, bytes: usize::MAX, worker, lease, timeout: None, seed }
    }
}

/// What came of a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claimed {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Groups that allowed no further run, so that jobs were passed over; all of them where no job was claimed.
    pub full: Vec<Full>,
}

/// A group that allows no further run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    /// The group.
    pub group: Group,
    /// When it may allow one; absent where that takes the end of a run.
    pub opens: Option<Moment>,
}

impl Claimed {
    /// Jobs, and nothing was passed over.
    #[must_use]
    pub const fn of(jobs: Vec<Job>) -> Self {
        Self { jobs, full: Vec::new() }
    }

    /// A job was passed over because of this group, for which other limits apply from `until` on.
    pub(crate) fn pass(&mut self, group: Group, room: Room, until: Option<Moment>) {
        let opens = match room {
            Room::Open | Room::Busy => until,
            Room::Until(opens) => until.into_iter().chain([opens]).min(),
        };
        match self.full.iter_mut().find(|full| full.group == group) {
            // Another of its jobs brings other limits.
            Some(full) => full.opens = full.opens.into_iter().chain(opens).min(),
            None => self.full.push(Full { group, opens }),
        }
    }
}

/// A reference to the lease of a job, with its token.
#[derive(Clone, Debug)]
pub struct LeaseRef {
    /// The job.
    pub id: JobId,
    /// The token.
    pub token: Token,
}

/// The token of a lease. Clients without tokens name the worker, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The token of the lease.
    Lease(LeaseToken),
    /// The name of the worker. A lease that was claimed without a name accepts any.
    Worker(Arc<str>),
    /// None: the caller names neither, and any lease matches.
    None,
}

/// The end of an attempt.
pub struct Settlement {
    /// The lease that it ends.
    pub lease_ref: LeaseRef,
    /// How it ended.
    pub report: AttemptOutcome,
}

/// How a run ended.
pub enum AttemptOutcome {
    /// It succeeded, with what the handler returned.
    Done(Option<Blob>),
    /// It failed. The decision is made inside of the atomic step, on the stored job. A
    /// verdict that counts nothing (a requeue) releases the run, and records nothing.
    Failed(Box<dyn Fn(&Job) -> Decision + Send + Sync>),
    /// It was released, to run again after this time; zero is immediately. The run does not
    /// count. It is refused when that happened `most` times already since the last failure.
    Released {
        /// How long to wait.
        delay: Span,
        /// How often this may happen in a row.
        most: u32,
    },
}

/// What was decided about a failure.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The decision.
    pub verdict: Verdict,
    /// When the next run is due, where there is one.
    pub due: Moment,
    /// The error, for the record.
    pub error: Blob,
    /// The policy that decided, where that is not the job's own.
    pub policy: Option<Arc<Policy>>,
}

/// Why a run was ended by the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdue {
    /// There was no heartbeat for too long.
    Stalled,
    /// The run took too long.
    TimedOut,
}

/// Decides about a run that is overdue.
pub type Decider<'a> = dyn Fn(&Job, Overdue) -> Decision + Send + Sync + 'a;

/// How long jobs that have ended are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retention {
    /// Completed and cancelled ones, and discarded ones that are no dead letters.
    pub finished: Span,
    /// Dead letters.
    pub dead: Span,
}
