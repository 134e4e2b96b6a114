//! What schedules tell of themselves.

use super::Definition;
use crate::json::{Members, text};
use crate::time::rfc3339;
use redrive_policy::Moment;
use redrive_store::{JobId, OtherEvent};
use serde_json::{Value, json};

/// A slot came, and its job was enqueued.
pub(super) fn triggered(definition: &Definition, slot: Moment, job: JobId) -> OtherEvent {
    told("cron.triggered", definition, slot, &[("job_id", job.to_string())])
}

/// A slot came, and no job was enqueued for it. `job` is the one that was still there.
pub(super) fn skipped(definition: &Definition, slot: Moment, reason: &str, job: Option<JobId>) -> OtherEvent {
    let mut more = vec![("reason", reason.to_owned())];
    more.extend(job.map(|job| ("existing_job_id", job.to_string())));
    told("cron.skipped", definition, slot, &more)
}

/// The job of a slot was refused.
pub(super) fn refused(definition: &Definition, slot: Moment, why: &str) -> OtherEvent {
    let more = [("reason", "job_refused".to_owned()), ("message", why.to_owned())];
    told("cron.skipped", definition, slot, &more)
}

fn told(event_type: &str, definition: &Definition, slot: Moment, more: &[(&str, String)]) -> OtherEvent {
    // What cannot be read was never written.
    let template = Members::parse(definition.template.get()).unwrap_or_default();
    let job_type = template.get("type").and_then(text).unwrap_or_default().into_owned();
    let mut data = json!({
        "cron_name": definition.name,
        "cron_expr": definition.expression,
        "job_type": job_type,
        "scheduled_at": rfc3339(slot),
    });
    for (key, value) in more {
        data[*key] = Value::from(value.as_str());
    }
    OtherEvent {
        event_type: event_type.into(),
        subject: definition.name.as_str().into(),
        queue: None,
        job_type: Some(job_type.into()),
        data: data.to_string().into_bytes().into(),
    }
}
