//! What can happen to a job after it was enqueued, in which state, and where it leads.

use crate::{Blob, Claim, Decision, EventKind, Overdue, Redrive, State};
use redrive_policy::{Moment, Origin, Outcome, Span};
use std::sync::Arc;

/// What happened to a job after it was enqueued.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Due,
    Activated,
    Claimed(Run),
    Completed(Option<Blob>),
    /// With why the server ended the run, where it did.
    Failed(Decision, Option<Overdue>),
    /// To run again after this time.
    Released(Span),
    Cancelled,
    Expired,
    Redriven(Redrive),
}

/// What is known of a run beside the job.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) worker: Arc<str>,
    pub(super) seed: u64,
    /// What the claim asks for, where the job does not say.
    pub(super) lease: Span,
    pub(super) timeout: Option<Span>,
    /// The last heartbeat, and how long the worker asked it to last.
    pub(super) heartbeat: Option<(Moment, Option<Span>)>,
}

impl Run {
    pub(super) fn of(claim: &Claim) -> Self {
        let worker = Arc::clone(&claim.worker);
        Self { worker, seed: claim.seed, lease: claim.lease, timeout: claim.timeout, heartbeat: None }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: Moment,
    pub(super) event: Event,
}

impl Entry {
    /// A failure that counts; a run that asked to be requeued is none.
    pub(super) const fn failure(&self) -> Option<&Decision> {
        match &self.event {
            Event::Failed(decision, _) if !requeued(decision) => Some(decision),
            _ => None,
        }
    }

    /// Whether the run that ended here does not count.
    pub(super) const fn gives_back_the_attempt(&self) -> bool {
        match &self.event {
            Event::Released(_) => true,
            Event::Failed(decision, _) => requeued(decision),
            _ => false,
        }
    }

    pub(super) const fn is_claim(&self) -> bool {
        matches!(self.event, Event::Claimed(_))
    }

    pub(super) const fn is_redrive(&self) -> bool {
        matches!(self.event, Event::Redriven(_))
    }

    /// The state that a job is in while this is the last that happened to it.
    pub(super) fn leads_to(&self) -> State {
        match &self.event {
            Event::Due | Event::Activated | Event::Redriven(_) => State::Available,
            Event::Claimed(_) => State::Active,
            Event::Completed(_) => State::Completed,
            Event::Released(delay) if delay.is_zero() => State::Available,
            Event::Released(_) => State::Retryable,
            Event::Failed(decision, _) => match decision.verdict.outcome {
                Outcome::Retry { .. } => State::Retryable,
                Outcome::Stop { .. } => State::Discarded,
            },
            Event::Cancelled => State::Cancelled,
            Event::Expired => State::Discarded,
        }
    }

    pub(super) fn kind(&self) -> EventKind {
        match (&self.event, self.leads_to()) {
            (Event::Due, _) => EventKind::Due,
            (Event::Activated, _) => EventKind::Activated,
            (Event::Claimed(_), _) => EventKind::Claimed,
            (Event::Completed(_), _) => EventKind::Completed,
            (Event::Failed(decision, _), _) if requeued(decision) => EventKind::Snoozed,
            (Event::Failed(..), State::Discarded) => EventKind::Discarded,
            (Event::Failed(..), _) => EventKind::RetryScheduled,
            (Event::Released(_), State::Available) => EventKind::Released,
            (Event::Released(_), _) => EventKind::Snoozed,
            (Event::Cancelled, _) => EventKind::Cancelled,
            (Event::Expired, _) => EventKind::Expired,
            (Event::Redriven(_), _) => EventKind::Redriven,
        }
    }
}

const fn requeued(decision: &Decision) -> bool {
    matches!(decision.verdict.outcome, Outcome::Retry { origin: Origin::Requeue, .. })
}

/// What can happen in each state.
pub(super) fn can_happen(event: &Event, state: State) -> bool {
    match state {
        State::Scheduled | State::Retryable => matches!(event, Event::Due | Event::Cancelled | Event::Expired),
        State::Pending => matches!(event, Event::Activated | Event::Cancelled | Event::Expired),
        State::Available => matches!(event, Event::Claimed(_) | Event::Cancelled | Event::Expired),
        State::Active => {
            matches!(event, Event::Completed(_) | Event::Failed(..) | Event::Released(_) | Event::Cancelled)
        }
        State::Completed | State::Cancelled | State::Discarded => matches!(event, Event::Redriven(_)),
    }
}
