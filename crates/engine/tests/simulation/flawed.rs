//! Stores with one flaw each. The checker must see every one of them, or it proves nothing.

use super::common::wrapped::in_place;
use super::flaw::Flaw;
use super::store_kind::StoreKind;
use redrive_policy::{Moment, Origin, Outcome, Span};
use redrive_store::testing::Wrapper;
use redrive_store::{
    AttemptOutcome, Claim, Claimed, Decider, Decision, EnqueueRefusal, Enqueued, EventKind, Filter, Held, Job, JobId,
    LeaseRef, Listed, Memory, Missing, NewJob, Page, Queue, Redrive, Refusal, Settled, Settlement, Standstill, State,
    Store, StoreFuture, Token, Transition,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A store in memory with a flaw.
pub(crate) struct FlawedStore {
    inner: Memory,
    flaw: Flaw,
    calls: Arc<AtomicU64>,
    last: Mutex<Option<Job>>,
}

/// Where such a store stands.
pub(crate) struct FlawedKind {
    memory: Memory,
    flaw: Flaw,
    calls: Arc<AtomicU64>,
}

impl FlawedKind {
    pub(crate) fn new(flaw: Flaw) -> Self {
        Self { memory: Memory::new(), flaw, calls: Arc::default() }
    }
}

impl StoreKind for FlawedKind {
    fn open(&mut self) -> Arc<dyn Store> {
        self.memory = Memory::new();
        let (inner, calls) = (self.memory.clone(), Arc::clone(&self.calls));
        Arc::new(FlawedStore { inner, flaw: self.flaw, calls, last: Mutex::default() })
    }

    fn reopen(&mut self) -> Arc<dyn Store> {
        if self.flaw == Flaw::ForgetsOnRestart {
            let waiting = Filter { state: Some(State::Available), ..Filter::default() };
            let listed = in_place(self.memory.list(waiting, Page::new(0, 1))).expect("memory answers");
            for job in listed.jobs {
                drop(in_place(self.memory.cancel(job.id, Moment::ORIGIN)).expect("memory answers"));
                drop(in_place(self.memory.remove(job.id)).expect("memory answers"));
            }
        }
        self.memory = self.memory.reopened();
        let (inner, calls) = (self.memory.clone(), Arc::clone(&self.calls));
        Arc::new(FlawedStore { inner, flaw: self.flaw, calls, last: Mutex::default() })
    }
}

impl FlawedStore {
    /// Whether it is this store's flaw, and its turn: every so many calls.
    fn errs(&self, flaw: Flaw, every: u64) -> bool {
        self.flaw == flaw && (self.calls.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(every)
    }

    /// The answer to a single success, without a trace of it.
    async fn pretend(&self, settlement: &Settlement, now: Moment) -> Option<Job> {
        let (AttemptOutcome::Done(result), Token::Lease(token)) = (&settlement.report, &settlement.lease_ref.token)
        else {
            return None;
        };
        let mut job = self.inner.get(settlement.lease_ref.id).await.ok()??;
        let held = job.lease.take().is_some_and(|lease| lease.token == *token);
        job.state = State::Completed;
        job.times.finished = Some(now);
        (job.result, job.settled) = (result.clone(), Some(*token));
        held.then_some(job)
    }

    fn settlement(&self, mut settlement: Settlement) -> Settlement {
        if self.flaw == Flaw::TakesAnyToken {
            settlement.lease_ref.token = Token::None;
        }
        let flaw = self.flaw;
        settlement.report = match settlement.report {
            AttemptOutcome::Failed(decision) => {
                AttemptOutcome::Failed(Box::new(move |job: &Job| bent(flaw, job, decision(job))))
            }
            report => report,
        };
        settlement
    }

    fn settled(&self, settled: Settled, now: Moment) -> Settled {
        match settled {
            Settled::Repeated(job) if self.flaw == Flaw::RepeatsTransitions => {
                let from = Some(State::Active);
                Settled::Transition(Transition::new(job, EventKind::Completed, from, now))
            }
            Settled::Transition(mut transition) if self.flaw == Flaw::MisstatesAttempts => {
                transition.attempt -= 1;
                Settled::Transition(transition)
            }
            settled => settled,
        }
    }

    fn answered(&self, mut job: Job) -> Job {
        if self.flaw == Flaw::ForgetsFailures {
            job.failures.pop();
        }
        if self.flaw == Flaw::HidesDeadLetters {
            job.dead = false;
        }
        job
    }
}

/// What a flaw makes of a ruling.
fn bent(flaw: Flaw, job: &Job, mut decision: Decision) -> Decision {
    let outcome = &mut decision.verdict.outcome;
    match (flaw, &mut *outcome) {
        (Flaw::IgnoresLimits, Outcome::Stop { reason, .. }) if reason.name() == "max_attempts" => {
            *outcome = Outcome::Retry { delay: Span::ZERO, origin: Origin::Override };
        }
        (Flaw::HalvesWaits, Outcome::Retry { delay, origin: Origin::Backoff(_) }) => {
            let half = delay.times(0.5);
            let began = Moment::from_micros(decision.due.micros() - (delay.ms() * 1e3) as i64);
            *delay = half;
            decision.due = began.after(half);
        }
        (Flaw::SkipsWaits, Outcome::Retry { .. }) => decision.due = job.times.started.unwrap_or_default(),
        _ => {}
    }
    decision
}

/// As if it were so much later.
fn later(now: Moment, secs: u32) -> Moment {
    now.after(Span::from_secs(secs))
}

impl Wrapper for FlawedStore {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn enqueue(&self, mut jobs: Vec<NewJob>, now: Moment) -> StoreFuture<'_, Result<Vec<Enqueued>, EnqueueRefusal>> {
        Box::pin(async move {
            if self.flaw == Flaw::IgnoresKeys {
                jobs.iter_mut().for_each(|job| job.idempotency_key = None);
            }
            if self.errs(Flaw::LosesJobs, 50) {
                return Memory::new().enqueue(jobs, now).await;
            }
            if self.flaw == Flaw::TearsBatches {
                let rest = jobs.split_off(1);
                let first = self.inner.enqueue(jobs, now).await?;
                let rest = Memory::new().enqueue(rest, now).await?;
                return Ok(first.and_then(|first| Ok(first.into_iter().chain(rest?).collect())));
            }
            self.inner.enqueue(jobs, now).await
        })
    }

    fn claim(&self, mut claim: Claim, now: Moment) -> StoreFuture<'_, Claimed> {
        Box::pin(async move {
            if self.flaw == Flaw::IgnoresPauses {
                claim.held = Arc::default();
            }
            let looks_back = if self.flaw == Flaw::IgnoresExpiry { 400_000_000 } else { 0 };
            let mut claimed = self.inner.claim(claim, Moment::from_micros(now.micros() - looks_back)).await?;
            let jobs = &mut claimed.jobs;
            jobs.iter_mut().for_each(|job| job.times.started = Some(now));
            let mut last = self.last.lock().expect("no panic before");
            if self.errs(Flaw::HandsOutTwice, 20) {
                jobs.extend(last.take());
            }
            *last = jobs.last().cloned().or(last.take());
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
            if self.flaw != Flaw::IgnoresHeartbeats {
                return self.inner.extend(lease_refs, span, now).await;
            }
            let mut answers = Vec::new();
            for lease_ref in lease_refs {
                // Its own words, and the lease as it was.
                let kept = self.inner.get(lease_ref.id).await?.and_then(|job| job.lease);
                let answer = self.inner.extend(vec![lease_ref.clone()], span, now).await?.remove(0);
                if let (Ok(_), Some(kept)) = (&answer, kept) {
                    let left = kept.until.since(now);
                    drop(self.inner.extend(vec![lease_ref], Some(left), now).await?);
                }
                answers.push(answer);
            }
            Ok(answers)
        })
    }

    fn settle(&self, settlements: Vec<Settlement>, now: Moment) -> StoreFuture<'_, Vec<Result<Settled, Refusal>>> {
        Box::pin(async move {
            if let [only] = &settlements[..]
                && self.errs(Flaw::LosesSuccess, 20)
                && let Some(job) = self.pretend(only, now).await
            {
                let done = Transition::new(job, EventKind::Completed, Some(State::Active), now);
                return Ok(vec![Ok(Settled::Transition(done))]);
            }
            let settlements = settlements.into_iter().map(|settlement| self.settlement(settlement)).collect();
            let answers = self.inner.settle(settlements, now).await?;
            Ok(answers.into_iter().map(|answer| answer.map(|settled| self.settled(settled, now))).collect())
        })
    }

    fn reclaim<'a>(&'a self, decide: &'a Decider<'a>, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        Box::pin(async move {
            let flawed = |job: &Job, why| {
                let mut decision = bent(self.flaw, job, decide(job, why));
                if self.flaw == Flaw::ForgivesSilence {
                    decision.verdict.outcome = Outcome::Retry { delay: Span::ZERO, origin: Origin::Requeue };
                }
                decision
            };
            let now = if self.flaw == Flaw::EndsLeasesEarly { later(now, 10) } else { now };
            self.inner.reclaim(&flawed, limit, now).await
        })
    }

    fn stood_still(&self, standstill: Standstill) -> StoreFuture<'_, ()> {
        match self.flaw {
            Flaw::IgnoresStandstills => Box::pin(std::future::ready(Ok(()))),
            _ => self.inner.stood_still(standstill),
        }
    }

    fn promote<'a>(&'a self, held: &'a Held, limit: usize, now: Moment) -> StoreFuture<'a, Vec<Transition>> {
        Box::pin(async move {
            if self.errs(Flaw::WakesTheDead, 20) {
                let ended = Filter { state: Some(State::Completed), ..Filter::default() };
                for job in self.inner.list(ended, Page::new(0, 1)).await?.jobs {
                    drop(self.inner.redrive(job.id, Redrive::default(), now).await?);
                }
            }
            let now = if self.flaw == Flaw::HandsOutEarly { later(now, 5) } else { now };
            self.inner.promote(held, limit, now).await
        })
    }

    fn cancel(&self, id: JobId, now: Moment) -> StoreFuture<'_, Result<Transition, Refusal>> {
        Box::pin(async move {
            let mut cancelled = self.inner.cancel(id, now).await?;
            if let (Flaw::MisstatesStates, Ok(transition)) = (self.flaw, &mut cancelled) {
                transition.from = Some(State::Available);
            }
            Ok(cancelled)
        })
    }

    fn pause(&self, queue: Arc<str>, paused: bool, missing: Missing, now: Moment) -> StoreFuture<'_, Option<Queue>> {
        Box::pin(async move {
            let kept = paused && self.flaw != Flaw::IgnoresPauses;
            let queue = self.inner.pause(queue, kept, missing, now).await?;
            Ok(queue.map(|queue| Queue { paused, ..queue }))
        })
    }

    fn get(&self, id: JobId) -> StoreFuture<'_, Option<Job>> {
        Box::pin(async move { Ok(self.inner.get(id).await?.map(|job| self.answered(job))) })
    }

    fn list(&self, filter: Filter, page: Page) -> StoreFuture<'_, Listed> {
        Box::pin(async move {
            let listed = self.inner.list(filter, page).await?;
            Ok(Listed { jobs: listed.jobs.into_iter().map(|job| self.answered(job)).collect(), ..listed })
        })
    }

    fn queues(&self) -> StoreFuture<'_, Vec<Queue>> {
        Box::pin(async move {
            let mut queues = self.inner.queues().await?;
            if self.errs(Flaw::Miscounts, 3) {
                queues.iter_mut().for_each(|queue| queue.counts[5] += 1);
            }
            Ok(queues)
        })
    }
}
