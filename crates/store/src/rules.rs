//! What each event does to one job: the rules of the verbs, without any store around them.
//!
//! Every function changes the job whole or refuses; the state moves by [`State::after`] only.

use crate::standstill::Grace;
use crate::{
    Claim, Decision, Event, FailedRun, Job, KEPT_FAILURES, KEPT_REVISIONS, Lease, LeaseToken, NewJob, Overdue, Redrive,
    Refusal, Revision, RunOutcome, Settlement, Spec, Start, State, Times, Token,
};
use redrive_policy::{Disposition, History, Moment, Origin, Outcome, Span};
use std::sync::Arc;

/// A job as it is when it has just been handed in.
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
    }
}

/// A worker takes the job; the run counts from here on.
pub(crate) fn claim(job: &mut Job, claim: &Claim, now: Moment) -> Result<(), Refusal> {
    advance(job, Event::Claim)?;
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
    Ok(())
}

/// A sign of life. A span that comes with it holds for this one sign only, and not below what the job asks for:
/// a worker that does not know that must not cut it short.
pub(crate) fn extend(job: &mut Job, token: &Token, span: Option<Span>, now: Moment) -> Result<(), Refusal> {
    check_lease(job, token)?;
    if let Some(lease) = &mut job.lease {
        let asked = now.after(span.unwrap_or(lease.span));
        lease.alive = now;
        lease.until = job.spec.lease.map_or(asked, |own| asked.max(now.after(own)));
    }
    Ok(())
}

/// The worker reports how its run ended.
pub(crate) fn settle(job: &mut Job, settlement: &Settlement, now: Moment) -> Result<(), Refusal> {
    if repeats_success(job, settlement) {
        return Ok(());
    }
    check_lease(job, &settlement.lease_ref.token)?;
    match &settlement.report {
        RunOutcome::Done(result) => {
            finish(job, Event::Ack, now)?;
            job.result.clone_from(result);
            Ok(())
        }
        RunOutcome::Failed(decision) => fail(job, decision(job), now),
        RunOutcome::Released { most, .. } if job.releases >= *most => Err(Refusal::TooManyReleases(*most)),
        RunOutcome::Released { delay, .. } => {
            let later = (!delay.is_zero()).then(|| now.after(*delay));
            give_back(job, later, now)?;
            job.releases = job.releases.saturating_add(1);
            Ok(())
        }
    }
}

/// A run failed: the worker says so, or the store found it overdue.
pub(crate) fn fail(job: &mut Job, decision: Decision, now: Moment) -> Result<(), Refusal> {
    let verdict = decision.verdict;
    let worker = job.lease.as_ref().map(|lease| Arc::clone(&lease.worker)).unwrap_or_default();
    match verdict.outcome {
        Outcome::Retry { origin: Origin::Requeue, .. } => return give_back(job, Some(decision.due), now),
        Outcome::Retry { delay, .. } => {
            advance(job, Event::FailRetry)?;
            job.lease = None;
            job.due = Some(decision.due);
            job.last_delay = Some(delay);
        }
        Outcome::Stop { disposition, .. } => {
            finish(job, Event::FailStop, now)?;
            job.dead = disposition == Disposition::DeadLetter;
        }
    }
    job.history.record(&verdict);
    job.releases = 0;
    let (generation, attempt) = (job.generation, job.attempt);
    let started = job.times.started.unwrap_or(now);
    let available = job.times.available.unwrap_or(started);
    job.failures.push(FailedRun {
        generation,
        attempt,
        available,
        started,
        at: now,
        worker,
        error: decision.error,
        verdict,
    });
    let surplus = job.failures.len().saturating_sub(KEPT_FAILURES);
    job.failures.drain(..surplus);
    Ok(())
}

/// Since when the run is overdue, and why it is ended. Where both times are over, the earlier one says
/// since when, and the deadline says why: no sign of life could have saved that run.
pub(crate) fn overdue(job: &Job, grace: &Grace, now: Moment) -> Option<(Moment, Overdue)> {
    let lease = job.lease.as_ref()?;
    let since = Some(grace.overdue(lease)).filter(|since| *since <= now)?;
    let timed_out = lease.deadline.is_some_and(|deadline| deadline <= now);
    Some((since, if timed_out { Overdue::TimedOut } else { Overdue::Stalled }))
}

/// Since when a waiting job may become available.
pub(crate) fn due(job: &Job, now: Moment) -> Option<Moment> {
    job.state.after(Event::Due)?;
    job.due.filter(|due| *due <= now)
}

/// Since when a waiting job has lost its point.
pub(crate) fn expired(job: &Job, now: Moment) -> Option<Moment> {
    job.state.after(Event::Expire)?;
    job.spec.expires.filter(|expires| *expires <= now)
}

