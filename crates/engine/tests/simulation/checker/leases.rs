//! At most one lease at a time is good: whatever is accepted came with the current one, and whatever
//! is refused was not, or is no more.

use super::Case;
use super::kept::gone;
use super::signs::may_be_overdue;
use crate::ledger::{Ended, Reply, Run, When, short};
use crate::server_policies::{LEASE, MOST_RELEASES, TIMEOUT};
use redrive_policy::Moment;
use redrive_store::{Job, Refusal, State};

pub(super) fn verify(case: &mut Case<'_>) {
    planned(case);
    for (number, run) in &case.account.runs {
        contents(case, *number, run);
        ends(case, *number);
    }
    for (index, settle) in case.account.settles.iter().enumerate() {
        let Some(run) = settle.run else {
            forged(case, &settle.reply);
            continue;
        };
        let done = matches!(settle.ending, Ended::Done { .. });
        match &settle.reply {
            Reply::Yes(job) if done && repeats(case, run, index, job) => {}
            Reply::Yes(_) => accepted(case, run, settle.when),
            Reply::No(_) if done && was_done(case, run, index) => {
                let message =
                    format!("lease {run} completed the job, and is told at {:?} that it did not", settle.when);
                case.violation("one lease", message);
            }
            Reply::No(refusal) => refused(case, run, settle.when, refusal, Some(index)),
            Reply::Lost => {}
        }
    }
    for extend in &case.account.extends {
        match (&extend.reply, extend.run) {
            (Reply::Yes(job), Some(run)) => {
                accepted(case, run, extend.when);
                extended(case, run, extend.when, extend.span, job);
            }
            (Reply::No(refusal), Some(run)) => refused(case, run, extend.when, refusal, None),
            (reply, None) => forged(case, reply),
            (Reply::Lost, _) => {}
        }
    }
}

/// Later claims get higher numbers.
fn planned(case: &mut Case<'_>) {
    let mut earlier: Option<(&u32, &Run)> = None;
    for (number, run) in &case.account.runs {
        if let Some((before, previous)) = earlier.filter(|(_, previous)| run.when.before(previous.when)) {
            let message = format!("lease {number} at {:?} came before lease {before} at {:?}", run.when, previous.when);
            case.violation("one lease", message);
        }
        earlier = Some((number, run));
    }
}

/// A lease says what the job, the claim and the settings say about it.
fn contents(case: &mut Case<'_>, number: u32, run: &Run) {
    let job = &run.job;
    let Some(lease) = &job.lease else { return };
    let span = job.spec.lease.or(run.lease_asked).unwrap_or(LEASE);
    let started = job.times.started.unwrap_or_default();
    let right = job.state == State::Active
        && job.leases == number
        && *lease.worker == *run.worker
        && lease.alive == started
        && case.ledger.showed(run.when, started)
        && lease.until == started.after(span)
        && lease.deadline == Some(started.after(job.spec.timeout.unwrap_or(TIMEOUT)));
    if !right {
        case.violation("one lease", format!("lease {number} is not as it was asked for: {}", short(job)));
    }
}

/// A run ends once.
fn ends(case: &mut Case<'_>, run: u32) {
    let ended: Vec<_> = case.account.settles_of(run).filter(|settle| settle.reply.surely()).collect();
    if ended.len() > 1 && !ended.iter().all(|settle| matches!(settle.ending, Ended::Done { .. })) {
        case.violation("one lease", format!("lease {run} was ended {} times", ended.len()));
    }
}

/// Whether this says again what completed the job before.
fn repeats(case: &Case<'_>, run: u32, index: usize, job: &Job) -> bool {
    job.state == State::Completed
        && job.settled.is_some_and(|token| token.number == run)
        && case.account.settles.iter().enumerate().any(|(other, settle)| {
            other != index
                && settle.run == Some(run)
                && settle.reply.maybe()
                && matches!(settle.ending, Ended::Done { .. })
                && settle.when.may_precede(case.account.settles[index].when)
        })
}

