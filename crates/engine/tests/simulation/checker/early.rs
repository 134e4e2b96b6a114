//! Nothing starts before its time, after its time, or out of a closed queue.

use super::Case;
use super::attempts::is_released;
use super::history::{entry_of, is_silence, sent};
use super::signs::last_signs;
use crate::ledger::{Ended, Reply, Run, Seq, Settle, short};
use redrive_policy::{Moment, Signal, Span};
use redrive_store::{FailedAttempt, Start};

pub(super) fn verify(case: &mut Case<'_>) {
    for (number, run) in &case.account.runs {
        if run.job.spec.expires.is_some_and(|expires| run.job.times.started.is_none_or(|started| started >= expires)) {
            case.violation("early", format!("lease {number} began after the job expired"));
        }
        closed(case, *number, run);
        begins(case, *number, run);
        let previous = number.checked_sub(1).and_then(|before| Some((before, case.account.runs.get(&before)?)));
        if let Some((before, earlier)) = previous.filter(|(_, earlier)| earlier.job.generation == run.job.generation) {
            follows(case, before, earlier, run);
        }
    }
}

/// The queue was closed all the time.
fn closed(case: &mut Case<'_>, number: u32, run: &Run) {
    let of_queue = || case.ledger.pauses.iter().filter(|pause| *pause.queue == *run.job.spec.queue);
    let shut = of_queue().filter(|pause| pause.paused && pause.surely && pause.when.before(run.when));
    let opened =
        |since: Seq| of_queue().any(|pause| !pause.paused && pause.when.to > since && pause.when.may_precede(run.when));
    if shut.clone().any(|pause| !opened(pause.when.from)) {
        case.violation("early", format!("lease {number} was handed out of a closed queue at {:?}", run.when));
    }
}

/// The first generation begins when the order says.
fn begins(case: &mut Case<'_>, number: u32, run: &Run) {
    if run.job.generation > 0 {
        return;
    }
    let account = case.account;
    let since = account.submits.iter().map(|submit| submit.when.from).min().unwrap_or(0);
    let ready = match account.planned_jobs[0].start {
        Start::Available => true,
        Start::Scheduled(due) => case.ledger.latest_swept(since, run.when.to) >= due,
        Start::Pending => account.activations.iter().any(|call| call.reply.maybe() && call.when.may_precede(run.when)),
    };
    if !ready {
        case.violation("early", format!("lease {number} began at {:?}, before the job was to start", run.when));
    }
}

/// A run waits for as long as the end of the one before says.
fn follows(case: &mut Case<'_>, before: u32, earlier: &Run, run: &Run) {
    let ready = if run.job.attempt == earlier.job.attempt {
        case.account.settles_of(before).filter(|settle| is_released(settle) && settle.reply.maybe()).any(|settle| {
            let due = case.ledger.earliest(settle.when.from, settle.when.to).after(wait_of(settle));
            case.ledger.latest_swept(settle.when.from, run.when.to) >= due
        })
    } else {
        match entry_of(&run.job, earlier.job.generation, earlier.job.attempt) {
            Some(entry) => waited(case, before, earlier, run, entry),
            None => {
                let message = format!("lease {before} failed, and the next one at {:?} has no record of it", run.when);
                case.violation("history", message);
                return;
            }
        }
    };
    if !ready {
        let message = format!("the run at {:?} began too early after lease {before}: {}", run.when, short(&run.job));
        case.violation("early", message);
    }
}

/// How long a run that is released asks to wait.
fn wait_of(settle: &Settle) -> Span {
    match &settle.ending {
        Ended::Released { delay } => *delay,
        Ended::Failed { reported, .. } => match reported.signal {
            Signal::RequeueAfter(delay) => delay,
            _ => Span::ZERO,
        },
        Ended::Done { .. } => Span::ZERO,
    }
}

fn waited(case: &Case<'_>, before: u32, earlier: &Run, run: &Run, entry: &FailedAttempt) -> bool {
    let Some(delay) = entry.verdict.delay() else { return false };
    let latest = |since: Seq| case.ledger.latest_swept(since, run.when.to);
    if sent(entry).is_some() {
        let settles = case.account.settles_of(before).filter(|settle| !matches!(settle.reply, Reply::No(_)));
        let since = settles.map(|settle| settle.when.from).min().unwrap_or(earlier.when.from);
        return latest(since) >= entry.at.after(delay);
    }
    let due: Option<Moment> = if is_silence(entry) {
        // The wait counts from the last heartbeat, and the lease must have run out.
        last_signs(case, before, run.when.to).iter().map(|sign| sign.alive.after(delay).max(sign.until)).min()
    } else {
        Some(entry.at.after(delay))
    };
    due.is_some_and(|due| latest(earlier.when.from) >= due)
}
