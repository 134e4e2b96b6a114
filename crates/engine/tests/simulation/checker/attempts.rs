//! Attempts stay within the limit: counted by the leases that were claimed, not by what the engine
//! says about them, and what it says agrees.

use super::Case;
use crate::expectation::Expectation;
use crate::ledger::{Account, Ended, Run, Settle};
use crate::planned_job::PlannedJob;
use crate::server_policies::MOST_RELEASES;
use redrive_policy::Signal;
use std::collections::BTreeMap;

/// Whether a settlement releases a run, so that it does not count.
pub(super) fn is_released(settle: &Settle) -> bool {
    match &settle.ending {
        Ended::Released { .. } => true,
        Ended::Failed { reported, .. } => matches!(reported.signal, Signal::RequeueAfter(_)),
        Ended::Done { .. } => false,
    }
}

/// Whether a run was released for sure.
pub(super) fn surely_released(account: &Account, run: u32) -> bool {
    account.settles_of(run).any(|settle| is_released(settle) && settle.reply.surely())
}

/// Whether a run may have been released. One whose claim got no answer cannot: nobody has its token.
pub(super) fn maybe_released(account: &Account, run: u32) -> bool {
    account.settles_of(run).any(|settle| is_released(settle) && settle.reply.maybe())
}

/// The law of a generation, as far as anybody has seen the job in it.
pub(super) fn expectation_of(account: &Account, generation: u32) -> Option<&Expectation> {
    let (_, job) = account.seen().find(|(_, job)| job.generation == generation)?;
    let (_, version) = PlannedJob::of(job)?;
    account.planned_jobs.get(version).map(|planned| &planned.expectation)
}

pub(super) fn verify(case: &mut Case<'_>) {
    let mut generations: BTreeMap<u32, Vec<(u32, &Run)>> = BTreeMap::new();
    for (number, run) in &case.account.runs {
        generations.entry(run.job.generation).or_default().push((*number, run));
    }
    for (generation, runs) in generations {
        within_limit(case, generation, &runs);
        for pair in runs.windows(2) {
            step(case, pair[0], pair[1]);
        }
        releases(case, generation, &runs);
    }
}

fn within_limit(case: &mut Case<'_>, generation: u32, runs: &[(u32, &Run)]) {
    let Some(limit) = expectation_of(case.account, generation).and_then(|expectation| expectation.limit) else {
        return;
    };
    let counted = runs.iter().filter(|(number, _)| !maybe_released(case.account, *number)).count();
    let last = runs.iter().map(|(_, run)| run.job.attempt).max().unwrap_or(0);
    if counted > limit as usize || last > limit {
        let message =
            format!("generation {generation}: {counted} runs, the last as attempt {last}, and {limit} are allowed");
        case.violation("attempts", message);
    }
}

/// From one known run to the next: each in between counts, unless it was released.
fn step(case: &mut Case<'_>, (first, earlier): (u32, &Run), (second, later): (u32, &Run)) {
    let (mut least, mut most) = (0, 0);
    for run in first..second {
        least += u32::from(!maybe_released(case.account, run));
        most += u32::from(!surely_released(case.account, run));
    }
    let (from, to) = (earlier.job.attempt, later.job.attempt);
    if from == 0 || !(from + least..=from + most).contains(&to) {
        let message = format!("leases {first} and {second} are attempts {from} and {to}, {least} to {most} runs apart");
        case.violation("attempts", message);
    }
}

/// Between two failures a job is released no more often than the settings allow.
fn releases(case: &mut Case<'_>, generation: u32, runs: &[(u32, &Run)]) {
    let mut released: BTreeMap<u32, u32> = BTreeMap::new();
    for (number, run) in runs {
        let times = case
            .account
            .settles_of(*number)
            .filter(|settle| settle.reply.surely() && matches!(settle.ending, Ended::Released { .. }));
        *released.entry(run.job.attempt).or_default() += times.count() as u32;
    }
    if let Some((attempt, times)) = released.into_iter().find(|(_, times)| *times > MOST_RELEASES) {
        case.violation("attempts", format!("generation {generation}, attempt {attempt}: released {times} times"));
    }
}
