//! What must be remembered of a job between two failures.

use crate::{Moment, Origin, Outcome, Span, Verdict};
use serde::{Deserialize, Serialize};

/// The past of one job: small, serialisable, and all that is needed to go on after a restart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// When the job was created; limits on elapsed time count from here.
    #[serde(rename = "created_us")]
    created: Moment,
    failures: u32,
    /// The first rule apart from the others, so that policies of one rule never allocate.
    first: Handled,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<Handled>,
}

/// What one rule has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handled {
    /// How many failures it handled.
    pub count: u32,
    /// The last delay that its backoff scheduled; waits that a failure asked for do not count.
    #[serde(rename = "previous_ms", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Span>,
}

impl History {
    /// A job that has not failed yet.
    #[must_use]
    pub const fn new(created: Moment) -> Self {
        Self { created, failures: 0, first: Handled { count: 0, previous: None }, others: Vec::new() }
    }

    /// A job that comes from elsewhere with no more than a count of its failures.
    #[must_use]
    pub const fn with_failures(created: Moment, failures: u32) -> Self {
        Self { created, failures, first: Handled { count: failures, previous: None }, others: Vec::new() }
    }

    /// A history as it was stored: `handled` is what [`History::rules`] returned.
    #[must_use]
    pub fn restored(created: Moment, failures: u32, handled: impl IntoIterator<Item = Handled>) -> Self {
        let mut handled = handled.into_iter();
        Self { created, failures, first: handled.next().unwrap_or_default(), others: handled.collect() }
    }

    /// What each rule has done so far, up to the last one that did anything; at least the first.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = Handled> {
        (0..self.others.len() + 1).map(|rule| self.handled(rule))
    }

    /// When the job was created.
    #[must_use]
    pub const fn created(&self) -> Moment {
        self.created
    }

    /// How many runs have failed.
    #[inline]
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// What the rule at this position has done so far.
    #[inline]
    #[must_use]
    pub fn handled(&self, rule: usize) -> Handled {
        match rule {
            0 => self.first,
            other => self.others.get(other - 1).copied().unwrap_or_default(),
        }
    }

    /// Takes note of a verdict. To be called once for each, before the next decision.
    #[inline]
    pub fn record(&mut self, verdict: &Verdict) {
        if !verdict.counted() {
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let Some(rule) = verdict.rule else { return };
        let handled = match rule {
            0 => &mut self.first,
            other => {
                if self.others.len() < other {
                    self.others.resize(other, Handled::default());
                }
                &mut self.others[other - 1]
            }
        };
        handled.count = handled.count.saturating_add(1);
        if let Outcome::Retry { delay, origin: Origin::Backoff(_) } = verdict.outcome {
            handled.previous = Some(delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_restored_from_its_parts() {
        let mut history = History::new(Moment::from_micros(5));
        let outcome = Outcome::Retry { delay: Span::from_secs(2), origin: Origin::Override };
        for rule in [Some(2), None, Some(0)] {
            history.record(&Verdict { attempt: 1, rule, outcome });
            let restored = History::restored(history.created(), history.failures(), history.rules());
            assert_eq!(restored, history);
        }
        assert_eq!(history.rules().len(), 3);
    }
}
