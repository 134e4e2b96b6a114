//! The harness in which a case runs a store: a clock, ids for jobs, and the operations in short form.

pub(super) use super::failures::{decision, decision_of, failed, failed_run, policy, stopped};

use super::{Subject, Violation};
use crate::{
    AttemptOutcome, Claim, Claimed, EnqueueRefusal, Enqueued, Filter, Held, Job, JobId, LeaseRef, LeaseToken, Listed,
    Memory, NewJob, Page, Queue, Redrive, Refusal, Settled, Settlement, Spec, Start, State, Store, StoreError,
    StoreFuture, Token, Transition,
};
use redrive_policy::{AttemptLimit, Disposition, Moment, Policy, Span};
use std::sync::{Arc, Barrier};

/// The time at which every case starts; a round number in 2023.
pub(super) const START: Moment = Moment::from_micros(1_700_000_000_000_000);
/// The random bits of every claim.
pub(super) const SEED: u64 = 0x5eed;
/// The default queue of jobs.
pub(super) const QUEUE: &str = "main";
/// The worker that claims by default.
pub(super) const WORKER: &str = "ada";
/// The default lease.
pub(super) const LEASE_MS: u32 = 10_000;
/// The default delay of a retry.
pub(super) const DELAY_MS: u32 = 1_000;

/// Everything that a store returns without being given an id.
pub(super) type StoreView = (Listed, Vec<Queue>, Option<Moment>);

/// A store under test, and the time of the case.
pub struct Harness<'s> {
    subject: &'s dyn Subject,
    pub(super) store: Box<dyn Store>,
    pub(super) now: Moment,
    ids: u32,
    policy: Arc<Policy>,
}

