//! How long a lease can have lasted.

use super::Case;
use crate::ledger::{Extend, Seq, Told, When};
use redrive_policy::Moment;

/// A sign of life: the claim, or an extension.
pub(super) struct Sign {
    pub(super) when: When,
    /// When it was given, at the earliest.
    pub(super) alive: Moment,
    /// Until when it lasts, at the least.
    pub(super) until: Moment,
    /// False where the answer got lost.
    pub(super) surely: bool,
}

/// The signs of life of a run that may have been the last one at a point, each with the consequence
/// that the ones before it no longer count. Empty where nobody knows the run.
pub(super) fn last_signs(case: &Case<'_>, run: u32, by: Seq) -> Vec<Sign> {
    let Some(first) = case.account.runs.get(&run) else { return Vec::new() };
    let Some(lease) = &first.job.lease else { return Vec::new() };
    let mut signs = vec![Sign { when: first.when, alive: lease.alive, until: lease.until, surely: true }];
    let extends = case.account.extends.iter().filter(|extend| extend.run == Some(run) && extend.when.from < by);
    signs.extend(extends.filter_map(|extend| sign(case, extend, lease.span)));
    let surely = signs.iter().rposition(|sign| sign.surely).unwrap_or(0);
    signs.drain(..surely);
    signs
}

fn sign(case: &Case<'_>, extend: &Extend, own: redrive_policy::Span) -> Option<Sign> {
    let when = extend.when;
    match &extend.told {
        Told::Yes(job) => {
            let lease = job.lease.as_ref()?;
            Some(Sign { when, alive: lease.alive, until: lease.until, surely: true })
        }
        Told::Lost => {
            let alive = case.ledger.earliest(when.from, when.to);
            Some(Sign { when, alive, until: alive.after(extend.span.unwrap_or(own)), surely: false })
        }
        Told::No(_) => None,
    }
}

/// Whether somebody may have found a run overdue by a point.
pub(super) fn may_be_overdue(case: &Case<'_>, run: u32, by: Seq) -> bool {
    let Some(first) = case.account.runs.get(&run) else { return true };
    let deadline = first.job.lease.as_ref().and_then(|lease| lease.deadline);
    let too_long = deadline.is_some_and(|deadline| case.ledger.latest_swept(first.when.from, by) >= deadline);
    too_long || last_signs(case, run, by).iter().any(|sign| case.ledger.latest_swept(sign.when.from, by) >= sign.until)
}
