//! Invariants that hold for every job at every time.

use crate::{Job, KEPT_FAILURES, KEPT_REVISIONS, State};

/// The invariant that a job breaks, if there is one.
pub(super) fn unsound(job: &Job) -> Option<&'static str> {
    let state = job.state;
    let waits_for_its_time = matches!(state, State::Scheduled | State::Retryable);
    let failures = job.history.failures();
    // A run counts from its claim on, so the current run has not ended in a failure yet.
    let runs_beyond_failures = match state {
        State::Scheduled | State::Pending | State::Available | State::Retryable | State::Discarded => 0..=0,
        State::Active | State::Completed => 1..=1,
        State::Cancelled => 0..=1,
    };
    let runs: Vec<(u32, u32)> = job.failures.iter().map(|run| (run.generation, run.attempt)).collect();
    let rules = [
        (job.due.is_some() == waits_for_its_time, "has a due time if and only if it waits for one"),
        (job.lease.is_some() == (state == State::Active), "has a lease if and only if it is active"),
        (job.times.finished.is_some() == state.is_terminal(), "has an end if and only if it has ended"),
        (job.settled.is_some() == (state == State::Completed), "knows its last lease if and only if it is completed"),
        (job.result.is_none() || state == State::Completed, "has a result only if it is completed"),
        (!job.dead || state == State::Discarded, "is a dead letter only if it is discarded"),
        (state != State::Available || job.times.available.is_some(), "knows since when it is available"),
        (job.failures.len() <= KEPT_FAILURES, "stores no more failures than allowed"),
        (runs.is_sorted_by(|a, b| a < b), "stores its failures in order"),
        (
            runs.last().is_none_or(|(generation, _)| *generation <= job.generation),
            "has failed in no later generation than its own",
        ),
        (job.completed_by.is_some() == (state == State::Completed), "knows who completed it if and only if that is so"),
        (job.revisions.len() <= KEPT_REVISIONS, "stores no more revisions than allowed"),
        (job.revisions.is_sorted_by(|a, b| a.generation < b.generation), "stores its revisions in order"),
        (job.revisions.last().is_none_or(|last| last.generation < job.generation), "was revised by redrives only"),
        (job.lease.as_ref().is_none_or(|lease| lease.token.number == job.leases), "numbers its leases"),
        (runs_beyond_failures.contains(&job.attempt.saturating_sub(failures)), "counts its runs"),
        (job.attempt >= failures, "has not failed more often than it ran"),
    ];
    rules.into_iter().find_map(|(is_met, rule)| (!is_met).then_some(rule))
}