/// Whether a success had surely completed the job before this one was reported, and nothing happened
/// to the job since: it must get the same answer again.
fn was_done(case: &Case<'_>, run: u32, index: usize) -> bool {
    let account = case.account;
    let when = account.settles[index].when;
    let completed = account.seen().any(|(_, job)| job.settled.is_some_and(|token| token.number == run));
    let mut others = account.settles.iter().enumerate().filter(|(other, settle)| {
        *other != index
            && settle.run == Some(run)
            && settle.reply.maybe()
            && matches!(settle.ending, Ended::Done { .. })
    });
    let touched = account.generation.iter().any(|redrive| redrive.reply.maybe() && redrive.when.may_precede(when));
    completed && others.all(|(_, settle)| settle.when.before(when)) && !touched && !gone(case, when.to)
}

fn accepted(case: &mut Case<'_>, run: u32, when: When) {
    let over = case.account.seen().find(|(seen, job)| {
        seen.before(when) && (job.leases > run || (job.leases == run && job.state != State::Active))
    });
    if let Some((seen, job)) = over {
        let message = format!("lease {run} was good at {when:?}, and over at {seen:?}: {}", short(job));
        case.violation("one lease", message);
    }
}

/// Until when a heartbeat lasts: as long as the job asks for at the least.
pub(super) fn lasts(job: &Job, alive: Moment, span: redrive_policy::Span) -> Moment {
    job.spec.lease.map_or(alive.after(span), |own| alive.after(span).max(alive.after(own)))
}

fn extended(case: &mut Case<'_>, run: u32, when: When, span: Option<redrive_policy::Span>, job: &Job) {
    let right = job.lease.as_ref().is_some_and(|lease| {
        lease.token.number == run
            && case.ledger.showed(when, lease.alive)
            && lease.until == lasts(job, lease.alive, span.unwrap_or(lease.span))
    });
    if !right {
        case.violation("one lease", format!("lease {run} was not extended as asked for at {when:?}: {}", short(job)));
    }
}

fn forged(case: &mut Case<'_>, reply: &Reply) {
    if reply.surely() {
        case.violation("one lease", "a forged proof was taken".to_owned());
    }
}

fn refused(case: &mut Case<'_>, run: u32, when: When, refusal: &Refusal, index: Option<usize>) {
    let account = case.account;
    let explained = match refusal {
        Refusal::NotFound => gone(case, when.to),
        Refusal::StaleLease => {
            let ended = account.settles.iter().enumerate().any(|(other, settle)| {
                Some(other) != index && settle.run == Some(run) && settle.reply.maybe() && settle.when.may_precede(when)
            });
            let cancelled = account.cancels.iter().any(|call| call.reply.maybe() && call.when.may_precede(when));
            ended || cancelled || may_be_overdue(case, run, when.to)
        }
        Refusal::TooManyReleases(most) => *most == MOST_RELEASES && released(case, run, when) >= MOST_RELEASES as usize,
        Refusal::WrongState(_) | Refusal::WrongLease | Refusal::OtherWorker | Refusal::Duplicate(_) => false,
    };
    if !explained {
        case.violation("one lease", format!("lease {run} was refused at {when:?} for no reason: {refusal:?}"));
    }
}

/// How often the job may have been released since its last failure: those runs are the same attempt.
fn released(case: &Case<'_>, run: u32, when: When) -> usize {
    let runs = &case.account.runs;
    let attempt = |run: &u32| runs.get(run).map(|run| (run.job.generation, run.job.attempt));
    let before = case.account.settles.iter().filter(|settle| {
        matches!(settle.ending, Ended::Released { .. })
            && settle.reply.maybe()
            && settle.when.may_precede(when)
            && settle.run.is_some_and(|other| attempt(&other) == attempt(&run))
    });
    before.count()
}
