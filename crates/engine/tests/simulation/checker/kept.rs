//! Nothing that was acknowledged is lost, nothing comes back, and batches are kept whole.

use super::{Case, Violation};
use crate::ledger::{Ledger, Seq, Submitted, When, short, under_way};
use crate::server_policies::RETENTION;
use redrive_store::State;

pub(super) fn verify(case: &mut Case<'_>, end: When) {
    let account = case.account;
    let there = account.seen().find(|(when, _)| *when == end).map(|(_, job)| job);
    match there {
        None if account.acknowledged() && !gone(case, end.to) => {
            case.violation("kept", "it was acknowledged, and it is not there any more".to_owned());
        }
        Some(job) if !job.state.is_terminal() && job.state != State::Pending => {
            case.violation("at rest", format!("it never ended: {}", short(job)));
        }
        _ => {}
    }
    for observation in account.observations.iter().filter(|observation| observation.job.is_none()) {
        if !gone(case, observation.when.to) {
            case.violation("kept", format!("it was not there at {:?}, and nobody removed it", observation.when));
        }
        if let Some((when, _)) = account.seen().find(|(when, _)| observation.when.before(*when)) {
            case.violation("kept", format!("it was gone at {:?} and there again at {when:?}", observation.when));
        }
    }
    duplicates(case);
}

/// An id that is taken was taken by an earlier request for the same job.
fn duplicates(case: &mut Case<'_>) {
    let submits = &case.account.submits;
    let unexplained = submits.iter().enumerate().find(|(index, submit)| {
        matches!(submit.outcome, Submitted::Duplicate | Submitted::Existing)
            && !submits[..*index].iter().any(|earlier| earlier.when.before(submit.when))
    });
    let created = submits.iter().filter(|submit| submit.outcome == Submitted::Created).count();
    if unexplained.is_some() || created > 1 {
        case.violation("once", format!("enqueued: {submits:?}"));
    }
}

/// Whether the job may have left by a point: somebody removed it, or it ended long enough ago.
pub(super) fn gone(case: &Case<'_>, by: Seq) -> bool {
    let (ledger, account) = (case.ledger, case.account);
    if account.removals.iter().any(|removal| removal.reply.maybe() && removal.when.from < by) {
        return true;
    }
    let last = account.last_seen_by(by);
    ledger.prunes.iter().filter(|prune| prune.from < by).any(|prune| {
        let since = last.map_or(0, |(when, _)| when.from);
        let (ended, kept_for) = match last {
            Some((_, job)) if job.state.is_terminal() => {
                let kept_for = if job.dead { RETENTION.dead } else { RETENTION.finished };
                (job.times.finished.unwrap_or_default(), kept_for)
            }
            // It ended later, at the hands of a sweep, an operator or a worker.
            _ => {
                let calls = account.cancels.iter().map(|call| call.when);
                let settles = account.settles.iter().map(|settle| settle.when);
                let enders = ledger.sweeps.iter().copied().chain(calls).chain(settles);
                (ledger.earliest(under_way(enders, since), prune.to), RETENTION.finished)
            }
        };
        ended.after(kept_for) <= ledger.latest(prune.from, prune.to)
    })
}

/// Jobs that were enqueued together are all there, or none of them is.
pub(super) fn batches(ledger: &Ledger) -> Vec<Violation> {
    // What was pruned or removed before anybody saw it tells nothing.
    if !ledger.prunes.is_empty() {
        return Vec::new();
    }
    let seen = |number: &usize| ledger.accounts[*number].id.is_some();
    let torn = ledger.batches.iter().filter(|batch| batch.iter().any(seen) && !batch.iter().all(seen));
    torn.map(|batch| Violation {
        check: "whole",
        message: format!("of the batch {batch:?} only a part was kept"),
        account: batch.first().copied(),
    })
    .collect()
}