impl<'s> Harness<'s> {
    pub(super) fn new(subject: &'s dyn Subject) -> Result<Self, Violation> {
        let policy = policy(AttemptLimit::AtMost(3), DELAY_MS, Disposition::Discard)?;
        Ok(Self { subject, store: subject.open(), now: START, ids: 0, policy })
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(super) fn now(&self) -> Moment {
        self.now
    }

    /// The time this many milliseconds from now.
    pub(super) fn later(&self, ms: u32) -> Moment {
        self.now.after(Span::from_millis(ms))
    }

    pub(super) fn advance(&mut self, ms: u32) {
        self.now = self.later(ms);
    }

    /// To one microsecond before a moment.
    pub(super) fn advance_to_just_before(&mut self, moment: Moment) {
        self.now = Moment::from_micros(moment.micros() - 1);
    }

    pub(super) fn advance_to(&mut self, moment: Moment) {
        self.now = moment;
    }

    /// Closes the store and opens it again.
    pub(super) fn restart(&mut self) {
        // A placeholder while the store is closed and not open again.
        drop(std::mem::replace(&mut self.store, Box::new(Memory::new())));
        self.store = self.subject.reopen();
    }

    /// A new id; later ids sort later.
    pub(super) fn new_id(&mut self) -> JobId {
        self.ids += 1;
        JobId::new(START, u128::from(self.ids) << 32)
    }

    pub(super) fn job(&mut self) -> NewJob {
        self.job_with(|_| {})
    }

    pub(super) fn job_with(&mut self, change: impl FnOnce(&mut Spec)) -> NewJob {
        let mut spec = Spec {
            kind: "work".into(),
            queue: QUEUE.into(),
            priority: 0,
            body: Arc::from(*b"{\"args\":[1]}"),
            policy: Arc::clone(&self.policy),
            timeout: None,
            lease: None,
            expires: None,
            limits: None,
        };
        change(&mut spec);
        NewJob::new(self.new_id(), Arc::new(spec))
    }

    pub(super) async fn enqueue(&self, jobs: Vec<NewJob>) -> Result<Result<Vec<Enqueued>, EnqueueRefusal>, Violation> {
        Ok(self.store.enqueue(jobs, self.now).await?)
    }

    /// Enqueues one job, which must be new.
    pub(super) async fn enqueue_new(&self, new: NewJob) -> Result<Job, Violation> {
        match <[Enqueued; 1]>::try_from(self.enqueue(vec![new]).await??) {
            Ok([Enqueued::Created(job)]) => Ok(job),
            other => Err(Violation::new(format!("one new job was enqueued, and the answer is {other:?}"))),
        }
    }

    pub(super) async fn enqueue_one(&mut self) -> Result<Job, Violation> {
        let new = self.job();
        self.enqueue_new(new).await
    }

    pub(super) async fn enqueue_with(&mut self, change: impl FnOnce(&mut Spec)) -> Result<Job, Violation> {
        let new = self.job_with(change);
        self.enqueue_new(new).await
    }

    /// The request for jobs that [`Harness::claim`] makes, to be changed.
    pub(super) fn claim_request(&self, queues: &[&str], count: usize) -> Claim {
        Claim {
            queues: queues.iter().map(|queue| Arc::from(*queue)).collect(),
            held: Arc::default(),
            count,
            bytes: usize::MAX,
            worker: WORKER.into(),
            lease: Span::from_millis(LEASE_MS),
            timeout: None,
            seed: SEED,
        }
    }

    pub(super) async fn claim_with(&self, claim: Claim) -> Result<Vec<Job>, Violation> {
        Ok(self.store.claim(claim, self.now).await?.jobs)
    }

    /// As [`Harness::claim`], with what was passed over.
    pub(super) async fn claim_whole(&self, count: usize) -> Result<Claimed, Violation> {
        Ok(self.store.claim(self.claim_request(&[QUEUE], count), self.now).await?)
    }

    pub(super) async fn claim(&self, count: usize) -> Result<Vec<Job>, Violation> {
        self.claim_with(self.claim_request(&[QUEUE], count)).await
    }

    /// Claims a job that must be the next of its queue.
    pub(super) async fn claim_next(&self, id: JobId) -> Result<Job, Violation> {
        let queue = self.get(id).await?.spec.queue.clone();
        let claimed = self.claim_with(self.claim_request(&[&queue], 1)).await?;
        let found = ids(&claimed);
        claimed.into_iter().find(|job| job.id == id).ok_or_else(|| {
            Violation::new(format!("the job {id} should be the next of its queue; the claim gave {found:?}"))
        })
    }

    /// A new job, claimed by a worker.
    pub(super) async fn claimed(&mut self) -> Result<Job, Violation> {
        let job = self.enqueue_one().await?;
        self.claim_next(job.id).await
    }

    pub(super) async fn claimed_with(&mut self, change: impl FnOnce(&mut Spec)) -> Result<Job, Violation> {
        let job = self.enqueue_with(change).await?;
        self.claim_next(job.id).await
    }

    pub(super) async fn extend(
        &self,
        lease_ref: LeaseRef,
        span: Option<Span>,
    ) -> Result<Result<Job, Refusal>, Violation> {
        only(self.store.extend(vec![lease_ref], span, self.now).await?)
    }

    /// Ends a run; returns the whole answer of the store.
    pub(super) async fn settled(
        &self,
        lease_ref: LeaseRef,
        report: AttemptOutcome,
    ) -> Result<Result<Settled, Refusal>, Violation> {
        only(self.store.settle(vec![Settlement { lease_ref, report }], self.now).await?)
    }

    /// Ends a run; returns the job afterwards.
    pub(super) async fn settle(
        &self,
        lease_ref: LeaseRef,
        report: AttemptOutcome,
    ) -> Result<Result<Job, Refusal>, Violation> {
        Ok(self.settled(lease_ref, report).await?.map(Settled::into_job))
    }

    pub(super) async fn done(&self, job: &Job) -> Result<Job, Violation> {
        Ok(self.settle(lease_of(job)?, AttemptOutcome::Done(None)).await??)
    }

    /// Reports a failure, on which the job's policy decides.
    pub(super) async fn fail(&self, job: &Job) -> Result<Job, Violation> {
        Ok(self.settle(lease_of(job)?, failed(self.now)).await??)
    }

    pub(super) async fn release(&self, job: &Job, delay_ms: u32, most: u32) -> Result<Result<Job, Refusal>, Violation> {
        let delay = Span::from_millis(delay_ms);
        self.settle(lease_of(job)?, AttemptOutcome::Released { delay, most }).await
    }

    /// Ends overdue runs, on which the policies of the jobs decide.
    pub(super) async fn reclaim(&self, limit: usize) -> Result<Vec<Job>, Violation> {
        let now = self.now;
        Ok(jobs(self.store.reclaim(&|job: &Job, _| decision(job, now), limit, now).await?))
    }

    /// Promotes while no queue is held.
    pub(super) async fn promote(&self, limit: usize) -> Result<Vec<Job>, Violation> {
        Ok(jobs(self.store.promote(&Held::new(), limit, self.now).await?))
    }

    pub(super) async fn cancel(&self, id: JobId) -> Result<Result<Job, Refusal>, Violation> {
        Ok(self.store.cancel(id, self.now).await?.map(|cancelled| cancelled.job))
    }

    pub(super) async fn activate(&self, id: JobId) -> Result<Result<Job, Refusal>, Violation> {
        Ok(self.store.activate(id, self.now).await?.map(|activated| activated.job))
    }

    pub(super) async fn redrive(&self, id: JobId, redrive: Redrive) -> Result<Result<Job, Refusal>, Violation> {
        Ok(self.store.redrive(id, redrive, self.now).await?.map(|redriven| redriven.job))
    }

    /// The next wake while no queue is held.
    pub(super) async fn next_wake(&self) -> Result<Option<Moment>, Violation> {
        Ok(self.store.next_wake(&Held::new()).await?)
    }

    pub(super) async fn get(&self, id: JobId) -> Result<Job, Violation> {
        self.store.get(id).await?.ok_or_else(|| Violation::new(format!("the job {id} is lost")))
    }

    pub(super) async fn list(&self, filter: Filter) -> Result<Listed, Violation> {
        self.walk(filter, Page::new(0, usize::MAX)).await
    }

    /// A whole page of a list: a store that stops early is asked to continue.
    pub(super) async fn page(&self, filter: Filter, page: Page) -> Result<Listed, Violation> {
        Ok(filled(&*self.store, filter, page).await?)
    }

    /// A list from a page to its end.
    pub(super) async fn walk(&self, filter: Filter, page: Page) -> Result<Listed, Violation> {
        Ok(walked(&*self.store, filter, page).await?)
    }

    pub(super) async fn store_view(&self) -> Result<StoreView, Violation> {
        Ok((self.list(Filter::default()).await?, self.store.queues().await?, self.next_wake().await?))
    }

    /// A new job, brought into a state by the shortest path, in a queue with the name of the state.
    pub(super) async fn job_in(&mut self, state: State) -> Result<Job, Violation> {
        self.job_in_with(state, |_| {}).await
    }

    /// The same of a job that is changed before it is enqueued.
    pub(super) async fn job_in_with(
        &mut self,
        state: State,
        change: impl FnOnce(&mut NewJob),
    ) -> Result<Job, Violation> {
        let due = self.later(60_000);
        let mut new = self.job_with(|spec| spec.queue = state.name().into());
        change(&mut new);
        let start = match state {
            State::Scheduled => Start::Scheduled(due),
            State::Pending => Start::Pending,
            _ => Start::Available,
        };
        let job = self.enqueue_new(NewJob { start, ..new }).await?;
        let job = match state {
            State::Scheduled | State::Pending | State::Available => job,
            State::Active => self.claim_next(job.id).await?,
            State::Retryable => self.fail(&self.claim_next(job.id).await?).await?,
            State::Completed => {
                let claimed = self.claim_next(job.id).await?;
                self.settle(lease_of(&claimed)?, AttemptOutcome::Done(Some(Arc::from(*b"\"ok\"")))).await??
            }
            State::Cancelled => self.cancel(job.id).await??,
            State::Discarded => {
                let claimed = self.claim_next(job.id).await?;
                self.settle(lease_of(&claimed)?, stopped(Disposition::DeadLetter)).await??
            }
        };
        super::ensure!(job.state == state, "the way to {state} led to {}", job.state);
        Ok(job)
    }

    /// Calls an operation from several threads at the same time.
    pub(super) fn together<T: Send>(
        &self,
        count: usize,
        verb: impl for<'a> Fn(usize, &'a dyn Store) -> StoreFuture<'a, T> + Sync,
    ) -> Result<Vec<T>, Violation> {
        let (barrier, verb, store, subject) = (&Barrier::new(count), &verb, &*self.store, self.subject);
        let one = |index: usize| {
            let mut answer = None;
            barrier.wait();
            subject.wait(Box::pin(async { answer = Some(verb(index, store).await) }));
            answer
        };
        let answers = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|index| scope.spawn(move || one(index))).collect();
            threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Vec<_>>()
        });
        let answered = answers.into_iter().map(|answer| answer.ok_or_else(|| Violation::new("a thread got no answer")));
        answered.map(|answer| Ok(answer??)).collect()
    }
}

