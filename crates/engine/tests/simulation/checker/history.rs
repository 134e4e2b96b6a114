//! Every failure that was acknowledged is in the history, nothing else is, and each was decided as
//! the law says.

use super::Case;
use super::attempts::{expectation_of, maybe_released};
use super::signs::last_signs;
use crate::expectation::{Cause, Expectation, Expected};
use crate::ledger::{Ended, Reply, short};
use redrive_policy::{Disposition, Moment, Outcome, Signal};
use redrive_store::{FailedAttempt, Job, KEPT_FAILURES, State};

/// The number of the error, where a worker sent it.
pub(super) fn sent(entry: &FailedAttempt) -> Option<usize> {
    std::str::from_utf8(&entry.error).ok()?.strip_prefix("error ")?.parse().ok()
}

/// Whether the run went silent, rather than took too long.
pub(super) fn is_silence(entry: &FailedAttempt) -> bool {
    kind(entry).is_some_and(|kind| kind == "visibility_timeout")
}

fn kind(entry: &FailedAttempt) -> Option<String> {
    let error: serde_json::Value = serde_json::from_slice(&entry.error).ok()?;
    error["type"].as_str().map(str::to_owned)
}

/// The record of a failed attempt.
pub(super) fn entry_of(job: &Job, generation: u32, attempt: u32) -> Option<&FailedAttempt> {
    job.failures.iter().find(|entry| entry.generation == generation && entry.attempt == attempt)
}

pub(super) fn verify(case: &mut Case<'_>) {
    let Some((_, job)) = case.account.last_seen() else { return };
    let cut = job.failures.len() >= KEPT_FAILURES;
    if !cut {
        recorded(case, job);
    }
    // The oldest generation may be known in part only.
    let first = if cut { job.failures[0].generation + 1 } else { 0 };
    for generation in first..=job.generation {
        let entries: Vec<&FailedAttempt> = job.failures.iter().filter(|entry| entry.generation == generation).collect();
        decided(case, job, generation, &entries);
    }
    let counted =
        job.failures.iter().filter(|entry| entry.generation == job.generation && entry.verdict.counted()).count();
    if first <= job.generation && job.history.failures() as usize != counted {
        let message = format!("{} failures are counted, and {counted} recorded", job.history.failures());
        case.violation("history", message);
    }
}

/// What was acknowledged is there, and what was refused is not.
fn recorded(case: &mut Case<'_>, job: &Job) {
    for settle in &case.account.settles {
        let Ended::Failed { number, reported } = &settle.ending else { continue };
        let times = job.failures.iter().filter(|entry| sent(entry) == Some(*number)).count();
        let requeued = matches!(reported.signal, Signal::RequeueAfter(_));
        let same = || {
            case.account
                .settles
                .iter()
                .filter(|other| matches!(&other.ending, Ended::Failed { number: same, .. } if same == number))
        };
        let (least, most) = match &settle.reply {
            _ if requeued => (0, 0),
            Reply::Yes(_) => (1, 1),
            Reply::Lost => (0, 1),
            Reply::No(_) => (0, usize::from(same().any(|other| other.reply.maybe()))),
        };
        if !(least..=most).contains(&times) {
            let message = format!("error {number} is recorded {times} times, and at {:?} it was sent", settle.when);
            case.violation("history", message);
        }
    }
}

/// One generation, failure by failure.
fn decided(case: &mut Case<'_>, job: &Job, generation: u32, entries: &[&FailedAttempt]) {
    let Some(expectation) = expectation_of(case.account, generation).cloned() else { return };
    let began = began(case, job, generation);
    let mut before: Vec<Cause> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let attempt = index as u32 + 1;
        if entry.attempt != attempt || entry.verdict.attempt != attempt {
            return case
                .violation("history", format!("generation {generation}: attempt {attempt} is recorded as {entry:?}"));
        }
        let Some(cause) = cause(case, generation, entry) else {
            return case.violation("history", format!("nobody knows of this failure: {entry:?}"));
        };
        if began.is_some() || expectation.max_elapsed_ms.is_none() {
            let elapsed_ms = began.map_or(0.0, |began| entry.at.since(began).ms());
            lawful(case, &expectation, &before, &cause, entry, elapsed_ms);
        }
        let stopped = entry.verdict.delay().is_none();
        let last = index + 1 == entries.len();
        let over = job.generation > generation || job.state == State::Discarded;
        if stopped && !(last && over) {
            case.violation("terminal", format!("generation {generation} went on after a stop: {}", short(job)));
        }
        before.push(cause);
    }
}

