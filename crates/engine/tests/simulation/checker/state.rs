//! Whatever state a job was seen in, what happened before explains it.

use super::Case;
use crate::ledger::{Ended, When, short};
use redrive_policy::{Disposition, Outcome};
use redrive_store::{Job, Start, State};
use std::rc::Rc;

pub(super) fn verify(case: &mut Case<'_>) {
    let observations: Vec<(When, Rc<Job>)> = case.account.seen().map(|(when, job)| (when, Rc::clone(job))).collect();
    for (when, job) in observations {
        if let Some(why_not) = unexplained(case, when, &job) {
            case.violation("state", format!("{why_not} at {when:?}: {}", short(&job)));
        }
    }
}

fn unexplained(case: &Case<'_>, when: When, job: &Job) -> Option<&'static str> {
    let account = case.account;
    let first_generation = job.generation == 0;
    let here = || job.failures.iter().filter(|entry| entry.generation == job.generation);
    let failed = here().count() as u32;
    let cut = job.failures.first().is_some_and(|entry| entry.generation == job.generation && entry.attempt > 1);
    let runs = |least, most| cut || (failed + least..=failed + most).contains(&job.attempt);
    let stopped = here().next_back().and_then(|entry| match entry.verdict.outcome {
        Outcome::Stop { disposition, .. } => Some(disposition == Disposition::DeadLetter),
        Outcome::Retry { .. } => None,
    });
    let kept = failed > 0 && job.spec.policy.on_stop == Disposition::DeadLetter;
    let expired = job.spec.expires.is_some_and(|expires| expires <= case.ledger.latest_swept(0, when.to));
    let redriven = account.generation.iter().filter(|redrive| redrive.reply.maybe() && redrive.when.may_precede(when));
    let cancelled = || account.cancels.iter().any(|call| call.reply.maybe() && call.when.may_precede(when));
    let checks = [
        (job.generation as usize <= redriven.count(), "it has more lives than it was given"),
        ((job.state == State::Active) == job.lease.is_some(), "a lease without a run, or the other way round"),
        (matches!(job.state, State::Scheduled | State::Retryable) == job.due.is_some(), "a time without a wait"),
        (job.state.is_terminal() == job.times.finished.is_some(), "an end without its time, or the other way round"),
        (!job.dead || job.state == State::Discarded, "a dead letter that is none"),
    ];
    if let Some((_, why_not)) = checks.into_iter().find(|(right, _)| !right) {
        return Some(why_not);
    }
    let explained = match job.state {
        State::Scheduled => {
            first_generation && matches!(account.planned_jobs[0].start, Start::Scheduled(_)) && job.leases == 0
        }
        State::Pending => first_generation && account.planned_jobs[0].start == Start::Pending && job.leases == 0,
        State::Available => runs(0, 0) && stopped.is_none(),
        State::Active => runs(1, 1) && stopped.is_none(),
        State::Retryable => runs(0, 0) && stopped.is_none() && job.leases > 0,
        State::Completed => runs(1, 1) && stopped.is_none() && completed(case, when, job),
        State::Cancelled => runs(0, 1) && stopped.is_none() && cancelled(),
        State::Discarded => runs(0, 0) && stopped.map_or(expired && job.dead == kept, |dead| dead == job.dead),
    };
    (!explained).then_some("nothing explains this state")
}

/// Somebody reported the success, with this result, under the lease that the job names.
fn completed(case: &Case<'_>, when: When, job: &Job) -> bool {
    let Some(token) = job.settled else { return false };
    case.account.settles_of(token.number).any(|settle| {
        let result = match &settle.ending {
            Ended::Done { result } => result,
            Ended::Failed { .. } | Ended::Released { .. } => return false,
        };
        *result == job.result && settle.reply.maybe() && settle.when.may_precede(when)
    })
}
