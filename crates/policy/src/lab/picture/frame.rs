//! The axes that all charts of one simulation share, so that they can be compared.

use super::Candidate;
use crate::lab::simulate::{Arrival, Outcome, Peak, Scenario};

/// How many times higher than the usual second the highest may be on an even axis.
const STEEP: f64 = 40.0;

/// How far the axes reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The time at the right end, in milliseconds.
    pub end_ms: f64,
    /// The highest number of attempts per second.
    pub highest: f64,
    /// True where the highest is so high that an even axis would show nothing else.
    pub logarithmic: bool,
}

impl Frame {
    pub(super) fn of(scenario: &Scenario, candidates: &[Candidate<'_>]) -> Self {
        let outcomes = || candidates.iter().map(|candidate| candidate.outcome);
        let last = outcomes().map(|outcome| outcome.last_attempt.ms()).fold(0.0, f64::max);
        let end_ms = (last + 1000.0).max(scenario.outage.at_most(scenario.horizon).ms()) * 1.02;
        let capacity = f64::from(scenario.capacity_per_s.unwrap_or(0));
        let marks = outcomes().flat_map(|outcome| marks(scenario, outcome));
        let retries = marks.map(|peak| f64::from(peak.per_s)).fold(capacity, f64::max);
        let logarithmic = outcomes().any(|outcome| retries > STEEP * usual(outcome));
        // First runs too: an axis that ended below them would show less than there was.
        let highest = outcomes().map(|outcome| f64::from(outcome.peak.per_s)).fold(retries, f64::max);
        Self { end_ms, highest: highest.max(1.0), logarithmic }
    }
}

/// The peaks that are worth a mark: the highest after the outage, and the highest of all. Where all
/// jobs arrive at once, that is the highest of the retries: the first runs are no policy's doing.
pub(super) fn marks(scenario: &Scenario, outcome: &Outcome) -> Vec<Peak> {
    let highest = match scenario.arrival {
        Arrival::AllAtOnce => outcome.retry_peak,
        Arrival::PerSecond(_) => Some(outcome.peak),
    };
    let mut marks: Vec<Peak> = outcome.recovery_peak.into_iter().chain(highest).collect();
    marks.dedup();
    marks
}

/// The busiest second of the usual bin that is not empty.
fn usual(outcome: &Outcome) -> f64 {
    let mut peaks: Vec<u32> = outcome.series.peak_per_s.iter().copied().filter(|peak| *peak > 0).collect();
    peaks.sort_unstable();
    peaks.get(peaks.len() / 2).copied().map_or(1.0, f64::from)
}
