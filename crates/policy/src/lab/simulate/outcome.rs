//! What a simulation found.

use super::tally::{SECOND_US, Tally};
use crate::{Moment, Span};
use serde::Serialize;

/// The most points of a [`Series`].
pub const MOST_BINS: usize = 600;

/// What became of a cohort. `succeeded + given_up + waiting` is the number of jobs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Jobs that were done in the end.
    pub succeeded: u32,
    /// Jobs that the policy stopped.
    pub given_up: u32,
    /// Those among them that were stopped at or after the end of the outage: one more attempt might
    /// have been enough.
    pub given_up_after_recovery: u32,
    /// Jobs whose next attempt lies at or beyond the horizon, or that did not arrive before it.
    pub waiting: u32,
    /// Those that count as waiting because they ran so often that the simulation took them out:
    /// a policy that comes back at once and does not give up.
    pub cut_short: u32,
    /// Attempts, the first runs included.
    pub attempts: u64,
    /// Attempts that failed.
    pub wasted: u64,
    /// Those among them that came after the outage and found the capacity of their second used up.
    pub overloaded: u64,
    /// The second with the most attempts.
    pub peak: Peak,
    /// The second with the most retries; absent where there were none.
    pub retry_peak: Option<Peak>,
    /// The second with the most attempts, among the one in which the outage ends and those after it;
    /// absent where there were none.
    pub recovery_peak: Option<Peak>,
    /// The most attempts that were served in one second.
    pub served_peak_per_s: u32,
    /// The instant with the most retries; absent where there were none.
    pub busiest_instant: Option<BusiestInstant>,
    /// When the last job was done; absent where none was.
    #[serde(rename = "last_done_ms")]
    pub last_done: Option<Span>,
    /// When the last attempt was made.
    #[serde(rename = "last_attempt_ms")]
    pub last_attempt: Span,
    /// Attempts over time.
    pub series: Series,
}

/// The busiest of all seconds, which are counted from time 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Peak {
    /// How many there were in this second.
    pub per_s: u32,
    /// When the second began.
    #[serde(rename = "at_ms")]
    pub at: Span,
}

/// The busiest of all instants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct BusiestInstant {
    /// How many retries fell on it.
    pub retries: u32,
    /// The same as a share of the cohort. Above 1 where jobs come back more than once within it.
    pub share: f64,
    /// When it began.
    #[serde(rename = "at_ms")]
    pub at: Span,
    /// How long an instant is: 1 ms, or 10 ms, 100 ms, 1 s for horizons beyond 4 h, 44 h, 18 d.
    #[serde(rename = "width_ms")]
    pub width: Span,
}

/// Attempts over time, in bins of equal width from time 0 to the last attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Series {
    /// The width of a bin: whole seconds, so that there are at most [`MOST_BINS`].
    #[serde(rename = "bin_ms")]
    pub bin: Span,
    /// First runs in each bin.
    pub first_runs: Vec<u64>,
    /// Retries in each bin.
    pub retries: Vec<u64>,
    /// Attempts in each bin that were served, whether or not they failed.
    pub served: Vec<u64>,
    /// The most attempts in a single second of each bin.
    pub peak_per_s: Vec<u32>,
    /// The most attempts that were served in a single second of each bin.
    pub served_peak_per_s: Vec<u32>,
}

/// The widths that a bin may have, in seconds; beyond them, whole days.
const BIN_SECONDS: [usize; 16] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200];
const DAY_SECONDS: usize = 86_400;

impl Outcome {
    pub(super) fn of(tally: &Tally, jobs: u32, outage_end: Moment) -> Self {
        let seconds = (tally.last_attempt.micros() / SECOND_US) as usize + 1;
        let instants_per_second = (SECOND_US / tally.instant_us) as usize;
        let mut retries: Vec<u32> =
            tally.retries.counts().chunks(instants_per_second).map(|second| second.iter().sum()).collect();
        retries.resize(seconds, 0);
        let attempts: Vec<u32> = retries.iter().zip(&tally.first_runs).map(|(a, b)| a + b).collect();
        let recovery = (outage_end.micros() / SECOND_US) as usize;
        Self {
            succeeded: tally.succeeded,
            given_up: tally.given_up,
            given_up_after_recovery: tally.given_up_after,
            waiting: tally.waiting,
            cut_short: tally.cut_short,
            attempts: tally.attempts,
            wasted: tally.failed,
            overloaded: tally.overloaded,
            peak: peak_of(&attempts, 0).unwrap_or(Peak { per_s: 0, at: Span::ZERO }),
            retry_peak: peak_of(&retries, 0),
            recovery_peak: peak_of(&attempts, recovery),
            served_peak_per_s: tally.served.iter().copied().max().unwrap_or(0),
            busiest_instant: busiest(tally, jobs),
            last_done: tally.last_done.map(since_origin),
            last_attempt: since_origin(tally.last_attempt),
            series: Series::of(tally, &retries, &attempts),
        }
    }
}

impl Series {
    fn of(tally: &Tally, retries: &[u32], attempts: &[u32]) -> Self {
        let seconds = attempts.len();
        let least = seconds.div_ceil(MOST_BINS);
        let width = BIN_SECONDS.into_iter().find(|width| *width >= least);
        let width = width.unwrap_or(least.div_ceil(DAY_SECONDS) * DAY_SECONDS);
        let sums = |counts: &[u32]| -> Vec<u64> {
            let bins = counts[..seconds.min(counts.len())].chunks(width);
            bins.map(|bin| bin.iter().map(|count| u64::from(*count)).sum()).collect()
        };
        let peaks = |counts: &[u32]| -> Vec<u32> {
            let bins = counts[..seconds.min(counts.len())].chunks(width);
            bins.map(|bin| bin.iter().copied().max().unwrap_or(0)).collect()
        };
        Self {
            bin: Span::saturating_ms(width as f64 * 1000.0),
            first_runs: sums(&tally.first_runs),
            retries: sums(retries),
            served: sums(&tally.served),
            peak_per_s: peaks(attempts),
            served_peak_per_s: peaks(&tally.served),
        }
    }
}

/// The first of the highest counts, from the second `from` on.
fn peak_of(per_second: &[u32], from: usize) -> Option<Peak> {
    let (second, count) = highest(per_second, from)?;
    Some(Peak { per_s: count, at: Span::saturating_ms(second as f64 * 1000.0) })
}

fn busiest(tally: &Tally, jobs: u32) -> Option<BusiestInstant> {
    let (instant, retries) = highest(tally.retries.counts(), 0)?;
    let width_ms = tally.instant_us as f64 / 1000.0;
    Some(BusiestInstant {
        retries,
        share: f64::from(retries) / f64::from(jobs),
        at: Span::saturating_ms(instant as f64 * width_ms),
        width: Span::saturating_ms(width_ms),
    })
}

/// The index and the value of the highest count, the first one of equals; `None` for none but zeroes.
fn highest(counts: &[u32], from: usize) -> Option<(usize, u32)> {
    let best = counts.iter().skip(from).copied().max().filter(|count| *count > 0)?;
    let place = counts.iter().skip(from).position(|count| *count == best)?;
    Some((from + place, best))
}

fn since_origin(moment: Moment) -> Span {
    moment.since(Moment::ORIGIN)
}
