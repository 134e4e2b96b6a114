//! What each event does to one job: the rules of the verbs, without any store around them.
//!
//! A rule takes the job as it is, and answers it as it becomes, with what happened; or it refuses. The state moves
//! by [`State::after`] only.

use crate::standstill::Grace;
use crate::{
    AttemptOutcome, Blob, Claim, Decider, Decision, EventKind, FailedAttempt, Job, KEPT_FAILURES, KEPT_REVISIONS,
    Lease, LeaseToken, NewJob, Overdue, Redrive, Refusal, Revision, Settled, Settlement, Spec, Start, State, Times,
    Token, Transition,
};
use redrive_policy::{Disposition, History, Moment, Origin, Outcome, Span, Verdict};
use std::sync::Arc;

/// A job as it is when it has just been enqueued.
pub(crate) fn created(new: &NewJob, now: Moment) -> Job {
    let (state, due) = match new.start {
        Start::Scheduled(due) if due > now => (State::Scheduled, Some(due)),
        Start::Scheduled(_) | Start::Available => (State::Available, None),
        Start::Pending => (State::Pending, None),
    };
    Job {
        id: new.id,
        spec: Arc::clone(&new.spec),
        state,
        attempt: 0,
        history: History::new(now),
        due,
        lease: None,
        leases: 0,
        generation: 0,
        releases: 0,
        dead: false,
        times: Times { created: now, available: (state == State::Available).then_some(now), ..Times::default() },
        last_delay: None,
        failures: Vec::new(),
        revisions: Vec::new(),
        result: None,
        settled: None,
        completed_by: None,
        parent: new.parent,
        unique: new.unique.clone(),
    }
}

/// A worker claims the job; the run counts from here on.
pub(crate) fn claim(job: Job, claim: &Claim, now: Moment) -> Result<Job, Refusal> {
    let mut job = advance(job, EventKind::Claimed, now)?.job;
    job.attempt = job.attempt.saturating_add(1);
    job.leases = job.leases.saturating_add(1);
    job.times.started = Some(now);
    let span = job.spec.lease.unwrap_or(claim.lease);
    job.lease = Some(Lease {
        token: LeaseToken::derive(claim.seed, job.id, job.leases),
        worker: Arc::clone(&claim.worker),
        alive: now,
        until: now.after(span),
        span,
        deadline: job.spec.timeout.or(claim.timeout).map(|timeout| now.after(timeout)),
    });
    Ok(job)
}

/// A heartbeat. A span that comes with it applies to this heartbeat only, and is never less than what the job asks
/// for: a worker that does not know what the job asks for must not shorten its lease.
pub(crate) fn extend(mut job: Job, token: &Token, span: Option<Span>, now: Moment) -> Result<Job, Refusal> {
    check_lease(&job, token)?;
    if let Some(lease) = &mut job.lease {
        let asked = now.after(span.unwrap_or(lease.span));
        lease.alive = now;
        lease.until = job.spec.lease.map_or(asked, |own| asked.max(now.after(own)));
    }
    Ok(job)
}

/// The worker reports how its run ended.
pub(crate) fn settle(job: Job, settlement: &Settlement, now: Moment) -> Result<Settled, Refusal> {
    if repeats_success(&job, settlement) {
        return Ok(Settled::Repeated(job));
    }
    check_lease(&job, &settlement.lease_ref.token)?;
    let transition = match &settlement.report {
        AttemptOutcome::Done(result) => complete(job, result.as_ref(), now)?,
        AttemptOutcome::Failed(decision) => {
            let decision = decision(&job);
            fail(job, decision, now)?
        }
        AttemptOutcome::Released { most, .. } if job.releases >= *most => return Err(Refusal::TooManyReleases(*most)),
        AttemptOutcome::Released { delay, .. } => {
            let later = (!delay.is_zero()).then(|| now.after(*delay));
            let mut released = release(job, later, now)?;
            released.job.releases = released.job.releases.saturating_add(1);
            released
        }
    };
    Ok(Settled::Transition(transition))
}

