//! The state around a store: the clock, the leases so far, and the values that plans stand for.

use super::answer::StepAnswer;
use super::plan::{End, FEW, HeldPlan, JobPlan, LeasePlan, LimitPlan, SpecPlan, StartPlan, TokenPlan, UniquePlan};
use super::policies::policies;
use super::run_plan::RunsStep;
use super::step::Step;
use crate::conformance::harness::walked;
use crate::{
    AttemptOutcome, Bounds, Claim, Decision, Filter, Group, Held, Job, JobId, LeaseRef, LeaseToken, Limits, Missing,
    NewJob, Overdue, Page, Rate, Redrive, Retention, RunId, Setting, Settlement, Spec, Standing, Standstill, Start,
    Store, StoreError, Token, Unique, UniqueKey,
};
use redrive_policy::{Draw, Failure, Moment, Policy, Problems, Span, decide};
use std::sync::Arc;

/// What both stores of a history share.
pub(super) struct World {
    pub(super) now: Moment,
    pub(super) ids: Vec<JobId>,
    pub(super) enqueued: u32,
    pub(super) runs: Vec<RunId>,
    pub(super) started: u32,
    leases: Vec<(JobId, LeaseToken)>,
    policies: Vec<Arc<Policy>>,
}

impl World {
    pub(super) fn new() -> Result<Self, Problems> {
        let (ids, runs, leases) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { now: START, ids, enqueued: 0, runs, started: 0, leases, policies: policies()? })
    }

    /// Applies a step to one of the stores.
    pub(super) async fn apply(&self, store: &dyn Store, step: &Step) -> Result<StepAnswer, StoreError> {
        let now = self.now;
        Ok(match step {
            Step::Enqueue(plans) => {
                let jobs = (0..).zip(plans).map(|(place, plan)| self.new_job(place, plan)).collect();
                StepAnswer::Enqueued(store.enqueue(jobs, now).await?)
            }
            Step::Claim { queues, held: plan, count, bytes, worker, lease_ms, timeout_ms, seed } => {
                let claim = Claim {
                    queues: queues.iter().map(|queue| word("queue", *queue)).collect(),
                    held: Arc::new(held(*plan)),
                    count: *count,
                    bytes: *bytes,
                    worker: word("worker", *worker),
                    lease: Span::from_millis(*lease_ms),
                    timeout: timeout_ms.map(Span::from_millis),
                    seed: *seed,
                };
                StepAnswer::Jobs(store.claim(claim, now).await?.jobs)
            }
            Step::Extend(plans, span_ms) => {
                let lease_refs = plans.iter().map(|plan| self.lease_ref(*plan)).collect();
                StepAnswer::Each(store.extend(lease_refs, span_ms.map(Span::from_millis), now).await?)
            }
            Step::Settle(plans) => {
                let settlement = |(lease_ref, end): &(LeasePlan, End)| Settlement {
                    lease_ref: self.lease_ref(*lease_ref),
                    report: self.report(*end),
                };
                StepAnswer::Settled(store.settle(plans.iter().map(settlement).collect(), now).await?)
            }
            Step::Reclaim(limit) => {
                let decide =
                    |job: &Job, why: Overdue| decision(job, &Failure::of_type("overdue"), &format!("{why:?}"), now);
                StepAnswer::Transitions(store.reclaim(&decide, *limit, now).await?)
            }
            Step::StoodStill(ms) => {
                store.stood_still(Standstill { ended: now, length: Span::from_millis(*ms) }).await?;
                StepAnswer::Nothing
            }
            Step::Promote(plan, limit) => StepAnswer::Transitions(store.promote(&held(*plan), *limit, now).await?),
            Step::Cancel(job) => StepAnswer::Transition(store.cancel(self.id(*job), now).await?),
            Step::Activate(job) => StepAnswer::Transition(store.activate(self.id(*job), now).await?),
            Step::Redrive(job, plan) => {
                // What a job must be unique in belongs to what a redrive can replace.
                let unique = plan.filter(|plan| plan.kind == 0).map(|plan| unique(plan.queue));
                let redrive = Redrive { spec: plan.map(|plan| self.spec(plan)), unique, by: word("operator", *job) };
                StepAnswer::Transition(store.redrive(self.id(*job), redrive, now).await?)
            }
            Step::Remove(job) => StepAnswer::One(store.remove(self.id(*job)).await?),
            Step::Prune(finished_ms, dead_ms, limit) => {
                let [finished, dead] = [*finished_ms, *dead_ms].map(Span::from_millis);
                StepAnswer::Count(store.prune(Retention { finished, dead }, *limit, now).await?)
            }
            Step::Pause(queue, paused, only_known) => {
                let missing = if *only_known { Missing::Refuse } else { Missing::Create };
                StepAnswer::Queue(store.pause(any_queue(*queue), *paused, missing, now).await?)
            }
            Step::ForgetQueue(queue) => StepAnswer::Forgotten(store.forget_queue(any_queue(*queue)).await?),
            Step::PruneQueues(age) => StepAnswer::Names(store.prune_queues(Span::from_millis(*age), now).await?),
            Step::SetLimit(group, most, ms) => {
                let bounds = Bounds { concurrency: *most, ..Bounds::default() };
                let until = ms.map(|ms| moved(now, ms.into()));
                let setting = most.map(|_| Setting { bounds, until, ..Setting::default() });
                store.set_limit(any_group(*group), setting, now).await?;
                StepAnswer::Nothing
            }
            Step::HoldGroup(group, ms) => {
                store.hold_group(Group::Key(word("limit", *group)), now.after(Span::from_millis(*ms)), now).await?;
                StepAnswer::Nothing
            }
            Step::Runs(step) => self.apply_to_runs(store, step).await?,
            _ => self.look(store, step).await?,
        })
    }

    /// Applies a step that only reads.
    async fn look(&self, store: &dyn Store, step: &Step) -> Result<StepAnswer, StoreError> {
        Ok(match step {
            Step::Get(job) => StepAnswer::Job(store.get(self.id(*job)).await?),
            Step::List(plan) => {
                let ago = |ms| moved(self.now, -i64::from(ms));
                let filter = Filter {
                    queue: plan.queue.map(|queue| word("queue", queue)),
                    kind: plan.kind.map(|kind| word("kind", kind)),
                    state: plan.state,
                    dead: plan.dead,
                    finished_since: plan.since_ms.map(ago),
                    finished_before: plan.before_ms.map(ago),
                };
                StepAnswer::Listed(walked(store, filter, Page::new(plan.offset, plan.limit)).await?)
            }
            Step::Standings => StepAnswer::Standings(counts(store.standings(None, self.now).await?)),
            Step::Queues => StepAnswer::Queues(store.queues().await?),
            Step::Paused => StepAnswer::Names(store.paused().await?),
            Step::NextWake(plan) => StepAnswer::Wake(store.next_wake(&held(*plan)).await?),
            Step::PassToNextWake => StepAnswer::Wake(store.next_wake(&Held::new()).await?),
            _ => StepAnswer::Nothing,
        })
    }

    /// Records the answer to a step, and moves the clock.
    pub(super) fn record(&mut self, step: &Step, answer: &StepAnswer) {
        if let Step::Enqueue(plans) = step {
            let new = (0..).zip(plans).filter(|(_, plan)| plan.id.is_none());
            let new: Vec<JobId> = new.map(|(place, _)| self.new_id(place)).collect();
            self.ids.extend(new);
            self.enqueued = self.enqueued.saturating_add(u32::try_from(plans.len()).unwrap_or(u32::MAX));
        }
        if let Step::Runs(step) = step {
            self.record_runs(step);
        }
        if let (Step::Claim { .. }, StepAnswer::Jobs(jobs)) = (step, answer) {
            self.leases.extend(jobs.iter().filter_map(|job| Some((job.id, job.lease.as_ref()?.token))));
        }
        self.now = match (step, answer) {
            (Step::Pass(ms), _) => moved(self.now, i64::from(*ms)),
            (Step::StepBack(ms), _) => moved(self.now, -i64::from(*ms)),
            (Step::PassToNextWake | Step::Runs(RunsStep::PassToNext), StepAnswer::Wake(Some(wake))) => {
                self.now.max(*wake)
            }
            _ => self.now,
        };
    }

    /// The id of a job that was enqueued, counted back from the last; an unknown id before the first.
    pub(super) fn id(&self, back: u8) -> JobId {
        let known = self.ids.iter().rev().nth(back.into()).copied();
        known.unwrap_or_else(|| JobId::new(START, u128::MAX - u128::from(back)))
    }

    /// An id for the job at an index of a batch. Ids do not sort by the time of the enqueue.
    pub(super) fn new_id(&self, place: u32) -> JobId {
        let number = self.enqueued.wrapping_add(place).wrapping_mul(0x9e37_79b1);
        JobId::new(START, u128::from(number))
    }

    pub(super) fn new_job(&self, place: u32, plan: &JobPlan) -> NewJob {
        let start = match plan.start {
            StartPlan::Available => Start::Available,
            StartPlan::Pending => Start::Pending,
            StartPlan::Scheduled(ms) => Start::Scheduled(moved(self.now, ms.into())),
        };
        let key = plan.key.map(|key| word("key", key));
        let id = plan.id.map_or_else(|| self.new_id(place), |back| self.id(back));
        NewJob {
            id,
            spec: self.spec(plan.spec),
            start,
            idempotency_key: key,
            parent: None,
            unique: plan.unique.map(UniquePlan::policy),
            depth: plan.depth.map(u64::from),
        }
    }

    fn spec(&self, plan: SpecPlan) -> Arc<Spec> {
        Arc::new(Spec {
            kind: word("kind", plan.kind),
            queue: word("queue", plan.queue),
            priority: plan.priority.into(),
            body: format!("{plan:?}").into_bytes().into(),
            policy: Arc::clone(&self.policies[usize::from(plan.policy) % self.policies.len()]),
            timeout: plan.timeout_ms.map(Span::from_millis),
            lease: plan.lease_ms.map(Span::from_millis),
            expires: plan.expires_ms.map(|ms| moved(self.now, ms.into())),
            limits: plan.limit.map(|plan| Arc::new(limits(plan))),
        })
    }

    fn lease_ref(&self, plan: LeasePlan) -> LeaseRef {
        let made_up = || (self.id(plan.back), LeaseToken::derive(0, self.id(plan.back), 1));
        let (id, token) = self.leases.iter().rev().nth(plan.back.into()).copied().unwrap_or_else(made_up);
        let token = match plan.token {
            TokenPlan::Lease => Token::Lease(token),
            TokenPlan::Forged => Token::Lease(LeaseToken { nonce: !token.nonce, ..token }),
            TokenPlan::Ahead => Token::Lease(LeaseToken { number: token.number + 1, ..token }),
            TokenPlan::Worker(worker) => Token::Worker(word("worker", worker)),
            TokenPlan::None => Token::None,
        };
        LeaseRef { id, token }
    }

    fn report(&self, end: End) -> AttemptOutcome {
        let now = self.now;
        match (end, end.failure()) {
            (_, Some(failure)) => AttemptOutcome::Failed(Box::new(move |job| decision(job, &failure, "reported", now))),
            (End::Released { delay_ms, most }, None) => {
                AttemptOutcome::Released { delay: Span::from_millis(delay_ms), most }
            }
            (End::Done(result), _) => AttemptOutcome::Done(result.map(|byte| Arc::from([byte]))),
            (_, None) => AttemptOutcome::Done(None),
        }
    }
}

