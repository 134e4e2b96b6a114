//! How long a lease can have lasted.

use super::Case;
use super::leases::lasts;
use crate::ledger::{Extend, Reply, Seq, Still, When};
use redrive_policy::{Moment, Span};
use redrive_store::Job;

/// A heartbeat: the claim, or an extension.
pub(super) struct Sign {
    pub(super) when: When,
    /// When it was given, at the earliest.
    pub(super) alive: Moment,
    /// Until when it lasts, at the least.
    pub(super) until: Moment,
    /// False where the answer got lost.
    pub(super) surely: bool,
}

/// The heartbeats of a run that may have been the last one at a point, each with the consequence
/// that the ones before it no longer count. Empty where nobody knows the run.
pub(super) fn last_signs(case: &Case<'_>, run: u32, by: Seq) -> Vec<Sign> {
    let Some(first) = case.account.runs.get(&run) else { return Vec::new() };
    let Some(lease) = &first.job.lease else { return Vec::new() };
    let mut signs = vec![Sign { when: first.when, alive: lease.alive, until: lease.until, surely: true }];
    let extends = case.account.extends.iter().filter(|extend| extend.run == Some(run) && extend.when.from < by);
    signs.extend(extends.filter_map(|extend| sign(case, extend, &first.job, lease.span)));
    let surely = signs.iter().rposition(|sign| sign.surely).unwrap_or(0);
    signs.drain(..surely);
    signs
}

fn sign(case: &Case<'_>, extend: &Extend, job: &Job, own: Span) -> Option<Sign> {
    let when = extend.when;
    match &extend.reply {
        Reply::Yes(job) => {
            let lease = job.lease.as_ref()?;
            Some(Sign { when, alive: lease.alive, until: lease.until, surely: true })
        }
        Reply::Lost => {
            let alive = case.ledger.earliest(when.from, when.to);
            let until = lasts(job, alive, extend.span.unwrap_or(own));
            Some(Sign { when, alive, until, surely: false })
        }
        Reply::No(_) => None,
    }
}

/// Whether somebody may have found a run overdue by a point.
pub(super) fn may_be_overdue(case: &Case<'_>, run: u32, by: Seq) -> bool {
    let Some(first) = case.account.runs.get(&run) else { return true };
    let Some(lease) = &first.job.lease else { return false };
    last_signs(case, run, by).iter().any(|sign| {
        let swept = |ends, from| {
            let spared = |still: &&Still| spared(case, sign, **still, lease.span, (from, by), ends);
            case.ledger.latest_swept(from, by) >= ends && !case.ledger.standstills.iter().any(|still| spared(&still))
        };
        let too_long = lease.deadline.is_some_and(|deadline| swept(deadline, first.when.from));
        too_long || swept(sign.until, sign.when.from)
    })
}

/// Whether a standstill kept every sweep between two points from finding a run overdue whose last heartbeat this
/// was, and which ends at a moment.
fn spared(case: &Case<'_>, sign: &Sign, still: Still, span: Span, (from, by): (Seq, Seq), ends: Moment) -> bool {
    let ended = case.ledger.earliest(still.when.from, still.when.to);
    if !sign.when.before(still.when) || sign.alive >= ended {
        return false;
    }
    let granted = ended.after(span.at_most(still.length));
    let (known, over) = (still.when.to.min(by), still.over.unwrap_or(by).min(by));
    let swept = |from, to, ends| case.ledger.swept_after(from, to, ends);
    !swept(from, known, ends) && !swept(known, over, ends.max(granted)) && !swept(over, by, ends)
}