/// A whole page of a list: a store that stops early is asked to continue.
async fn filled(store: &dyn Store, filter: Filter, page: Page) -> Result<Listed, StoreError> {
    let mut listed = store.list(filter.clone(), page).await?;
    while let Some(next) = listed.next.filter(|next| next.after.is_some() && listed.jobs.len() < page.limit) {
        let rest = Page { limit: page.limit - listed.jobs.len(), ..next };
        let further = store.list(filter.clone(), rest).await?;
        listed.jobs.extend(further.jobs);
        listed.next = further.next.filter(|further| further.after < next.after);
    }
    Ok(listed)
}

/// A list from a page to its end, page by page. It ends early if a store makes no progress.
pub(super) async fn walked(store: &dyn Store, filter: Filter, page: Page) -> Result<Listed, StoreError> {
    let mut listed = filled(store, filter.clone(), page).await?;
    while let Some(next) = listed.next.filter(|next| next.limit > 0) {
        let next = Page { limit: page.limit, ..next };
        let further = filled(store, filter.clone(), next).await?;
        listed.jobs.extend(further.jobs);
        listed.next = further.next.filter(|further| further.after < next.after);
    }
    // A store may stop wherever it likes.
    Ok(Listed { next: None, ..listed })
}

pub(super) fn lease_ref(id: JobId, token: Token) -> LeaseRef {
    LeaseRef { id, token }
}

/// The lease of a job, with its token.
pub(super) fn lease_of(job: &Job) -> Result<LeaseRef, Violation> {
    Ok(lease_ref(job.id, Token::Lease(token(job)?)))
}

pub(super) fn token(job: &Job) -> Result<LeaseToken, Violation> {
    let lease = job.lease.as_ref();
    lease
        .map(|lease| lease.token)
        .ok_or_else(|| Violation::new(format!("the {} job {} has no lease", job.state, job.id)))
}

/// The jobs after their transitions.
pub(super) fn jobs(transitions: Vec<Transition>) -> Vec<Job> {
    transitions.into_iter().map(|transition| transition.job).collect()
}

pub(super) fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

/// The only answer to a single question.
fn only<T: std::fmt::Debug>(answers: Vec<T>) -> Result<T, Violation> {
    match <[T; 1]>::try_from(answers) {
        Ok([answer]) => Ok(answer),
        Err(answers) => Err(Violation::new(format!("one question was asked, and the answers are {answers:?}"))),
    }
}
