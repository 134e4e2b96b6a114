//! What a cohort meets.

use crate::{Failure, Moment, Problem, Problems, Signal, Span};
use serde::{Deserialize, Serialize};

/// The largest cohort. A job takes some 100 bytes while it waits for the outage to end.
pub const MOST_JOBS: u32 = 5_000_000;
/// The longest horizon, 90 days: attempts are counted second by second.
pub const LONGEST_HORIZON: Span = Span::from_secs(90 * 86_400);

/// A cohort of jobs, and an outage of what they all depend on. Time 0 is the start of both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// How many jobs there are; from 1 to [`MOST_JOBS`].
    pub jobs: u32,
    /// When they arrive.
    pub arrival: Arrival,
    /// How long every attempt fails, from time 0. May be zero.
    #[serde(rename = "outage_ms")]
    pub outage: Span,
    /// How many attempts are served in each second after the outage, the first ones to come; the
    /// others of that second fail. No limit where it is absent.
    pub capacity_per_s: Option<u32>,
    /// The probability, from 0 to 1, that a served attempt fails nevertheless.
    pub failure_rate_after: f64,
    /// The error type of every failure, such as `external.timeout`.
    pub failure_type: String,
    /// The code of every failure; empty for none.
    pub failure_code: String,
    /// What every failure says about retrying, if anything.
    pub failure_retryable: Option<bool>,
    /// The same seed gives the same outcome.
    pub seed: u64,
    /// Attempts due at this time or later are not run; their jobs count as waiting. More than zero,
    /// at most [`LONGEST_HORIZON`].
    #[serde(rename = "horizon_ms")]
    pub horizon: Span,
}

/// When the jobs of a cohort arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// All of them at time 0.
    AllAtOnce,
    /// So many in each second, evenly spaced from time 0; more than zero.
    PerSecond(f64),
}

impl Default for Scenario {
    /// Ten thousand jobs at once, five minutes of outage, a day to look at, no limit after.
    fn default() -> Self {
        Self {
            jobs: 10_000,
            arrival: Arrival::AllAtOnce,
            outage: Span::from_secs(300),
            capacity_per_s: None,
            failure_rate_after: 0.0,
            failure_type: "error".to_owned(),
            failure_code: String::new(),
            failure_retryable: None,
            seed: 1,
            horizon: Span::from_secs(86_400),
        }
    }
}

impl Scenario {
    /// Checks the values.
    ///
    /// # Errors
    /// Every value that is not allowed, with the path of its field in the JSON form.
    pub fn check(&self) -> Result<(), Problems> {
        let mut problems = Vec::new();
        let mut refuse = |path: &str, found: String, allowed: String| problems.push(Problem::new(path, found, allowed));
        if !(1..=MOST_JOBS).contains(&self.jobs) {
            let allowed = format!("1 to {MOST_JOBS} jobs; a share of them shows the same shape");
            refuse("/jobs", self.jobs.to_string(), allowed);
        }
        if let Arrival::PerSecond(rate) = self.arrival
            && !(rate > 0.0 && rate.is_finite())
        {
            refuse("/arrival/per_second", rate.to_string(), "a finite number greater than 0".to_owned());
        }
        if self.capacity_per_s == Some(0) {
            refuse("/capacity_per_s", "0".to_owned(), "at least 1, or no capacity for no limit".to_owned());
        }
        if !(0.0..=1.0).contains(&self.failure_rate_after) {
            refuse("/failure_rate_after", self.failure_rate_after.to_string(), "a number from 0 to 1".to_owned());
        }
        if self.horizon.is_zero() || self.horizon > LONGEST_HORIZON {
            let allowed = format!("more than zero and at most {LONGEST_HORIZON}");
            refuse("/horizon_ms", self.horizon.to_string(), allowed);
        }
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }

    /// The failure that every attempt of this scenario meets.
    #[must_use]
    pub fn failure(&self) -> Failure<'_> {
        Failure {
            type_name: &self.failure_type,
            code: &self.failure_code,
            retryable: self.failure_retryable,
            signal: Signal::None,
            delay: None,
        }
    }

    /// When the job of this number, from 0, arrives.
    pub(super) fn arrival_of(&self, job: u32) -> Moment {
        match self.arrival {
            Arrival::AllAtOnce => Moment::ORIGIN,
            Arrival::PerSecond(rate) => Moment::ORIGIN.after(Span::saturating_ms(f64::from(job) / rate * 1000.0)),
        }
    }
}
