//! Every retry of a policy, and how long each takes.

mod decorrelated;
mod uniform;
mod walk;

use crate::{Backoff, Policy, Span};
use serde::Serialize;
use walk::Walk;

/// The number of retries that are looked at one by one. Nearly every policy rests at its cap long
/// before; what does not is cut here, and [`Schedule::complete`] says so.
pub const MOST_ROWS: u32 = 1_000_000;

/// The retries of one job whose every failure is handled by one rule, with runs that take no time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Schedule {
    /// The position of the rule, from 0.
    pub rule: usize,
    /// The timing that the rule asks for.
    pub backoff: Backoff,
    /// How many retries the limits on attempts allow; absent where nothing limits them.
    pub retries: Option<u32>,
    /// The first retries, in order.
    pub rows: Vec<Row>,
    /// All delays added up, until the limit on attempts ends the job; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Track>,
    /// Where the limit on elapsed time ends the job; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_limit: Option<ElapsedLimit>,
    /// False where the delays still changed after [`MOST_ROWS`] retries: the total then covers
    /// those only, and an end that lies beyond them is not named.
    pub complete: bool,
}

/// One retry.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The number of the retry, from 1; it follows the run of the same number.
    pub retry: u32,
    /// The delay before this retry.
    pub delay: Track,
    /// The time from the first failure until this retry starts.
    pub since_start: Track,
    /// True where the cap shortens the delay, at least for the highest draws.
    pub capped: bool,
    /// The share of jobs that failed at one instant and that return at one instant, from 0 to 1:
    /// the probability that the cap cuts the jittered delay, or 1 where the draw has no say at all.
    pub on_one_instant: f64,
}

/// A time over all draws: of this retry, and of the earlier ones where it depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Track {
    /// The greatest lower bound.
    #[serde(rename = "shortest_ms")]
    pub shortest: Span,
    /// The mean.
    #[serde(rename = "mean_ms")]
    pub mean: Span,
    /// The least upper bound. [`Span::MAX`] stands for itself and for everything longer.
    #[serde(rename = "longest_ms")]
    pub longest: Span,
}

/// Where the limit on elapsed time ends the job, for three jobs: the one whose every delay is the
/// shortest, the mean, or the longest. Absent where the job never gets there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ElapsedLimit {
    /// The limit, from the job's creation.
    #[serde(rename = "limit_ms")]
    pub limit: Span,
    /// The end of the job with the shortest delays.
    pub shortest: Option<End>,
    /// The end of the job with the mean delays.
    pub mean: Option<End>,
    /// The end of the job with the longest delays.
    pub longest: Option<End>,
}

/// The end of a job by the limit on elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct End {
    /// The first retry that is refused, because it would start at the limit or after it.
    pub retry: u32,
    /// When that is decided: at once when the run before it fails, not at the limit.
    #[serde(rename = "at_ms")]
    pub at: Span,
}

/// The schedule of one rule, with at most `rows` rows, and never more than [`MOST_ROWS`].
///
/// A rule that the policy does not have grants no retry.
#[must_use]
pub fn schedule(policy: &Policy, rule: usize, rows: usize) -> Schedule {
    let Some(found) = policy.rules.get(rule) else {
        let (backoff, retries) = (Backoff::IMMEDIATE, Some(0));
        let total = Some(Track::default());
        return Schedule { rule, backoff, retries, rows: Vec::new(), total, elapsed_limit: None, complete: true };
    };
    let retries = policy.max_retries(found);
    let rows = u32::try_from(rows).unwrap_or(u32::MAX).min(MOST_ROWS).min(retries.unwrap_or(u32::MAX));
    let mut walk = Walk::new(&found.backoff, retries, policy.max_elapsed);
    let rows = (0..rows).map(|_| walk.advance()).collect();
    let complete = walk.finish();
    Schedule {
        rule,
        backoff: found.backoff,
        retries,
        rows,
        total: retries.map(|_| walk.since_start()),
        elapsed_limit: walk.elapsed_limit(),
        complete,
    }
}

impl Track {
    fn plus(self, other: Self) -> Self {
        Self {
            shortest: self.shortest.plus(other.shortest),
            mean: self.mean.plus(other.mean),
            longest: self.longest.plus(other.longest),
        }
    }

    fn times(self, count: u32) -> Self {
        let count = f64::from(count);
        Self { shortest: self.shortest.times(count), mean: self.mean.times(count), longest: self.longest.times(count) }
    }
}