/// When a generation began, where anybody knows.
fn began(case: &Case<'_>, job: &Job, generation: u32) -> Option<Moment> {
    if generation == job.generation {
        return Some(job.history.created());
    }
    case.account.seen().find(|(_, seen)| seen.generation == generation).map(|(_, seen)| seen.history.created())
}

/// What the books know about the cause of a failure; absent where they contradict it.
fn cause(case: &Case<'_>, generation: u32, entry: &FailedAttempt) -> Option<Cause> {
    if let Some(number) = sent(entry) {
        return case.account.settles.iter().find_map(|settle| {
            let run = case.account.runs.get(&settle.run?)?;
            let same_run = run.job.generation == generation && run.job.attempt == entry.attempt;
            match &settle.ending {
                Ended::Failed { number: same, reported }
                    if *same == number
                        && same_run
                        && settle.reply.maybe()
                        && case.ledger.showed(settle.when, entry.at) =>
                {
                    Some(Cause::Reported(reported.clone()))
                }
                _ => None,
            }
        });
    }
    let kind = kind(entry)?;
    let attempt =
        |(_, run): &(&u32, &crate::ledger::Run)| run.job.generation == generation && run.job.attempt == entry.attempt;
    let known = case.account.runs.iter().filter(attempt).map(|(number, _)| *number).max();
    match known.filter(|run| !maybe_released(case.account, *run)) {
        Some(run) if !was_overdue(case, run, &kind, entry.at) => None,
        _ => Some(Cause::Overdue),
    }
}

/// Whether a run that somebody had can have been found overdue at a time.
fn was_overdue(case: &Case<'_>, run: u32, kind: &str, at: Moment) -> bool {
    let deadline = case.account.runs[&run].job.lease.as_ref().and_then(|lease| lease.deadline);
    let too_long = deadline.is_some_and(|deadline| deadline <= at);
    let settled = case.account.settles_of(run).any(|settle| settle.reply.surely());
    // A heartbeat that was accepted was given before; the last one counts.
    let silent = last_signs(case, run, u64::MAX).iter().any(|sign| sign.until <= at);
    !settled
        && match kind {
            "visibility_timeout" => silent && !too_long,
            "timeout" => too_long,
            _ => false,
        }
}

fn lawful(
    case: &mut Case<'_>,
    expectation: &Expectation,
    before: &[Cause],
    cause: &Cause,
    entry: &FailedAttempt,
    elapsed_ms: f64,
) {
    // Times are whole microseconds, and the laws above are computed in another order of operations.
    let close = |low: f64, ms: f64, high: f64| low - 0.001 - low * 1e-9 <= ms && ms <= high + 0.001 + high * 1e-9;
    let expected = expectation.decide(before, cause, elapsed_ms);
    let fits = expected.iter().any(|expected| match (expected, entry.verdict.outcome) {
        (Expected::Retry { low_ms, high_ms }, Outcome::Retry { delay, .. }) => close(*low_ms, delay.ms(), *high_ms),
        (Expected::Stop { reason, dead }, Outcome::Stop { reason: decided, disposition }) => {
            decided.name() == *reason && (disposition == Disposition::DeadLetter) == *dead
        }
        _ => false,
    });
    if !fits {
        let message = format!(
            "{cause:?} after {} others, {elapsed_ms} ms old: {entry:?} in place of {expected:?} by {expectation:?}",
            before.len()
        );
        case.violation("law", message);
    }
}