/// A run that is overdue is ended by the server. A run that is not overdue is refused.
pub(crate) fn reclaim(job: Job, decide: &Decider<'_>, grace: &Grace, now: Moment) -> Result<Transition, Refusal> {
    let (_, why) = overdue(&job, grace, now).ok_or(Refusal::WrongState(job.state))?;
    let decision = decide(&job, why);
    Ok(Transition { overdue: Some(why), ..fail(job, decision, now)? })
}

/// A run succeeded.
fn complete(job: Job, result: Option<&Blob>, now: Moment) -> Result<Transition, Refusal> {
    let mut done = finish(job, EventKind::Completed, now)?;
    let lease = done.lease.as_ref().map(|lease| (lease.token, Arc::clone(&lease.worker)));
    (done.job.settled, done.job.completed_by) = lease.unzip();
    done.job.result = result.cloned();
    Ok(done)
}

/// A run failed: the worker reports it, or the server found it overdue.
fn fail(job: Job, decision: Decision, now: Moment) -> Result<Transition, Refusal> {
    let verdict = decision.verdict;
    let mut failed = match verdict.outcome {
        Outcome::Retry { origin: Origin::Requeue, .. } => release(job, Some(decision.due), now)?,
        Outcome::Retry { delay, .. } => {
            let mut failed = advance(job, EventKind::RetryScheduled, now)?;
            failed.job.due = Some(decision.due);
            failed.job.last_delay = Some(delay);
            record(&mut failed, decision.error, verdict);
            failed
        }
        Outcome::Stop { disposition, .. } => {
            let mut failed = finish(job, EventKind::Discarded, now)?;
            failed.job.dead = disposition == Disposition::DeadLetter;
            record(&mut failed, decision.error, verdict);
            failed
        }
    };
    (failed.verdict, failed.policy) = (Some(verdict), decision.policy);
    Ok(failed)
}

/// Adds the run that has just failed to the job's record.
fn record(failed: &mut Transition, error: Blob, verdict: Verdict) {
    let (job, at) = (&mut failed.job, failed.at);
    job.history.record(&verdict);
    job.releases = 0;
    let worker = failed.lease.as_ref().map(|lease| Arc::clone(&lease.worker)).unwrap_or_default();
    let started = job.times.started.unwrap_or(at);
    let available = job.times.available.unwrap_or(started);
    let (generation, attempt) = (job.generation, job.attempt);
    job.failures.push(FailedAttempt { generation, attempt, available, started, at, worker, error, verdict });
    let surplus = job.failures.len().saturating_sub(KEPT_FAILURES);
    job.failures.drain(..surplus);
}

/// Since when the run is overdue, and why it is ended. Where both times are over, the earlier one says
/// since when, and the deadline says why: no heartbeat could have saved that run.
pub(crate) fn overdue(job: &Job, grace: &Grace, now: Moment) -> Option<(Moment, Overdue)> {
    let lease = job.lease.as_ref()?;
    let since = Some(grace.overdue(lease)).filter(|since| *since <= now)?;
    let timed_out = lease.deadline.is_some_and(|deadline| deadline <= now);
    Some((since, if timed_out { Overdue::TimedOut } else { Overdue::Stalled }))
}

/// The time that the job waited for has come.
pub(crate) fn fall_due(job: Job, now: Moment) -> Result<Transition, Refusal> {
    open(job, EventKind::Due, now)
}

/// A pending job may run from now on.
pub(crate) fn activate(job: Job, now: Moment) -> Result<Transition, Refusal> {
    open(job, EventKind::Activated, now)
}

/// The job is cancelled.
pub(crate) fn cancel(job: Job, now: Moment) -> Result<Transition, Refusal> {
    finish(job, EventKind::Cancelled, now)
}

/// The job expires while it waits.
pub(crate) fn expire(job: Job, now: Moment) -> Result<Transition, Refusal> {
    let mut expired = finish(job, EventKind::Expired, now)?;
    let job = &mut expired.job;
    job.dead = job.spec.policy.on_expiry(&job.history) == Disposition::DeadLetter;
    Ok(expired)
}

