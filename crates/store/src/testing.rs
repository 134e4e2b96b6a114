//! Stores around another store, for tests: what they do not change, they pass on.

use crate::{
    Claim, Claimed, Decider, Decoder, Drained, EnqueueRefusal, Enqueued, Filter, Group, Held, Job, JobId, LeaseRef,
    Listed, Missing, NewJob, NewRun, Page, PendingRun, PendingRuns, Queue, QueueLoad, QueueRefusal, Redrive, Refusal,
    Retention, Run, RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement, Signal, Standing, Standstill,
    StartRefusal, Stepped, Store, StoreFuture, Transition,
};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

/// Makes the list of verbs, the trait of wrappers, and a store of each wrapper.
macro_rules! verbs {
    ($($variant:ident $verb:ident($($given:ident: $of:ty),*) -> $answer:ty;)*) => {
        /// A verb of a store.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Verb {
            $(#[doc = concat!("[`Store::", stringify!($verb), "`].")] $variant,)*
        }

        /// A store around another one. It overrides the verbs that it changes, or [`Wrapper::pass`] for all of them.
        pub trait Wrapper: Send + Sync {
            /// The store that verbs are passed on to.
            fn inner(&self) -> &dyn Store;

            /// Passes a verb on. All verbs that are not overridden come through here.
            fn pass<'a, T: Send + 'a>(
                &'a self,
                verb: Verb,
                call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
            ) -> StoreFuture<'a, T> {
                let _ = verb;
                call(self.inner())
            }

            $(
                #[doc = concat!("[`Store::", stringify!($verb), "`], passed on.")]
                fn $verb<'a>(&'a self, $($given: $of),*) -> StoreFuture<'a, $answer> {
                    self.pass(Verb::$variant, move |store| store.$verb($($given),*))
                }
            )*
        }

        impl<W: Wrapper> Store for W {
            $(fn $verb<'a>(&'a self, $($given: $of),*) -> StoreFuture<'a, $answer> {
                Wrapper::$verb(self, $($given),*)
            })*
        }
    };
}

verbs! {
    Enqueue enqueue(jobs: Vec<NewJob>, now: Moment) -> Result<Vec<Enqueued>, EnqueueRefusal>;
    Claim claim(claim: Claim, now: Moment) -> Claimed;
    Extend extend(lease_refs: Vec<LeaseRef>, span: Option<Span>, now: Moment) -> Vec<Result<Job, Refusal>>;
    Settle settle(settlements: Vec<Settlement>, now: Moment) -> Vec<Result<Settled, Refusal>>;
    Reclaim reclaim(decide: &'a Decider<'a>, limit: usize, now: Moment) -> Vec<Transition>;
    StoodStill stood_still(standstill: Standstill) -> ();
    Promote promote(held: &'a Held, limit: usize, now: Moment) -> Vec<Transition>;
    Cancel cancel(id: JobId, now: Moment) -> Result<Transition, Refusal>;
    Activate activate(id: JobId, now: Moment) -> Result<Transition, Refusal>;
    Redrive redrive(id: JobId, redrive: Redrive, now: Moment) -> Result<Transition, Refusal>;
    Remove remove(id: JobId) -> Result<Job, Refusal>;
    Prune prune(retention: Retention, limit: usize, now: Moment) -> usize;
    Pause pause(queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> Option<Queue>;
    ForgetQueue forget_queue(queue: Arc<str>) -> Result<Queue, QueueRefusal>;
    PruneQueues prune_queues(age: Span, now: Moment) -> Vec<Arc<str>>;
    SetLimit set_limit(group: Group, setting: Option<Setting>, now: Moment) -> ();
    HoldGroup hold_group(group: Group, until: Moment, now: Moment) -> ();
    Settings settings() -> Vec<(Group, Setting)>;
    Standings standings(group: Option<Group>, now: Moment) -> Vec<Standing>;
    Get get(id: JobId) -> Option<Job>;
    GetMany get_many(ids: Vec<JobId>) -> Vec<Job>;
    List list(filter: Filter, page: Page) -> Listed;
    Queues queues() -> Vec<Queue>;
    Loads loads(now: Moment) -> Vec<QueueLoad>;
    Paused paused() -> Vec<Arc<str>>;
    NextWake next_wake(held: &'a Held) -> Option<Moment>;
    StartRuns start_runs(runs: Vec<NewRun>, now: Moment) -> Result<Vec<Run>, StartRefusal>;
    PendingRuns pending_runs(pending: PendingRuns, now: Moment) -> Vec<PendingRun>;
    Advance advance(steps: Vec<RunStep>, now: Moment) -> Vec<Stepped>;
    Signal signal(id: RunId, signal: Signal, now: Moment) -> Result<Run, RunRefusal>;
    Run run(id: RunId) -> Option<Run>;
    RunOfKey run_of_key(key: Arc<str>) -> Option<Run>;
    Runs runs(filter: RunFilter, limit: usize) -> Vec<Run>;
    NextRun next_run(programs: Vec<(Arc<str>, u32)>) -> Option<Moment>;
    Probe probe(now: Moment) -> ();
    PruneRuns prune_runs(age: Span, limit: usize, now: Moment) -> usize;
    DrainInbox drain_inbox(open: &'a Decoder<'a>, limit: usize, now: Moment) -> Drained;
}
