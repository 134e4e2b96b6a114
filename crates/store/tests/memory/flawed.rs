//! Stores with one flaw each, to see that it is noticed.

use crate::MemorySubject;
use redrive_policy::{Moment, Span};
use redrive_store::conformance::{Subject, block_on};
use redrive_store::testing::Wrapper;
use redrive_store::{
    AttemptOutcome, Claim, Claimed, Decider, EnqueueRefusal, Enqueued, EventKind, Filter, Group, Held, Job, JobId,
    LeaseRef, Listed, Memory, Missing, NewJob, NewRun, OnConflict, Overdue, Page, PendingRun, PendingRuns, Queue,
    QueueFull, Redrive, Refusal, Retention, Run, RunFilter, RunId, RunRefusal, RunStep, Setting, Settled, Settlement,
    Signal, Standstill, StartRefusal, State, States, Stepped, Store, StoreError, StoreFuture, Token, Transition,
    Unique,
};
use std::sync::Arc;

/// What is wrong with the store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Flaw {
    IgnoresTokens,
    IgnoresWorkers,
    CallsStaleWrong,
    RefusesRepeatedSuccess,
    EnqueuesOneByOne,
    ForgetsKeys,
    IgnoresDepths,
    AllowsOneTooMany,
    ChecksDepthsFirst,
    CountsActiveJobsAsDepth,
    IgnoresUniqueness,
    IgnoresPeriods,
    LooksAtUnendedJobsOnly,
    IgnoresInsteadOfRejecting,
    KeepsNoSchedule,
    RedrivesDuplicates,
    ClaimsFromPausedQueues,
    ClaimsFromHeldQueues,
    EndsAClaimAtAHeldQueue,
    TakesAHoldForAPause,
    ForgetsPausedQueues,
    PausesUnknownQueues,
    ClaimsNewestFirst,
    ClaimsOneTooMany,
    ClaimsTooManyBytes,
    ForgetsLimits,
    IgnoresSettings,
    ForgetsHeldGroups,
    ExtendsByItsOwnSpan,
    ShortensLeases,
    ReclaimsLate,
    ReclaimsWithoutLimit,
    CallsEveryRunStalled,
    IgnoresStandstills,
    GrantsAWholeSpanAfterEveryStandstill,
    PromotesEarly,
    PromotesWithoutLimit,
    StopsAtAHeldJob,
    CountsHeldJobs,
    PromotesQueueByQueue,
    HoldsBackPausedQueues,
    RedrivesAsBefore,
    RedrivesWithTheOldExpiry,
    ForgetsRevisions,
    DiscardsWhatFailedAndExpired,
    ForgetsWhoRanWhat,
    PrunesDeadLettersEarly,
    PrunesWithoutLimit,
    ForgetsNewQueues,
    ListsOldestFirst,
    ListsDeadLettersByName,
    BeginsEveryPageAnew,
    CountsThePageOnly,
    NeverWakes,
    WakesForHeldJobs,
    KeepsTenFailures,
    LosesPausesAtRestart,
    LosesLeasesAtRestart,
    LosesResultsAtRestart,
    AnswersRepeatedSuccessAsNew,
    CallsASnoozeAFailure,
    ForgetsWhichRunWasReleased,
    GuessesTheStateBefore,
    ForgetsTheLeaseThatEnded,
    ForgetsVerdicts,
    ForgetsThePolicyOfTheWorker,
    ForgetsWhyRunsWereOverdue,
    ForgetsParents,
    IgnoresKeysOfRuns,
    ListsKeysFromTheirBeginning,
    StartsRunsOneByOne,
    CallsRunsEarly,
    ReadsRunsOfNewerVersions,
    ReadsRunsThatWereNotNamed,
    ReadsTheNewestMessages,
    PassesOverNewRuns,
    ReadsNewestRunsFirst,
    TellsNoRunOfExpiries,
    TellsNoRunOfCancellations,
    TellsNoRunOfRedrives,
    TellsNoRunOfItsRuns,
    RefusesTheRestOfABatch,
    IgnoresRevisions,
    ForgetsToConsume,
    ConsumesEverything,
    ForgetsTheSignalsOfAStep,
    ForgetsTheRunsOfAStep,
    ForgetsTimers,
    ForgetsWhoListens,
    ForgetsTheEventsOfAStep,
    TellsEverything,
    WritesPartOfARefusedStep,
    CancelsForeignJobs,
    ForgetsWhatIsPending,
    ForgetsTheJobsOfAStep,
    TakesSignalsWithoutLimit,
    CountsNoChildren,
    KeepsTheFirstStateOfRuns,
    EndsRunsAtTheirLastStep,
    ListsRunsOfAllPrograms,
    ListsEndedRunsToo,
    BeginsEveryListOfRunsAnew,
    ListsRunsOldestFirst,
    WakesForNewerVersions,
    PrunesRunsEarly,
    PrunesRunsWithoutLimit,
    LosesTimersAtRestart,
    LosesMessagesAtRestart,
}

