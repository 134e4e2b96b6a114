//! One job as the list of what happened to it.

use super::derived::Events;
use super::event::{Entry, Event, can_happen};
use crate::{Job, LeaseToken, NewJob, Refusal, Token, Transition};
use redrive_policy::{Moment, Span};

/// A job and everything that happened to it.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    new: NewJob,
    created: Moment,
    entries: Vec<Entry>,
    /// What the entries say, which is computed again whenever there is another one.
    job: Job,
}

impl Recorded {
    pub(super) fn new(new: &NewJob, created: Moment) -> Self {
        let job = Events { new, created, entries: &[] }.job();
        Self { new: new.clone(), created, entries: Vec::new(), job }
    }

    pub(super) const fn job(&self) -> &Job {
        &self.job
    }

    /// Something happens to the job, unless it cannot happen in its state.
    pub(super) fn happen(&mut self, event: Event, at: Moment) -> Result<Transition, Refusal> {
        if !can_happen(&event, self.job.state) {
            return Err(Refusal::WrongState(self.job.state));
        }
        let before = self.job.clone();
        let entry = Entry { at, event };
        self.entries.push(entry.clone());
        self.job = self.events().job();
        Ok(transition(before, &entry, self.job.clone()))
    }

    /// A heartbeat of the run that is under way.
    pub(super) fn heartbeat(&mut self, span: Option<Span>, at: Moment) {
        if let Some(Entry { event: Event::Claimed(run), .. }) = self.entries.last_mut() {
            run.heartbeat = Some((at, span));
        }
        self.job = self.events().job();
    }

    /// Whether a caller may speak for the run that is under way.
    pub(super) fn check(&self, token: &Token) -> Result<(), Refusal> {
        let issued = |token: &LeaseToken| token.number > 0 && token.number <= self.job.leases;
        match (&self.job.lease, token) {
            (None, Token::Lease(token)) if issued(token) => Err(Refusal::StaleLease),
            (None, _) => Err(Refusal::WrongState(self.job.state)),
            (Some(lease), Token::Lease(token)) if *token == lease.token => Ok(()),
            // The number decides: nonces of earlier leases are not stored.
            (Some(lease), Token::Lease(token)) if token.number != lease.token.number && issued(token) => {
                Err(Refusal::StaleLease)
            }
            (Some(_), Token::Lease(_)) => Err(Refusal::WrongLease),
            (Some(lease), Token::Worker(worker)) if !lease.worker.is_empty() && lease.worker != *worker => {
                Err(Refusal::OtherWorker)
            }
            (Some(_), Token::Worker(_) | Token::None) => Ok(()),
        }
    }

    fn events(&self) -> Events<'_> {
        Events { new: &self.new, created: self.created, entries: &self.entries }
    }
}

/// What an event changed.
fn transition(before: Job, entry: &Entry, job: Job) -> Transition {
    let mut transition = Transition::new(job, entry.kind(), Some(before.state), entry.at);
    if before.lease.is_some() {
        transition.attempt = before.attempt;
    }
    transition.lease = before.lease;
    if let Event::Failed(decision, overdue) = &entry.event {
        transition.verdict = Some(decision.verdict);
        transition.policy.clone_from(&decision.policy);
        transition.overdue = *overdue;
    }
    transition
}