/// The next moment at which something happens to the job by itself. Where its queue is held, that it is due is
/// nothing that happens.
pub(crate) fn wake(job: &Job, held: bool, grace: &Grace) -> Option<Moment> {
    let due = job.state.after(Event::Due).and(job.due).filter(|_| !held);
    let expires = job.state.after(Event::Expire).and(job.spec.expires);
    let overdue = job.lease.as_ref().map(|lease| grace.overdue(lease));
    [due, expires, overdue].into_iter().flatten().min()
}

/// The job may run from now on.
pub(crate) fn open(job: &mut Job, event: Event, now: Moment) -> Result<(), Refusal> {
    advance(job, event)?;
    job.due = None;
    job.times.available = Some(now);
    Ok(())
}

/// The job has come to its end, and is no dead letter unless somebody says so.
pub(crate) fn finish(job: &mut Job, event: Event, now: Moment) -> Result<(), Refusal> {
    advance(job, event)?;
    let lease = job.lease.take().filter(|_| event == Event::Ack);
    (job.settled, job.completed_by) = lease.map(|lease| (lease.token, lease.worker)).unzip();
    job.due = None;
    job.times.finished = Some(now);
    Ok(())
}

/// The job's time to live is over while it waits.
pub(crate) fn expire(job: &mut Job, now: Moment) -> Result<(), Refusal> {
    finish(job, Event::Expire, now)?;
    job.dead = job.spec.policy.on_expiry(&job.history) == Disposition::DeadLetter;
    Ok(())
}

/// The job begins another life.
pub(crate) fn redrive(job: &mut Job, redrive: &Redrive, now: Moment) -> Result<(), Refusal> {
    open(job, Event::Redrive, now)?;
    if let Some(spec) = redriven_spec(&job.spec, redrive) {
        revise(job, spec, &redrive.by, now);
    }
    job.history = History::new(now);
    job.generation = job.generation.saturating_add(1);
    (job.attempt, job.releases) = (0, 0);
    job.dead = false;
    (job.times.finished, job.last_delay) = (None, None);
    (job.result, job.settled, job.completed_by) = (None, None, None);
    Ok(())
}

/// What is said about a job in its next life; `None` where nothing changes. The old time to live is cleared:
/// it would end the next life before its first run.
pub(crate) fn redriven_spec(spec: &Arc<Spec>, redrive: &Redrive) -> Option<Arc<Spec>> {
    let lasting = || spec.expires.map(|_| Arc::new(Spec { expires: None, ..(**spec).clone() }));
    redrive.spec.clone().or_else(lasting)
}

/// Replaces what is said about the job, and keeps the body that is replaced.
fn revise(job: &mut Job, spec: Arc<Spec>, by: &Arc<str>, now: Moment) {
    if spec.body != job.spec.body {
        let body = Arc::clone(&job.spec.body);
        job.revisions.push(Revision { generation: job.generation, at: now, by: Arc::clone(by), body });
        let surplus = job.revisions.len().saturating_sub(KEPT_REVISIONS);
        job.revisions.drain(..surplus);
    }
    job.spec = spec;
}

/// Whether a hold on the job is proven.
pub(crate) fn check_lease(job: &Job, token: &Token) -> Result<(), Refusal> {
    let Some(lease) = &job.lease else {
        return Err(match token {
            Token::Lease(token) if (1..=job.leases).contains(&token.number) => Refusal::StaleLease,
            _ => Refusal::WrongState(job.state),
        });
    };
    match token {
        Token::Lease(token) if *token == lease.token => Ok(()),
        // Old nonces are not kept: any token with the number of an earlier lease passes for it.
        Token::Lease(token) if (1..lease.token.number).contains(&token.number) => Err(Refusal::StaleLease),
        Token::Lease(_) => Err(Refusal::WrongLease),
        // A lease that was taken without a name is nobody's in particular: any name may claim it.
        Token::Worker(worker) if !lease.worker.is_empty() && *worker != lease.worker => Err(Refusal::OtherWorker),
        Token::Worker(_) | Token::None => Ok(()),
    }
}

/// Whether this reports the success that completed the job once more, because the answer got lost.
fn repeats_success(job: &Job, settlement: &Settlement) -> bool {
    match (&settlement.report, &settlement.lease_ref.token, job.settled) {
        (RunOutcome::Done(_), Token::Lease(token), Some(settled)) => *token == settled,
        _ => false,
    }
}

/// A run ends unfinished and does not count: at once available, or due later.
fn give_back(job: &mut Job, due: Option<Moment>, now: Moment) -> Result<(), Refusal> {
    match due {
        None => open(job, Event::Release, now)?,
        Some(due) => {
            advance(job, Event::Snooze)?;
            job.due = Some(due);
        }
    }
    job.lease = None;
    job.attempt = job.attempt.saturating_sub(1);
    Ok(())
}

/// The one way from state to state.
fn advance(job: &mut Job, event: Event) -> Result<(), Refusal> {
    job.state = job.state.after(event).ok_or(Refusal::WrongState(job.state))?;
    Ok(())
}