impl Flaw {
    pub(crate) const ALL: [Self; 108] = [
        Self::IgnoresTokens,
        Self::IgnoresWorkers,
        Self::CallsStaleWrong,
        Self::RefusesRepeatedSuccess,
        Self::EnqueuesOneByOne,
        Self::ForgetsKeys,
        Self::IgnoresDepths,
        Self::AllowsOneTooMany,
        Self::ChecksDepthsFirst,
        Self::CountsActiveJobsAsDepth,
        Self::IgnoresUniqueness,
        Self::IgnoresPeriods,
        Self::LooksAtUnendedJobsOnly,
        Self::IgnoresInsteadOfRejecting,
        Self::KeepsNoSchedule,
        Self::RedrivesDuplicates,
        Self::ClaimsFromPausedQueues,
        Self::ClaimsFromHeldQueues,
        Self::EndsAClaimAtAHeldQueue,
        Self::TakesAHoldForAPause,
        Self::ForgetsPausedQueues,
        Self::PausesUnknownQueues,
        Self::ClaimsNewestFirst,
        Self::ClaimsOneTooMany,
        Self::ClaimsTooManyBytes,
        Self::ForgetsLimits,
        Self::IgnoresSettings,
        Self::ForgetsHeldGroups,
        Self::ExtendsByItsOwnSpan,
        Self::ShortensLeases,
        Self::ReclaimsLate,
        Self::ReclaimsWithoutLimit,
        Self::CallsEveryRunStalled,
        Self::IgnoresStandstills,
        Self::GrantsAWholeSpanAfterEveryStandstill,
        Self::PromotesEarly,
        Self::PromotesWithoutLimit,
        Self::StopsAtAHeldJob,
        Self::CountsHeldJobs,
        Self::PromotesQueueByQueue,
        Self::HoldsBackPausedQueues,
        Self::RedrivesAsBefore,
        Self::RedrivesWithTheOldExpiry,
        Self::ForgetsRevisions,
        Self::DiscardsWhatFailedAndExpired,
        Self::ForgetsWhoRanWhat,
        Self::PrunesDeadLettersEarly,
        Self::PrunesWithoutLimit,
        Self::ForgetsNewQueues,
        Self::ListsOldestFirst,
        Self::ListsDeadLettersByName,
        Self::BeginsEveryPageAnew,
        Self::CountsThePageOnly,
        Self::NeverWakes,
        Self::WakesForHeldJobs,
        Self::KeepsTenFailures,
        Self::LosesPausesAtRestart,
        Self::LosesLeasesAtRestart,
        Self::LosesResultsAtRestart,
        Self::AnswersRepeatedSuccessAsNew,
        Self::CallsASnoozeAFailure,
        Self::ForgetsWhichRunWasReleased,
        Self::GuessesTheStateBefore,
        Self::ForgetsTheLeaseThatEnded,
        Self::ForgetsVerdicts,
        Self::ForgetsThePolicyOfTheWorker,
        Self::ForgetsWhyRunsWereOverdue,
        Self::ForgetsParents,
        Self::IgnoresKeysOfRuns,
        Self::ListsKeysFromTheirBeginning,
        Self::StartsRunsOneByOne,
        Self::CallsRunsEarly,
        Self::ReadsRunsOfNewerVersions,
        Self::ReadsRunsThatWereNotNamed,
        Self::ReadsTheNewestMessages,
        Self::PassesOverNewRuns,
        Self::ReadsNewestRunsFirst,
        Self::TellsNoRunOfExpiries,
        Self::TellsNoRunOfCancellations,
        Self::TellsNoRunOfRedrives,
        Self::TellsNoRunOfItsRuns,
        Self::RefusesTheRestOfABatch,
        Self::IgnoresRevisions,
        Self::ForgetsToConsume,
        Self::ConsumesEverything,
        Self::ForgetsTheSignalsOfAStep,
        Self::ForgetsTheRunsOfAStep,
        Self::ForgetsTimers,
        Self::ForgetsWhoListens,
        Self::ForgetsTheEventsOfAStep,
        Self::TellsEverything,
        Self::WritesPartOfARefusedStep,
        Self::CancelsForeignJobs,
        Self::ForgetsWhatIsPending,
        Self::ForgetsTheJobsOfAStep,
        Self::TakesSignalsWithoutLimit,
        Self::CountsNoChildren,
        Self::KeepsTheFirstStateOfRuns,
        Self::EndsRunsAtTheirLastStep,
        Self::ListsRunsOfAllPrograms,
        Self::ListsEndedRunsToo,
        Self::BeginsEveryListOfRunsAnew,
        Self::ListsRunsOldestFirst,
        Self::WakesForNewerVersions,
        Self::PrunesRunsEarly,
        Self::PrunesRunsWithoutLimit,
        Self::LosesTimersAtRestart,
        Self::LosesMessagesAtRestart,
    ];
}

