//! The one decision: what happens after a failure.

use crate::{
    AttemptLimit, Disposition, Draw, Failure, History, Moment, Origin, Outcome, Policy, Reason, Rule, Signal, Span,
    Unmatched, Verdict,
};

/// Decides what happens after a failure. Pure: the same arguments give the same verdict.
///
/// `now` counts from the same origin as the history's moment of creation. The history is not
/// changed; the caller stores the verdict and calls [`History::record`] in one atomic step.
///
/// The order of the checks is that of the documents: the handler's signal, the rules, the limit on
/// attempts, the limit on elapsed time, and only then the delay.
#[must_use]
pub fn decide(policy: &Policy, history: &History, failure: &Failure<'_>, now: Moment, draw: Draw) -> Verdict {
    let attempt = history.failures().saturating_add(1);
    if let Some(outcome) = outcome_of_signal(failure.signal, policy.on_stop) {
        return Verdict { attempt, rule: None, outcome };
    }
    let stop = |rule, reason| Verdict { attempt, rule, outcome: Outcome::Stop { reason, disposition: policy.on_stop } };
    let handler = match failure.signal {
        Signal::Overdue => Ok((0, &policy.rules[0])),
        _ => policy.rule_for(failure),
    };
    let (index, rule) = match handler {
        Ok(found) => found,
        Err(mismatch) => {
            return match policy.unmatched {
                Unmatched::NonRetryable => stop(None, Reason::NonRetryable(mismatch)),
                Unmatched::PassesThrough => stop(None, Reason::Unmatched),
            };
        }
    };
    let handled = history.handled(index);
    let retry = handled.count.saturating_add(1);
    if let Some(reason) = spent(policy.attempts, rule, attempt, retry) {
        return stop(Some(index), reason);
    }
    let overdue = |delay| overdue(policy.max_elapsed, history.created(), now, delay);
    if let Some(reason) = overdue(None) {
        return stop(Some(index), reason);
    }
    let granted = |outcome| Verdict { attempt, rule: Some(index), outcome };
    // Each outcome is put together where its delay is known: it is large, and moving it is dear.
    if let Some(delay) = failure.delay {
        return match overdue(Some(delay)) {
            Some(reason) => stop(Some(index), reason),
            None => granted(Outcome::Retry { delay, origin: Origin::Override }),
        };
    }
    let computed = rule.backoff.delay(retry, handled.previous, draw);
    match overdue(Some(computed.delay)) {
        Some(reason) => stop(Some(index), reason),
        None => granted(Outcome::Retry { delay: computed.delay, origin: Origin::Backoff(computed) }),
    }
}

/// The limit on elapsed time, where it is reached, or would be after this delay.
#[inline]
fn overdue(limit: Option<Span>, created: Moment, now: Moment, delay: Option<Span>) -> Option<Reason> {
    let limit = limit?;
    let elapsed = now.since(created);
    let reached = elapsed.plus(delay.unwrap_or(Span::ZERO)) >= limit;
    reached.then_some(Reason::MaxElapsed { limit, elapsed, delay })
}

fn outcome_of_signal(signal: Signal, on_stop: Disposition) -> Option<Outcome> {
    let stop = |reason, disposition| Some(Outcome::Stop { reason, disposition });
    match signal {
        Signal::None | Signal::Overdue => None,
        Signal::Stop(disposition) => stop(Reason::Handler, disposition),
        Signal::Unrecoverable => stop(Reason::Unrecoverable, Disposition::DeadLetter),
        Signal::Permanent => stop(Reason::NonRetryable(crate::Mismatch::Permanent), on_stop),
        Signal::Prune => stop(Reason::Pruned, Disposition::Discard),
        Signal::RequeueAfter(delay) => Some(Outcome::Retry { delay, origin: Origin::Requeue }),
    }
}

/// The limit that this attempt, or this failure of the rule, has used up.
#[inline]
fn spent(attempts: AttemptLimit, rule: &Rule, attempt: u32, handled: u32) -> Option<Reason> {
    match attempts {
        AttemptLimit::Disabled | AttemptLimit::Unset => return Some(Reason::RetriesDisabled),
        AttemptLimit::AtMost(limit) if attempt >= limit => return Some(Reason::MaxAttempts { limit }),
        _ => {}
    }
    rule.budget.filter(|budget| handled >= *budget).map(|limit| Reason::MaxAttempts { limit })
}

/// The shortest and the longest delay over all draws, of this and the earlier retries.
///
/// Every jitter grows with its draw, and the decorrelated one with its previous delay, so the
/// bounds are the delays of the two jobs that always meet the lowest, or the highest, draw.
#[derive(Clone, Debug)]
pub struct Bounds {
    low: History,
    high: History,
}

impl Bounds {
    /// The bounds for a job that has this history of overrides and draws so far: none.
    #[must_use]
    pub const fn new(created: Moment) -> Self {
        Self { low: History::new(created), high: History::new(created) }
    }

    /// The bounds of the delay that `verdict` chose, and takes note of it. `None` for a stop.
    pub fn record(&mut self, policy: &Policy, verdict: &Verdict) -> Option<(Span, Span)> {
        let at = |history: &mut History, draw| {
            let mut verdict = *verdict;
            if let (Some(rule), Outcome::Retry { delay, origin: Origin::Backoff(computed) }) =
                (verdict.rule, &mut verdict.outcome)
            {
                let previous = history.handled(rule).previous;
                *delay = policy.rules[rule].backoff.delay(computed.retry, previous, draw).delay;
            }
            history.record(&verdict);
            verdict.delay()
        };
        let low = at(&mut self.low, Draw::LOWEST)?;
        let high = at(&mut self.high, Draw::SUPREMUM)?;
        Some((low, high))
    }
}
