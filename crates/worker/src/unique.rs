//! What a job must be unique in.

use serde::{Serialize, Serializer};
use std::time::Duration;

/// Jobs of which there is one at a time: those of the same type, and of whatever else is named. A second one is refused
/// with the code `duplicate`, unless it is to be ignored or to replace the first.
///
/// ```
/// use redrive_worker::{NewJob, Unique};
/// use serde_json::json;
/// use std::time::Duration;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let one_an_hour = Unique::by_type().args(["customer"]).period(Duration::from_secs(3_600));
/// let job = NewJob::new("report.make", json!({ "customer": 42, "format": "pdf" }))?.unique(one_an_hour);
/// # drop(job);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unique {
    keys: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args_keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta_keys: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "iso")]
    period: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    states: Option<Vec<String>>,
    on_conflict: OnConflict,
}

/// What happens to a job that is a duplicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// It is refused.
    #[default]
    Reject,
    /// It is not enqueued; the answer is the job that is there.
    Ignore,
    /// The job that is there is cancelled.
    Replace,
    /// The same; where that job is scheduled, the new one is due at its time.
    ReplaceExceptSchedule,
}

impl Unique {
    /// One job of its type at a time.
    #[must_use]
    pub fn by_type() -> Self {
        let (keys, on_conflict) = (vec!["type"], OnConflict::Reject);
        Self { keys, args_keys: None, meta_keys: None, period: None, states: None, on_conflict }
    }

    /// One in each queue.
    #[must_use]
    pub fn queue(self) -> Self {
        self.with("queue")
    }

    /// One for the same arguments.
    #[must_use]
    pub fn all_args(self) -> Self {
        self.with("args")
    }

    /// One for the same values of these members of its only argument, an object.
    #[must_use]
    pub fn args<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.args_keys = Some(names.into_iter().map(Into::into).collect());
        self.with("args")
    }

    /// One for the same values of these members of its metadata.
    #[must_use]
    pub fn meta<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.meta_keys = Some(names.into_iter().map(Into::into).collect());
        self.with("meta")
    }

    /// Jobs count for so long after they were enqueued; by default, always.
    #[must_use]
    pub const fn period(mut self, period: Duration) -> Self {
        self.period = Some(period);
        self
    }

    /// Jobs in these states count; by default, in all in which they have not ended.
    #[must_use]
    pub fn states<S: Into<String>>(mut self, states: impl IntoIterator<Item = S>) -> Self {
        self.states = Some(states.into_iter().map(Into::into).collect());
        self
    }

    /// What happens to a duplicate; by default it is refused.
    #[must_use]
    pub const fn on_conflict(mut self, on_conflict: OnConflict) -> Self {
        self.on_conflict = on_conflict;
        self
    }

    fn with(mut self, dimension: &'static str) -> Self {
        if !self.keys.contains(&dimension) {
            self.keys.push(dimension);
        }
        self
    }
}

fn iso<S: Serializer>(period: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("PT{}S", period.unwrap_or_default().as_secs_f64()))
}