/// A subject whose store has a flaw.
pub(crate) struct FlawedSubject {
    flaw: Flaw,
    kept: MemorySubject,
}

impl FlawedSubject {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self { flaw, kept: MemorySubject::default() }
    }
}

impl Subject for FlawedSubject {
    fn open(&self) -> Box<dyn Store> {
        Box::new(Flawed { flaw: self.flaw, restarted: false, memory: self.kept.renewed() })
    }

    fn reopen(&self) -> Box<dyn Store> {
        let store = Flawed { flaw: self.flaw, restarted: true, memory: self.kept.store().reopened() };
        assert_eq!(block_on(store.lose()), Ok(()), "the reference model does not fail");
        Box::new(store)
    }
}

/// The reference model with a flaw at its rim.
pub(crate) struct Flawed {
    pub(crate) flaw: Flaw,
    restarted: bool,
    pub(crate) memory: Memory,
}

impl Flawed {
    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    /// What a restart loses.
    async fn lose(&self) -> Result<(), StoreError> {
        for queue in self.memory.queues().await? {
            if self.has(Flaw::LosesPausesAtRestart) {
                self.memory.pause(queue.name, false, Missing::Refuse, queue.created).await?;
            }
        }
        let active = Filter { state: Some(State::Active), ..Filter::default() };
        for job in self.memory.list(active, Page::new(0, usize::MAX)).await?.jobs {
            if self.has(Flaw::LosesLeasesAtRestart) {
                let lease_ref = LeaseRef { id: job.id, token: Token::None };
                let report = AttemptOutcome::Released { delay: Span::ZERO, most: u32::MAX };
                self.memory.settle(vec![Settlement { lease_ref, report }], job.times.created).await?;
            }
        }
        self.lose_of_runs().await
    }

    /// How many due jobs these queues have.
    async fn held_jobs(&self, held: &Held, now: Moment) -> Result<usize, StoreError> {
        let all = self.memory.list(Filter::default(), Page::new(0, usize::MAX)).await?.jobs;
        let due = |job: &&Job| held.contains(&job.spec) && job.due.is_some_and(|due| due <= now);
        Ok(all.iter().filter(due).count())
    }

    fn shown(&self, mut job: Job) -> Job {
        if self.has(Flaw::KeepsTenFailures) {
            let surplus = job.failures.len().saturating_sub(10);
            job.failures.drain(..surplus);
        }
        if self.has(Flaw::LosesResultsAtRestart) && self.restarted {
            job.result = None;
        }
        if self.has(Flaw::ForgetsParents) {
            job.parent = None;
        }
        if self.has(Flaw::ForgetsRevisions) {
            job.revisions.clear();
        }
        if self.has(Flaw::DiscardsWhatFailedAndExpired) {
            job.dead &= job.failures.last().is_some_and(|last| last.verdict.delay().is_none());
        }
        if self.has(Flaw::ForgetsWhoRanWhat) {
            job.failures.iter_mut().for_each(|run| run.worker = Arc::default());
        }
        job
    }