/// The time at which every history starts.
pub(super) const START: Moment = Moment::from_micros(1_700_000_000_000_000);

/// The policy's decision. The error contains a digest of the job that was decided on, so that stores that pass a
/// different one disagree. About half of the decisions come with a policy besides the job's own.
fn decision(job: &Job, failure: &Failure<'_>, cause: &str, now: Moment) -> Decision {
    let seen = digest(&format!("{job:?}"));
    let verdict = decide(&job.spec.policy, &job.history, failure, now, Draw::from_bits(seen));
    let due = now.after(verdict.delay().unwrap_or_default());
    let policy = seen.is_multiple_of(2).then(|| Arc::clone(&job.spec.policy));
    Decision { verdict, due, error: format!("{cause} {seen:016x}").into_bytes().into(), policy }
}

/// A number that stands for a text.
fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn held(plan: HeldPlan) -> Held {
    let queues = match plan {
        HeldPlan::None => 0..0,
        HeldPlan::All => 0..FEW,
        HeldPlan::One(queue) => queue..queue + 1,
    };
    Held::of_queues(queues.map(|queue| word("queue", queue)))
}

/// One of the queues of jobs, or one that never has any.
fn any_queue(number: u8) -> Arc<str> {
    if number < FEW { word("queue", number) } else { "queue-without-jobs".into() }
}

