//! Schedules to be registered.

use crate::transport::job_document;
use crate::{ClientError, NewJob};
use serde_json::{Value, json};

/// A schedule to be registered: a job that is enqueued again and again.
///
/// ```
/// use redrive_worker::{NewJob, Overlap, Schedule};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let report = Schedule::new("daily-report", "0 9 * * MON-FRI", NewJob::new("report.make", "daily")?)
///     .timezone("Europe/Berlin")
///     .overlap(Overlap::CancelPrevious)
///     .description("The report for the morning meeting");
/// # drop(report);
/// # Ok(())
/// # }
/// ```
///
/// The expression has five fields, six with the second first, or is `@daily`, `@every 30m` and the like. Each job of a
/// schedule gets an id of its own and has no idempotency key: a job that has one of them is refused.
#[derive(Clone, Debug)]
#[must_use]
pub struct Schedule {
    pub(crate) name: String,
    expression: String,
    job: NewJob,
    timezone: Option<String>,
    overlap: Option<Overlap>,
    description: Option<String>,
    paused: bool,
}

/// What happens when a slot comes while a job of the schedule has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overlap {
    /// No job; the slot is counted as skipped.
    #[default]
    Skip,
    /// One more job.
    Allow,
    /// The job that is there is cancelled, and a new one enqueued.
    CancelPrevious,
    /// The job of the slot is enqueued when the one before has ended.
    Enqueue,
}

impl Overlap {
    const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Allow => "allow",
            Self::CancelPrevious => "cancel_previous",
            Self::Enqueue => "enqueue",
        }
    }
}

impl Schedule {
    /// A schedule with a name, when it is due, and the job that it enqueues.
    pub fn new(name: impl Into<String>, expression: impl Into<String>, job: NewJob) -> Self {
        Self {
            name: name.into(),
            expression: expression.into(),
            job,
            timezone: None,
            overlap: None,
            description: None,
            paused: false,
        }
    }

    /// The time zone of the expression, such as `Europe/Berlin`; the default is UTC.
    pub fn timezone(mut self, timezone: impl Into<String>) -> Self {
        self.timezone = Some(timezone.into());
        self
    }

    /// What happens when jobs overlap; the default is [`Overlap::Skip`].
    pub const fn overlap(mut self, overlap: Overlap) -> Self {
        self.overlap = Some(overlap);
        self
    }

    /// What it is for.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// It is registered, and not due until it is resumed.
    pub const fn paused(mut self) -> Self {
        self.paused = true;
        self
    }

    /// The schedule as a server takes it.
    pub(crate) fn document(&self) -> Result<Value, ClientError> {
        for (set, what) in [(self.job.id.is_some(), "id"), (self.job.idempotency_key.is_some(), "idempotency key")] {
            if set {
                let name = &self.name;
                let message = format!(
                    "the job of the schedule {name} has an {what}; leave it out: each of its jobs has an id of its own"
                );
                return Err(ClientError::Invalid(message));
            }
        }
        let mut document = serde_json::to_value(job_document(&self.job)).map_err(ClientError::unwritable)?;
        document["name"] = self.name.as_str().into();
        document["cron"] = self.expression.as_str().into();
        for (key, value) in [
            ("timezone", self.timezone.as_deref()),
            ("overlap_policy", self.overlap.map(Overlap::name)),
            ("description", self.description.as_deref()),
        ] {
            if let Some(value) = value {
                document[key] = value.into();
            }
        }
        if self.paused {
            document["enabled"] = json!(false);
        }
        Ok(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_written_as_a_server_takes_it() {
        let job = || NewJob::new("report.make", "daily").unwrap();
        let plain = Schedule::new("r", "@daily", job()).document().unwrap();
        assert_eq!(plain, json!({ "name": "r", "cron": "@daily", "type": "report.make", "args": ["daily"] }));
        let whole = Schedule::new("r", "* * * * *", job().queue("slow").meta("k", 1)).timezone("Asia/Tokyo").paused();
        let whole = whole.overlap(Overlap::CancelPrevious).description("d").document().unwrap();
        let expected = json!({
            "name": "r", "cron": "* * * * *", "type": "report.make", "args": ["daily"], "meta": { "k": 1 },
            "options": { "queue": "slow" }, "timezone": "Asia/Tokyo", "overlap_policy": "cancel_previous",
            "description": "d", "enabled": false,
        });
        assert_eq!(whole, expected);
        let keyed = Schedule::new("r", "@daily", job().idempotency_key("k")).document().unwrap_err();
        assert!(keyed.to_string().contains("has an idempotency key"), "{keyed}");
    }
}