    fn believed(&self, lease_ref: LeaseRef) -> LeaseRef {
        let token = match lease_ref.token {
            Token::Lease(_) if self.has(Flaw::IgnoresTokens) => Token::None,
            Token::Worker(_) if self.has(Flaw::IgnoresWorkers) => Token::None,
            token => token,
        };
        LeaseRef { token, ..lease_ref }
    }

    fn refused(&self, refusal: Refusal) -> Refusal {
        match refusal {
            Refusal::StaleLease if self.has(Flaw::CallsStaleWrong) => Refusal::WrongLease,
            refusal => refusal,
        }
    }

    fn transition(&self, mut transition: Transition) -> Transition {
        transition.job = self.shown(transition.job.clone());
        match self.flaw {
            Flaw::CallsASnoozeAFailure if transition.event == EventKind::Snoozed => {
                transition.event = EventKind::RetryScheduled;
            }
            Flaw::ForgetsWhichRunWasReleased => transition.attempt = transition.job.attempt,
            Flaw::GuessesTheStateBefore => transition.from = guessed(&transition),
            Flaw::ForgetsTheLeaseThatEnded => transition.lease = None,
            Flaw::ForgetsVerdicts => transition.verdict = None,
            Flaw::ForgetsThePolicyOfTheWorker => transition.policy = None,
            Flaw::ForgetsWhyRunsWereOverdue => transition.overdue = None,
            _ => {}
        }
        transition
    }

    fn settled(&self, settled: Settled, now: Moment) -> Settled {
        match settled {
            Settled::Repeated(job) if self.has(Flaw::AnswersRepeatedSuccessAsNew) => {
                Settled::Transition(Transition::new(job, EventKind::Completed, Some(State::Active), now))
            }
            Settled::Transition(transition) => Settled::Transition(self.transition(transition)),
            Settled::Repeated(job) => Settled::Repeated(self.shown(job)),
        }
    }

    async fn settle_one(
        &self,
        settlement: Settlement,
        now: Moment,
    ) -> Result<Vec<Result<Settled, Refusal>>, StoreError> {
        let completed =
            self.memory.get(settlement.lease_ref.id).await?.is_some_and(|job| job.state == State::Completed);
        if self.has(Flaw::RefusesRepeatedSuccess) && completed && matches!(settlement.lease_ref.token, Token::Lease(_))
        {
            return Ok(vec![Err(Refusal::StaleLease)]);
        }
        let settlement = Settlement { lease_ref: self.believed(settlement.lease_ref), ..settlement };
        let answers = self.memory.settle(vec![settlement], now).await?;
        let answer =
            |answer: Result<_, _>| answer.map(|settled| self.settled(settled, now)).map_err(|no| self.refused(no));
        Ok(answers.into_iter().map(answer).collect())
    }
}

/// The state that a job was in before, as far as the event shows it.
fn guessed(transition: &Transition) -> Option<State> {
    let before = |state: &State| state.after(transition.event) == Some(transition.job.state);
    State::ALL.into_iter().find(before)
}

impl Flawed {
    /// What a job must be unique in, as a flawed store takes it.
    fn unique(&self, unique: &Unique) -> Option<Arc<Unique>> {
        let mut unique = unique.clone();
        if self.has(Flaw::IgnoresUniqueness) {
            return None;
        }
        if self.has(Flaw::IgnoresPeriods) {
            unique.period = None;
        }
        if self.has(Flaw::LooksAtUnendedJobsOnly) {
            unique.states = States::from_bits(unique.states.bits() & States::UNENDED.bits());
        }
        unique.on_conflict = match unique.on_conflict {
            OnConflict::Reject if self.has(Flaw::IgnoresInsteadOfRejecting) => OnConflict::Ignore,
            OnConflict::ReplaceExceptSchedule if self.has(Flaw::KeepsNoSchedule) => OnConflict::Replace,
            other => other,
        };
        Some(Arc::new(unique))
    }
}