pub(super) fn word(what: &str, number: u8) -> Arc<str> {
    format!("{what}-{}", number % FEW).into()
}

pub(super) fn moved(moment: Moment, ms: i64) -> Moment {
    Moment::from_micros(moment.micros() + ms * 1_000)
}

/// What a job must be unique in that is redriven with another specification.
fn unique(key: u8) -> Arc<Unique> {
    Arc::new(Unique::new(UniqueKey([key; 32])))
}

/// The limits of a job. Jobs of a key that are limited in time have the same rate or throttle, so that a start matters
/// for as long, whichever of them is first.
fn limits(plan: LimitPlan) -> Limits {
    let rate = Rate { limit: 2, period: Span::from_millis(60) };
    let mut bounds = Bounds { concurrency: plan.concurrency, ..Bounds::default() };
    match (plan.timed, plan.key) {
        (false, _) => {}
        (true, 0) => bounds.throttle = Some(rate),
        (true, _) => bounds.rate = Some(rate),
    }
    Limits { by_kind: plan.by_kind, ..Limits::own(word("limit", plan.key), bounds) }
}

/// A group of any kind.
fn any_group(group: u8) -> Group {
    match group % 3 {
        0 => Group::Key(word("limit", group / 3)),
        1 => Group::Queue(word("queue", group / 3)),
        _ => Group::Kind(word("kind", group / 3)),
    }
}

/// What is counted of groups, and what holds them. Which limits their jobs bring is left out where they differ.
fn counts(standings: Vec<Standing>) -> Vec<Standing> {
    let counted = |standing: Standing| Standing { bounds: Bounds::default(), started: 0, opens: None, ..standing };
    standings.into_iter().map(counted).collect()
}
