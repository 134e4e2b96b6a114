//! The limit that a job brings.

use serde::{Serialize, Serializer};
use std::time::Duration;

/// A limit on runs. Jobs with the same key share it, in whatever queue they are. All of its bounds have to allow a run;
/// a job that has to wait does not delay others.
///
/// ```
/// use redrive_worker::{NewJob, RateLimit};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stripe = RateLimit::key("stripe-api").concurrency(5).rate(100, Duration::from_secs(60));
/// let job = NewJob::new("payment.charge", 4711)?.rate_limit(stripe);
/// # drop(job);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RateLimit {
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throttle: Option<Rate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Rate {
    limit: u32,
    #[serde(serialize_with = "iso")]
    period: Duration,
}

fn iso<S: Serializer>(period: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("PT{}S", period.as_secs_f64()))
}

impl RateLimit {
    /// A limit without bounds yet. Letters, digits, dots, colons, hyphens and _ make a key.
    pub fn key(key: impl Into<String>) -> Self {
        Self { key: key.into(), concurrency: None, rate: None, throttle: None }
    }

    /// How many jobs may be active at once.
    #[must_use]
    pub const fn concurrency(mut self, most: u32) -> Self {
        self.concurrency = Some(most);
        self
    }

    /// How many runs may start within any span of this length.
    #[must_use]
    pub const fn rate(mut self, limit: u32, period: Duration) -> Self {
        self.rate = Some(Rate { limit, period });
        self
    }

    /// How many runs may start in this time, spaced evenly.
    #[must_use]
    pub const fn throttle(mut self, limit: u32, period: Duration) -> Self {
        self.throttle = Some(Rate { limit, period });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_open_job_spec_has_it() {
        let limit = RateLimit::key("api").concurrency(5).throttle(10, Duration::from_millis(1_500));
        let expected = serde_json::json!({
            "key": "api", "concurrency": 5, "throttle": { "limit": 10, "period": "PT1.5S" },
        });
        assert_eq!(serde_json::to_value(limit).unwrap(), expected);
    }
}
