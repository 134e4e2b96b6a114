//! Failures of runs, and what the policies of the suite decide on them.

use super::Violation;
use super::harness::{START, WORKER};
use crate::{AttemptOutcome, Decision, FailedAttempt, Job};
use redrive_policy::{
    AttemptLimit, Backoff, Disposition, Draw, Failure, Matcher, Moment, Parts, Policy, Rule, Span, Unmatched, decide,
};
use std::sync::Arc;

/// A policy that waits the same time after every failure.
pub(super) fn policy(attempts: AttemptLimit, delay_ms: u32, on_stop: Disposition) -> Result<Arc<Policy>, Violation> {
    let backoff = Backoff::fixed(Span::from_millis(delay_ms));
    let rules = vec![Rule { matcher: Matcher::default(), budget: None, backoff }];
    let parts =
        Parts { rules, attempts, max_elapsed: None, on_stop, unmatched: Unmatched::NonRetryable, delegated: None };
    Policy::new(parts).map(Arc::new).map_err(|problems| Violation::new(format!("the suite's own policy: {problems}")))
}

/// What the job's own policy decides on an ordinary failure.
pub(super) fn decision(job: &Job, now: Moment) -> Decision {
    decision_of(job, &Failure::of_type("boom"), now)
}

pub(super) fn decision_of(job: &Job, failure: &Failure<'_>, now: Moment) -> Decision {
    let verdict = decide(&job.spec.policy, &job.history, failure, now, Draw::LOWEST);
    let due = now.after(verdict.delay().unwrap_or_default());
    Decision { verdict, due, error: format!("\"run {}\"", job.attempt).into_bytes().into(), policy: None }
}

/// The record of a run in a job's first generation, made from the job as it was claimed.
pub(super) fn failed_run(claimed: &Job, at: Moment, decision: Decision) -> FailedAttempt {
    FailedAttempt {
        generation: 0,
        attempt: claimed.attempt,
        available: claimed.times.available.unwrap_or(START),
        started: claimed.times.started.unwrap_or(START),
        at,
        worker: WORKER.into(),
        error: decision.error,
        verdict: decision.verdict,
    }
}

/// An ordinary failure, on which the job's own policy decides.
pub(super) fn failed(now: Moment) -> AttemptOutcome {
    AttemptOutcome::Failed(Box::new(move |job| decision(job, now)))
}

/// A failure that ends the job, whatever its policy says.
pub(super) fn stopped(disposition: Disposition) -> AttemptOutcome {
    let signal = redrive_policy::Signal::Stop(disposition);
    AttemptOutcome::Failed(Box::new(move |job| decision_of(job, &Failure::default().with_signal(signal), START)))
}