/// The job begins another generation.
pub(crate) fn redrive(job: Job, redrive: &Redrive, now: Moment) -> Result<Transition, Refusal> {
    let mut redriven = open(job, EventKind::Redriven, now)?;
    let job = &mut redriven.job;
    if let Some(spec) = redriven_spec(&job.spec, redrive) {
        revise(job, spec, &redrive.by, now);
    }
    if redrive.spec.is_some() {
        job.unique.clone_from(&redrive.unique);
    }
    job.history = History::new(now);
    job.generation = job.generation.saturating_add(1);
    (job.attempt, job.releases) = (0, 0);
    job.dead = false;
    (job.times.finished, job.last_delay) = (None, None);
    (job.result, job.settled, job.completed_by) = (None, None, None);
    redriven.attempt = 0;
    Ok(redriven)
}

/// The specification of a job in its next generation; `None` where nothing changes. The old expiry is cleared: it
/// would end the next generation before its first run.
pub(crate) fn redriven_spec(spec: &Arc<Spec>, redrive: &Redrive) -> Option<Arc<Spec>> {
    let lasting = || spec.expires.map(|_| Arc::new(Spec { expires: None, ..(**spec).clone() }));
    redrive.spec.clone().or_else(lasting)
}

/// Replaces the specification of the job, and stores the body that is replaced.
fn revise(job: &mut Job, spec: Arc<Spec>, by: &Arc<str>, now: Moment) {
    if spec.body != job.spec.body {
        let body = Arc::clone(&job.spec.body);
        job.revisions.push(Revision { generation: job.generation, at: now, by: Arc::clone(by), body });
        let surplus = job.revisions.len().saturating_sub(KEPT_REVISIONS);
        job.revisions.drain(..surplus);
    }
    job.spec = spec;
}

/// Whether a token fits the lease of the job.
pub(crate) fn check_lease(job: &Job, token: &Token) -> Result<(), Refusal> {
    let Some(lease) = &job.lease else {
        return Err(match token {
            Token::Lease(token) if (1..=job.leases).contains(&token.number) => Refusal::StaleLease,
            _ => Refusal::WrongState(job.state),
        });
    };
    match token {
        Token::Lease(token) if *token == lease.token => Ok(()),
        // Old nonces are not stored: any token with the number of an earlier lease passes for it.
        Token::Lease(token) if (1..lease.token.number).contains(&token.number) => Err(Refusal::StaleLease),
        Token::Lease(_) => Err(Refusal::WrongLease),
        // A lease that was taken without the name of a worker fits any name.
        Token::Worker(worker) if !lease.worker.is_empty() && *worker != lease.worker => Err(Refusal::OtherWorker),
        Token::Worker(_) | Token::None => Ok(()),
    }
}

/// Whether this reports the success that completed the job again, because the answer got lost.
fn repeats_success(job: &Job, settlement: &Settlement) -> bool {
    match (&settlement.report, &settlement.lease_ref.token, job.settled) {
        (AttemptOutcome::Done(_), Token::Lease(token), Some(settled)) => *token == settled,
        _ => false,
    }
}

/// A run ends unfinished and does not count: the job is available at once, or due later.
fn release(job: Job, due: Option<Moment>, now: Moment) -> Result<Transition, Refusal> {
    let mut released = match due {
        None => open(job, EventKind::Released, now)?,
        Some(due) => {
            let mut snoozed = advance(job, EventKind::Snoozed, now)?;
            snoozed.job.due = Some(due);
            snoozed
        }
    };
    released.job.attempt = released.job.attempt.saturating_sub(1);
    Ok(released)
}

/// The job may run from now on.
fn open(job: Job, event: EventKind, now: Moment) -> Result<Transition, Refusal> {
    let mut opened = advance(job, event, now)?;
    opened.job.due = None;
    opened.job.times.available = Some(now);
    Ok(opened)
}

/// The job has ended, and is no dead letter unless the rule says so.
fn finish(job: Job, event: EventKind, now: Moment) -> Result<Transition, Refusal> {
    let mut finished = advance(job, event, now)?;
    finished.job.due = None;
    finished.job.times.finished = Some(now);
    Ok(finished)
}

/// The one way from state to state. A lease does not outlast the state in which it was given.
fn advance(mut job: Job, event: EventKind, now: Moment) -> Result<Transition, Refusal> {
    let from = job.state;
    job.state = from.after(event).ok_or(Refusal::WrongState(from))?;
    let lease = job.lease.take();
    Ok(Transition { lease, ..Transition::new(job, event, Some(from), now) })
}