impl Flawed {
    /// The bounds on the depth of queues as a flawed store takes them; or a refusal that comes too early.
    async fn bound(&self, jobs: &mut [NewJob]) -> Result<Option<EnqueueRefusal>, StoreError> {
        let queues = self.memory.queues().await?;
        let count = |new: &NewJob, states: &[State]| {
            let queue = queues.iter().find(|queue| queue.name == new.spec.queue);
            queue.map_or(0, |queue| states.iter().map(|state| queue.count(*state) as u64).sum::<u64>())
        };
        for (index, new) in jobs.iter_mut().enumerate() {
            let Some(bound) = new.depth else { continue };
            let depth = count(new, &[State::Scheduled, State::Pending, State::Available, State::Retryable]);
            if self.has(Flaw::ChecksDepthsFirst) && depth >= bound {
                let full = QueueFull { queue: Arc::clone(&new.spec.queue), depth, bound, jobs: 1 };
                return Ok(Some(EnqueueRefusal::QueueFull { index, full }));
            }
            if self.has(Flaw::IgnoresDepths) {
                new.depth = None;
            } else if self.has(Flaw::AllowsOneTooMany) {
                new.depth = Some(bound + 1);
            } else if self.has(Flaw::CountsActiveJobsAsDepth) {
                new.depth = Some(bound.saturating_sub(count(new, &[State::Active])));
            }
        }
        Ok(None)
    }
}

/// The refusal of the job at another position.
fn numbered(refusal: EnqueueRefusal, index: usize) -> EnqueueRefusal {
    match refusal {
        EnqueueRefusal::IdTaken { id, .. } => EnqueueRefusal::IdTaken { index, id },
        EnqueueRefusal::Duplicate { duplicate, .. } => EnqueueRefusal::Duplicate { index, duplicate },
        EnqueueRefusal::QueueFull { full, .. } => EnqueueRefusal::QueueFull { index, full },
    }
}

impl Wrapper for Flawed {
    fn inner(&self) -> &dyn Store {
        &self.memory
    }

    fn enqueue(&self, mut jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        Box::pin(async move {
            if self.has(Flaw::ForgetsKeys) {
                jobs.iter_mut().for_each(|job| job.idempotency_key = None);
            }
            jobs.iter_mut().for_each(|job| job.unique = job.unique.take().and_then(|unique| self.unique(&unique)));
            if self.has(Flaw::ForgetsLimits) {
                for job in &mut jobs {
                    job.spec = Arc::new(redrive_store::Spec { limits: None, ..(*job.spec).clone() });
                }
            }
            if let Some(refusal) = self.bound(&mut jobs).await? {
                return Ok(Err(refusal));
            }
            if !self.has(Flaw::EnqueuesOneByOne) {
                return self.memory.enqueue(jobs, now).await;
            }
            let mut answers = Vec::new();
            for (index, job) in jobs.into_iter().enumerate() {
                match self.memory.enqueue(vec![job], now).await? {
                    Ok(answer) => answers.extend(answer),
                    Err(refusal) => return Ok(Err(numbered(refusal, index))),
                }
            }
            Ok(Ok(answers))
        })
    }

    fn claim(&self, mut claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        Box::pin(async move {
            let open = self.memory.queues().await?.into_iter().filter(|queue| queue.paused);
            let paused: Vec<Queue> = open.filter(|_| self.has(Flaw::ClaimsFromPausedQueues)).collect();
            claim.count += usize::from(self.has(Flaw::ClaimsOneTooMany));
            claim.bytes = if self.has(Flaw::ClaimsTooManyBytes) { usize::MAX } else { claim.bytes };
            if self.has(Flaw::ClaimsFromHeldQueues) {
                claim.held = Arc::default();
            }
            if self.has(Flaw::EndsAClaimAtAHeldQueue) {
                let end = claim.queues.iter().position(|queue| claim.held.contains_queue(queue));
                claim.queues.truncate(end.unwrap_or(claim.queues.len()));
            }
            for queue in claim.held.queues().filter(|_| self.has(Flaw::TakesAHoldForAPause)) {
                self.memory.pause(Arc::clone(queue), true, Missing::Refuse, now).await?;
            }
            for queue in &paused {
                self.memory.pause(Arc::clone(&queue.name), false, Missing::Refuse, now).await?;
            }
            let mut claimed = self.memory.claim(claim, now).await?;
            for queue in &paused {
                self.memory.pause(Arc::clone(&queue.name), true, Missing::Refuse, now).await?;
            }
            if self.has(Flaw::ClaimsNewestFirst) {
                claimed.jobs.reverse();
            }
            claimed.jobs = claimed.jobs.into_iter().map(|job| self.shown(job)).collect();
            Ok(claimed)
        })
    }

    fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
        now: Moment,
    ) -> StoreFuture<'_, Vec<Result<Job, Refusal>>> {
        Box::pin(async move {
            let lease_refs = lease_refs.into_iter().map(|lease_ref| self.believed(lease_ref)).collect();
            let span = span.filter(|_| !self.has(Flaw::ExtendsByItsOwnSpan));
            let mut answers = self.memory.extend(lease_refs, span, now).await?;
            if let (Some(span), true) = (span, self.has(Flaw::ShortensLeases)) {
                let leases = answers.iter_mut().flatten().filter_map(|job| job.lease.as_mut());
                leases.for_each(|lease| lease.until = now.after(span));
            }
            let answer = |answer: Result<_, _>| answer.map(|job| self.shown(job)).map_err(|no| self.refused(no));
            Ok(answers.into_iter().map(answer).collect())
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        Box::pin(async move {
            let mut answers = Vec::new();
            for settlement in settlements {
                answers.extend(self.settle_one(settlement, now).await?);
            }
            Ok(answers)
        })
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        Box::pin(async move {
            let late = Moment::from_micros(now.micros() - i64::from(self.has(Flaw::ReclaimsLate)));
            let limit = if self.has(Flaw::ReclaimsWithoutLimit) { usize::MAX } else { limit };
            let decide = |job: &Job, why: Overdue| {
                decide(job, if self.has(Flaw::CallsEveryRunStalled) { Overdue::Stalled } else { why })
            };
            let ended = self.memory.reclaim(&decide, limit, late).await?;
            Ok(ended.into_iter().map(|transition| self.transition(transition)).collect())
        })
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        let length = if self.has(Flaw::GrantsAWholeSpanAfterEveryStandstill) { Span::MAX } else { standstill.length };
        if self.has(Flaw::IgnoresStandstills) {
            return Box::pin(std::future::ready(Ok(())));
        }
        self.memory.stood_still(Standstill { length, ..standstill })
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        Box::pin(async move {
            let early = Moment::from_micros(now.micros() + i64::from(self.has(Flaw::PromotesEarly)));
            let mut limit = if self.has(Flaw::PromotesWithoutLimit) { usize::MAX } else { limit };
            let mut held = held.clone();
            let queues = self.memory.queues().await?;
            let held_jobs = self.held_jobs(&held, now).await?;
            if self.has(Flaw::CountsHeldJobs) {
                limit = limit.saturating_sub(held_jobs);
            }
            let all = self.has(Flaw::StopsAtAHeldJob) && held_jobs > 0;
            let also = |queue: &&Queue| all || (queue.paused && self.has(Flaw::HoldsBackPausedQueues));
            queues.iter().filter(also).for_each(|queue| held.hold_queue(Arc::clone(&queue.name)));
            let mut moved = Vec::new();
            for queue in queues.iter().filter(|_| self.has(Flaw::PromotesQueueByQueue)) {
                let others = queues.iter().map(|other| &other.name).filter(|other| **other != queue.name);
                let held = Held::of_queues(held.queues().chain(others).cloned());
                moved.extend(self.memory.promote(&held, limit - moved.len(), early).await?);
            }
            moved.extend(self.memory.promote(&held, limit - moved.len(), early).await?);
            Ok(moved.into_iter().map(|transition| self.transition(transition)).collect())
        })
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move { Ok(self.memory.cancel(id, now).await?.map(|transition| self.transition(transition))) })
    }

    fn activate(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move { Ok(self.memory.activate(id, now).await?.map(|transition| self.transition(transition))) })
    }

    fn redrive(&self, id: JobId, mut redrive: Redrive, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move {
            if self.has(Flaw::RedrivesAsBefore) {
                redrive.spec = None;
            }
            if self.has(Flaw::RedrivesDuplicates) {
                let old = self.memory.get(id).await?.map(|job| job.spec);
                (redrive.spec, redrive.unique) = (redrive.spec.or(old), None);
            }
            if self.has(Flaw::RedrivesWithTheOldExpiry) {
                let old = self.memory.get(id).await?.map(|job| job.spec);
                redrive.spec = redrive.spec.or(old);
            }
            Ok(self.memory.redrive(id, redrive, now).await?.map(|transition| self.transition(transition)))
        })
    }

    fn prune(&self, retention: Retention, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        let dead = if self.has(Flaw::PrunesDeadLettersEarly) { retention.finished } else { retention.dead };
        let limit = if self.has(Flaw::PrunesWithoutLimit) { usize::MAX } else { limit };
        self.memory.prune(Retention { dead, ..retention }, limit, now)
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        let missing = if self.has(Flaw::PausesUnknownQueues) { Missing::Create } else { missing };
        self.memory.pause(queue, paused, missing, now)
    }

    fn prune_queues(&self, age: Span, now: Moment) -> StoreFuture<'_, Vec<Arc<str>>> {
        let age = if self.has(Flaw::ForgetsNewQueues) { Span::ZERO } else { age };
        self.memory.prune_queues(age, now)
    }

    fn set_limit(&self, group: Group, setting: Option<Setting>, now: Moment) -> StoreFuture<'_, ()> {
        let setting = setting.filter(|_| !self.has(Flaw::IgnoresSettings));
        self.memory.set_limit(group, setting, now)
    }

    fn hold_group(&self, group: Group, until: Moment, now: Moment) -> StoreFuture<'_, ()> {
        let until = if self.has(Flaw::ForgetsHeldGroups) { now } else { until };
        self.memory.hold_group(group, until, now)
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        Box::pin(async move { Ok(self.memory.get(id).await?.map(|job| self.shown(job))) })
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        Box::pin(async move {
            let page = Page { after: page.after.filter(|_| !self.has(Flaw::BeginsEveryPageAnew)), ..page };
            let mut listed = self.memory.list(filter, page).await?;
            if self.has(Flaw::ListsDeadLettersByName) {
                listed.jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
            }
            listed.jobs = listed.jobs.into_iter().map(|job| self.shown(job)).collect();
            if self.has(Flaw::ListsOldestFirst) {
                listed.jobs.reverse();
            }
            if self.has(Flaw::CountsThePageOnly) {
                listed.total = Some(listed.jobs.len());
            }
            Ok(listed)
        })
    }

    fn paused(&self) -> StoreFuture<'_, Vec<Arc<str>>> {
        if self.has(Flaw::ForgetsPausedQueues) {
            return Box::pin(std::future::ready(Ok(Vec::new())));
        }
        self.memory.paused()
    }

    fn next_wake<'a>(&'a self, held: &'a Held) -> StoreFuture<'a, Option<Moment>> {
        Box::pin(async move {
            let none = Held::new();
            let held = if self.has(Flaw::WakesForHeldJobs) { &none } else { held };
            Ok(self.memory.next_wake(held).await?.filter(|_| !self.has(Flaw::NeverWakes)))
        })
    }

    fn start_runs(&self, runs: Vec<NewRun>, now: Moment) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        self.start_flawed(runs, now)
    }

    fn pending_runs(&self, pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        self.pending_flawed(pending, now)
    }

    fn advance(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        self.advance_flawed(steps, now)
    }

    fn signal(&self, id: RunId, signal: Signal, now: Moment) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        self.signal_flawed(id, signal, now)
    }

    fn run(&self, id: RunId) -> StoreFuture<'_, Option<Run>> {
        Box::pin(async move { Ok(self.memory.run(id).await?.map(|run| self.shown_run(run))) })
    }

    fn runs(&self, filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        self.runs_flawed(filter, limit)
    }

    fn next_run(&self, programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        self.next_run_flawed(programs)
    }

    fn prune_runs(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        self.prune_runs_flawed(age, limit, now)
    }
}
