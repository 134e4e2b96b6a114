//! What each event does to one job: the rules of the verbs, without any store around them.
//!
//! Every function changes the job whole or refuses; the state moves by [`State::after`] only.

use crate::{
    Claim, Event, FailedRun, Job, KEPT_FAILURES, Lease, LeaseToken, NewJob, Overdue, Proof, Refusal, Report, Ruling,
    Settlement, Spec, Start, State, Times,
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
        revivals: 0,
        releases: 0,
        dead: false,
        times: Times { created: now, available: (state == State::Available).then_some(now), ..Times::default() },
        last_delay: None,
        failures: Vec::new(),
        result: None,
        settled: None,
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

/// A sign of life. A span that comes with it holds for this one sign only.
pub(crate) fn extend(job: &mut Job, proof: &Proof, span: Option<Span>, now: Moment) -> Result<(), Refusal> {
    check_hold(job, proof)?;
    if let Some(lease) = &mut job.lease {
        lease.alive = now;
        lease.until = now.after(span.unwrap_or(lease.span));
    }
    Ok(())
}

/// The worker reports how its run ended.
pub(crate) fn settle(job: &mut Job, settlement: &Settlement, now: Moment) -> Result<(), Refusal> {
    if repeats_success(job, settlement) {
        return Ok(());
    }
    check_hold(job, &settlement.hold.proof)?;
    match &settlement.report {
        Report::Done(result) => {
            finish(job, Event::Ack, now)?;
            job.result.clone_from(result);
            Ok(())
        }
        Report::Failed(ruling) => fail(job, ruling(job), now),
        Report::Released { most, .. } if job.releases >= *most => Err(Refusal::TooManyReleases(*most)),
        Report::Released { delay, .. } => {
            let later = (!delay.is_zero()).then(|| now.after(*delay));
            give_back(job, later, now)?;
            job.releases = job.releases.saturating_add(1);
            Ok(())
        }
    }
}

/// A run failed: the worker says so, or the store found it overdue.
pub(crate) fn fail(job: &mut Job, ruling: Ruling, now: Moment) -> Result<(), Refusal> {
    let verdict = ruling.verdict;
    match verdict.outcome {
        Outcome::Retry { origin: Origin::Requeue, .. } => return give_back(job, Some(ruling.due), now),
        Outcome::Retry { delay, .. } => {
            advance(job, Event::FailRetry)?;
            job.lease = None;
            job.due = Some(ruling.due);
            job.last_delay = Some(delay);
        }
        Outcome::Stop { disposition, .. } => {
            finish(job, Event::FailStop, now)?;
            job.dead = disposition == Disposition::DeadLetter;
        }
    }
    job.history.record(&verdict);
    job.releases = 0;
    let (life, attempt) = (job.revivals, job.attempt);
    job.failures.push(FailedRun { life, attempt, at: now, error: ruling.error, verdict });
    let surplus = job.failures.len().saturating_sub(KEPT_FAILURES);
    job.failures.drain(..surplus);
    Ok(())
}

/// Since when the run is overdue, and why it is ended. Where both times are over, the earlier one says
/// since when, and the deadline says why: no sign of life could have saved that run.
pub(crate) fn overdue(job: &Job, now: Moment) -> Option<(Moment, Overdue)> {
    let lease = job.lease.as_ref()?;
    let over = |at: &Moment| *at <= now;
    let deadline = lease.deadline.filter(over);
    let until = Some(lease.until).filter(over);
    let since = deadline.into_iter().chain(until).min()?;
    Some((since, if deadline.is_some() { Overdue::TimedOut } else { Overdue::Stalled }))
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
pub(crate) fn wake(job: &Job, held: bool) -> Option<Moment> {
    let due = job.state.after(Event::Due).and(job.due).filter(|_| !held);
    let expires = job.state.after(Event::Expire).and(job.spec.expires);
    let lease = job.lease.as_ref();
    let ends = [lease.map(|lease| lease.until), lease.and_then(|lease| lease.deadline)];
    [due, expires].into_iter().chain(ends).flatten().min()
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
    let lease = job.lease.take();
    job.settled = lease.filter(|_| event == Event::Ack).map(|lease| lease.token);
    job.due = None;
    job.times.finished = Some(now);
    Ok(())
}

/// The job begins another life.
pub(crate) fn revive(job: &mut Job, spec: Option<Arc<Spec>>, now: Moment) -> Result<(), Refusal> {
    open(job, Event::Revive, now)?;
    job.spec = spec.unwrap_or_else(|| Arc::clone(&job.spec));
    job.history = History::new(now);
    job.revivals = job.revivals.saturating_add(1);
    (job.attempt, job.releases) = (0, 0);
    job.dead = false;
    (job.times.finished, job.last_delay, job.result, job.settled) = (None, None, None, None);
    Ok(())
}

/// Whether a hold on the job is proven.
pub(crate) fn check_hold(job: &Job, proof: &Proof) -> Result<(), Refusal> {
    let Some(lease) = &job.lease else {
        return Err(match proof {
            Proof::Token(token) if (1..=job.leases).contains(&token.number) => Refusal::StaleLease,
            _ => Refusal::WrongState(job.state),
        });
    };
    match proof {
        Proof::Token(token) if *token == lease.token => Ok(()),
        // Old nonces are not kept: any token with the number of an earlier lease passes for it.
        Proof::Token(token) if (1..lease.token.number).contains(&token.number) => Err(Refusal::StaleLease),
        Proof::Token(_) => Err(Refusal::WrongLease),
        // A lease that was taken without a name is nobody's in particular: any name may claim it.
        Proof::Worker(worker) if !lease.worker.is_empty() && *worker != lease.worker => Err(Refusal::OtherWorker),
        Proof::Worker(_) | Proof::None => Ok(()),
    }
}

/// Whether this reports the success that completed the job once more, because the answer got lost.
fn repeats_success(job: &Job, settlement: &Settlement) -> bool {
    match (&settlement.report, &settlement.hold.proof, job.settled) {
        (Report::Done(_), Proof::Token(token), Some(settled)) => *token == settled,
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
