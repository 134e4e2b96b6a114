//! What a schedule is made of.

use super::Schedule;
use crate::json::{Members, member, push_key, push_str};
use crate::time::rfc3339;
use redrive_policy::Moment;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A schedule as it is registered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// The cron expression, as it was written.
    pub expression: String,
    /// The name of the time zone.
    pub timezone: String,
    /// What happens when a job of it is still there.
    pub overlap: Overlap,
    /// Whether it is due at all.
    pub enabled: bool,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The job, as a request to enqueue it.
    pub template: Box<RawValue>,
}

/// What a schedule does when it is due and a job of it has not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// Enqueues none.
    #[default]
    Skip,
    /// Enqueues one more.
    Allow,
    /// Cancels what is there, and enqueues one.
    CancelPrevious,
    /// Enqueues one when what is there has ended.
    Enqueue,
}

impl Overlap {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Skip, Self::Allow, Self::CancelPrevious, Self::Enqueue];

    /// Its name in requests.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Allow => "allow",
            Self::CancelPrevious => "cancel_previous",
            Self::Enqueue => "enqueue",
        }
    }
}

/// What is added to the metadata of each job.
const NAME: &str = "cron_name";
const TRIGGERED: &str = "cron_triggered_at";
const SCHEDULED: &str = "cron_scheduled_at";

impl Definition {
    /// Its schedule.
    ///
    /// # Errors
    /// It is not known any more: its time zone has left the database.
    pub(super) fn schedule(&self) -> Result<Schedule, String> {
        Schedule::read(&self.expression, &self.timezone).map_err(|(expression, zone)| {
            let problems = expression.into_iter().chain(zone).map(|problem| problem.message);
            format!("the schedule cannot be read any more: {}", problems.collect::<Vec<_>>().join("; "))
        })
    }

    /// The job of a slot that is enqueued at `now`.
    ///
    /// # Errors
    /// The template cannot be read.
    pub(super) fn document(&self, slot: Moment, now: Moment) -> Result<Vec<u8>, String> {
        let template =
            Members::parse(self.template.get()).map_err(|error| format!("the job of the schedule: {error}"))?;
        let mut problems = Vec::new();
        let meta = template.object("meta", "/meta", &mut problems).unwrap_or_default();
        let mut out = Vec::with_capacity(self.template.get().len() + 200);
        out.push(b'{');
        for (key, value) in template.iter().filter(|(key, _)| &***key != "meta") {
            push_key(&mut out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        member(&mut out, "meta");
        out.push(b'{');
        for (key, value) in meta.iter().filter(|(key, _)| ![NAME, TRIGGERED, SCHEDULED].contains(&&***key)) {
            push_key(&mut out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        for (key, text) in [(NAME, self.name.clone()), (TRIGGERED, rfc3339(now)), (SCHEDULED, rfc3339(slot))] {
            member(&mut out, key);
            push_str(&mut out, &text);
        }
        out.extend_from_slice(b"}}");
        Ok(out)
    }
}
