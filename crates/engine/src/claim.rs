//! Claiming jobs.

use crate::engine::refused;
use crate::waiting::PlaceInLine;
use crate::wall::shown_job;
use crate::{Engine, EngineError};
use redrive_policy::Span;
use redrive_store::{Claim, Claimed, EventKind, Full, Job, LeaseRef, State, Transition};
use std::sync::Arc;
use std::time::Duration;

/// A worker's request for jobs: `ClaimRequest { count: 10, ..ClaimRequest::new(queues, worker) }`.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The queues, the most wanted first.
    pub queues: Vec<Arc<str>>,
    /// How many jobs at most.
    pub count: usize,
    /// How many bytes they may have together, by [`Job::bytes`]; the first job always fits.
    pub bytes: usize,
    /// Who asks.
    pub worker: Arc<str>,
    /// How long a lease lasts; absent, the engine's default holds. A job's own value comes first.
    pub lease: Option<Span>,
    /// How long to wait for a job when there is none.
    pub wait: Duration,
}

impl ClaimRequest {
    /// One job of any size, if there is one now, under a lease of the engine's default length.
    pub fn new(queues: Vec<Arc<str>>, worker: impl Into<Arc<str>>) -> Self {
        Self { queues, count: 1, bytes: usize::MAX, worker: worker.into(), lease: None, wait: Duration::ZERO }
    }
}

impl Engine {
    /// Claims jobs under leases. Waits for the first one as long as the request says.
    ///
    /// The future has to run to its end: jobs of a claim that is dropped half way stay claimed until their leases
    /// end. [`Engine::claim_or_release`] is for callers that may go away.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn claim(&self, request: &ClaimRequest) -> Result<Vec<Job>, EngineError> {
        self.claim_unless(request, std::future::pending()).await
    }

    /// As [`Engine::claim`], and stops waiting once `stopped` completes.
    ///
    /// It stops only while nothing is under way with the store: a claim that were dropped there could
    /// leave jobs under a lease that no worker knows of.
    pub(crate) async fn claim_unless(
        &self,
        request: &ClaimRequest,
        stopped: impl Future<Output = ()>,
    ) -> Result<Vec<Job>, EngineError> {
        if request.wait.is_zero() {
            return self.claim_now(request).await.map(|claimed| claimed.0);
        }
        let deadline = tokio::time::sleep(request.wait);
        tokio::pin!(deadline, stopped);
        let mut called: Option<PlaceInLine<'_>> = None;
        let mut lines: Arc<[Arc<str>]> = request.queues.as_slice().into();
        loop {
            // In line before looking, so that a job that comes in between is not missed.
            let place = self.admission.register(&lines);
            let (jobs, full) = self.claim_now(request).await?;
            // Only now is a call answered: a caller that goes away before it has looked passes it on.
            if let Some(called) = called.take() {
                called.give_up(&jobs);
            }
            if !jobs.is_empty() {
                return Ok(jobs);
            }
            let further = self.admission.lines(&request.queues, &full);
            if further.iter().any(|line| !lines.contains(line)) {
                // A group that is full may open before the place in its line is taken: look once more.
                lines = further;
                continue;
            }
            tokio::select! {
                () = place.called() => {}
                () = &mut deadline => {
                    if !place.is_called() {
                        return Ok(jobs);
                    }
                }
                () = &mut stopped => return Ok(jobs),
            }
            called = Some(place);
        }
    }

    /// The jobs that can be claimed now, and the groups that allowed no further run.
    async fn claim_now(&self, request: &ClaimRequest) -> Result<(Vec<Job>, Vec<Full>), EngineError> {
        if self.is_under_maintenance() {
            return Ok((Vec::new(), Vec::new()));
        }
        let claim = Claim {
            queues: request.queues.clone(),
            held: self.admission.held(),
            count: request.count.min(self.settings.most_claimed),
            bytes: request.bytes,
            worker: request.worker.clone(),
            lease: request.lease.unwrap_or(self.settings.lease),
            timeout: self.settings.timeout,
            seed: self.randomness.bits(),
        };
        let now = self.clock.now();
        let Claimed { jobs, full } = self.store.claim(claim, now).await?;
        if let Some(observer) = self.observer.get().filter(|_| !full.is_empty()) {
            observer.passed_over(&full);
        }
        let started = |job| Transition::new(job, EventKind::Claimed, Some(State::Available), now);
        let claimed: Vec<Transition> = jobs.into_iter().map(started).collect();
        self.publish(claimed.iter());
        Ok((self.shown_jobs(claimed.into_iter().map(|transition| transition.job)), full))
    }

    /// A heartbeat for several jobs; each is answered separately.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn extend(
        &self,
        lease_refs: Vec<LeaseRef>,
        span: Option<Span>,
    ) -> Result<Vec<Result<Job, EngineError>>, EngineError> {
        let ids: Vec<_> = lease_refs.iter().map(|lease_ref| lease_ref.id).collect();
        let answers = self.store.extend(lease_refs, span, self.clock.now()).await?;
        self.wake(answers.iter().flatten());
        let ahead_us = self.wall().ahead_us;
        let shown = |(id, answer)| Ok(shown_job(refused(id, answer)?, ahead_us));
        Ok(ids.into_iter().zip(answers).map(shown).collect())
    }
}
