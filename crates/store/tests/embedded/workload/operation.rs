//! Operations as data, applied to a store.

use redrive_policy::{Draw, Failure, Moment, Span, decide};
use redrive_store::conformance::block_on;
use redrive_store::{
    AttemptOutcome, Claim, Decision, Filter, Held, Job, JobId, LeaseRef, Missing, NewJob, NewRun, Overdue, Page,
    PendingRuns, Redrive, Retention, RunFilter, RunId, RunStep, Settlement, Signal, Spec, Store, StoreError,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

/// An operation with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(super) now: Moment,
    pub(super) verb: Verb,
}

#[derive(Clone, Debug)]
pub(super) enum Verb {
    Enqueue(Vec<NewJob>),
    Claim(Claim),
    Extend(Vec<LeaseRef>, Option<Span>),
    Settle(Vec<(LeaseRef, Ending)>),
    Reclaim(usize),
    Promote(usize),
    Cancel(JobId),
    Activate(JobId),
    Redrive(JobId, Option<Arc<Spec>>),
    Remove(JobId),
    Prune(Retention, usize),
    Pause(Arc<str>, bool),
    Get(JobId),
    List(Filter, Page),
    Queues,
    NextWake,
    StartRuns(Vec<NewRun>),
    Advance(Vec<RunStep>),
    Signal(RunId, Signal),
    PruneRuns(Span, usize),
    PendingRuns(PendingRuns),
}

#[derive(Clone, Debug)]
pub(super) enum Ending {
    Done(Option<Arc<[u8]>>),
    Failed(f64),
    Released(Span),
}

/// The answer of a store as text, or its error.
pub(crate) type VerbFuture<'a> = Pin<Box<dyn Future<Output = Result<String, StoreError>> + 'a>>;

impl Op {
    /// Calls the operation at once; the answer can be awaited later.
    pub(crate) fn call<'a>(&self, store: &'a dyn Store) -> VerbFuture<'a> {
        macro_rules! call {
            ($answer:expr) => {{
                let answer = $answer;
                Box::pin(async move { answer.await.map(|answer| format!("{answer:?}")) })
            }};
        }
        let now = self.now;
        match self.verb.clone() {
            Verb::Enqueue(jobs) => call!(store.enqueue(jobs, now)),
            Verb::Claim(claim) => call!(store.claim(claim, now)),
            Verb::Extend(lease_refs, span) => call!(store.extend(lease_refs, span, now)),
            Verb::Settle(list) => {
                let settlements =
                    list.into_iter().map(|(lease_ref, ending)| Settlement { lease_ref, report: ending.report(now) });
                call!(store.settle(settlements.collect(), now))
            }
            Verb::Reclaim(limit) => call!(store.reclaim(&decide_overdue, limit, now)),
            Verb::Promote(limit) => call!(store.promote(&HELD, limit, now)),
            Verb::Cancel(id) => call!(store.cancel(id, now)),
            Verb::Activate(id) => call!(store.activate(id, now)),
            Verb::Redrive(id, spec) => call!(store.redrive(id, Redrive { spec, unique: None, by: "ada".into() }, now)),
            Verb::Remove(id) => call!(store.remove(id)),
            Verb::Prune(retention, limit) => call!(store.prune(retention, limit, now)),
            Verb::Pause(queue, paused) => call!(store.pause(queue, paused, Missing::Create, now)),
            Verb::Get(id) => call!(store.get(id)),
            // Stores may end a page after the last job that matches, or after the last one that was read.
            Verb::List(filter, page) => {
                let listed = store.list(filter, page);
                call!(async move { listed.await.map(|listed| (listed.jobs, listed.total)) })
            }
            Verb::Queues => call!(store.queues()),
            Verb::NextWake => call!(store.next_wake(&HELD)),
            Verb::StartRuns(runs) => call!(store.start_runs(runs, now)),
            Verb::Advance(steps) => call!(store.advance(steps, now)),
            Verb::Signal(run, signal) => call!(store.signal(run, signal, now)),
            Verb::PruneRuns(age, limit) => call!(store.prune_runs(age, limit, now)),
            Verb::PendingRuns(pending) => call!(store.pending_runs(pending, now)),
        }
    }

    /// Calls the operation and waits for the answer.
    pub(crate) fn play(&self, store: &dyn Store) -> Result<String, StoreError> {
        block_on(self.call(store))
    }
}

impl Ending {
    fn report(self, now: Moment) -> AttemptOutcome {
        match self {
            Self::Done(result) => AttemptOutcome::Done(result),
            Self::Failed(draw) => AttemptOutcome::Failed(Box::new(move |job| decision(job, now, draw))),
            Self::Released(delay) => AttemptOutcome::Released { delay, most: 2 },
        }
    }
}

fn decision(job: &Job, now: Moment, draw: f64) -> Decision {
    let failure = Failure::of_type(if draw < 0.2 { "fatal" } else { "error" });
    let verdict = decide(&job.spec.policy, &job.history, &failure, now, Draw::try_from(draw).unwrap());
    let error = format!("{{\"draw\":{draw}}}").into_bytes().into();
    Decision { verdict, due: now.after(verdict.delay().unwrap_or_default()), error, policy: None }
}

fn decide_overdue(job: &Job, why: Overdue) -> Decision {
    let until = job.lease.as_ref().unwrap().until;
    decision(job, until, if why == Overdue::Stalled { 0.3 } else { 0.9 })
}

/// One of the queues, always.
static HELD: LazyLock<Held> = LazyLock::new(|| Held::of_queues(["three".into()]));

/// The whole contents of a store, as text.
pub(crate) fn everything(store: &dyn Store) -> Result<String, StoreError> {
    block_on(async {
        let all = store.list(Filter::default(), Page::new(0, usize::MAX)).await?;
        let (queues, wake) = (store.queues().await?, store.next_wake(&HELD).await?);
        let (runs, next) = (store.runs(RunFilter::default(), usize::MAX).await?, store.next_run(programs()).await?);
        let pending = store.pending_runs(all_pending(), Moment::from_micros(i64::MAX)).await?;
        let keys = [store.run_of_key("key 0".into()).await?, store.run_of_key("key 1".into()).await?];
        Ok(format!("{all:?}\n{queues:?}\n{wake:?}\n{runs:?}\n{next:?}\n{pending:?}\n{keys:?}"))
    })
}

pub(super) fn programs() -> Vec<(Arc<str>, u32)> {
    vec![("flow".into(), 1), ("cron".into(), 1)]
}

pub(super) fn all_pending() -> PendingRuns {
    PendingRuns { programs: programs(), only: None, limit: usize::MAX, messages: usize::MAX }
}
