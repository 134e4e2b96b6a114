//! Events in the words of Open Job Spec.

mod place;

pub use place::{EventId, GapReason, NotAnEventId, StreamStart, gap};

use crate::Progress;
use crate::time::rfc3339;
use redrive_policy::{Moment, Problem, resembling};
use redrive_store::{
    Blob, EventBody, EventKind, JOB_EVENT_TYPES, Job, JobEvent, JobId, RESERVED_QUEUES, State, Transition,
};
use serde_json::{Value, json};

/// The type of the event that tells the progress of a job, in the stream of that job only.
pub const PROGRESS: &str = "job.progress";
/// The largest error or result in the state of a job in the form of an event, in bytes.
const LARGEST_PART: usize = 4_096;

/// The types of events that do not concern a single job.
pub const OTHER_EVENT_TYPES: [&str; 14] = [
    "queue.paused",
    "queue.resumed",
    "cron.triggered",
    "cron.skipped",
    "workflow.started",
    "workflow.step_completed",
    "workflow.completed",
    "workflow.failed",
    "workflow.cancelled",
    "worker.started",
    "worker.quiet",
    "worker.stopped",
    "backpressure.rejected",
    "rate_limit.dynamic_adjusted",
];

/// The types of events of webhooks. They are told, and not delivered.
pub const WEBHOOK_EVENT_TYPES: [&str; 6] = [
    "webhook.delivered",
    "webhook.failed",
    "webhook.dead",
    "webhook.disabled",
    "webhook.subscription.created",
    "webhook.subscription.deleted",
];

/// All types of events in lists.
pub fn event_types() -> impl Iterator<Item = &'static str> {
    JOB_EVENT_TYPES.into_iter().chain(OTHER_EVENT_TYPES).chain(WEBHOOK_EVENT_TYPES)
}

/// The types that are named, or selected by patterns. One that is misspelt would be waited for in vain: it is a
/// problem at this path.
pub fn named_types<'k>(said: &[&str], known: &[&'k str], path: &str, problems: &mut Vec<Problem>) -> Vec<&'k str> {
    let mut read = |said: &&str| {
        let found = selected_types(said, known);
        if found.is_empty() {
            let near = resembling(said, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let allowed = format!("{}, or patterns as job.*{near}", known.join(", "));
            problems.push(Problem::new(path, format!("\"{said}\""), allowed));
        }
        found
    };
    said.iter().flat_map(&mut read).collect()
}

/// The types that a name or a pattern selects: `job.*` all that begin so, `*` all. None where there is no such type.
#[must_use]
pub fn selected_types<'k>(said: &str, known: &[&'k str]) -> Vec<&'k str> {
    let fits = |known: &&&str| match said.strip_suffix('*') {
        Some("") => true,
        Some(begin) => begin.ends_with('.') && known.starts_with(begin),
        None => **known == said,
    };
    known.iter().filter(fits).copied().collect()
}

/// An event as an object: in the words of CloudEvents, and in those of the Python library beside them.
#[must_use]
pub fn event_envelope(id: &str, at: Moment, body: &EventBody) -> Value {
    let (time, subject, data) = match body {
        EventBody::Job(event) => (rfc3339(at), event.job.to_string(), job_event_data(event, at)),
        EventBody::Other(event) => {
            let data = serde_json::from_slice(&event.data).unwrap_or_else(|_| json!({}));
            (rfc3339(at), event.subject.to_string(), data)
        }
    };
    json!({
        "specversion": "1.0",
        "id": id,
        "type": body.event_type(),
        "event": body.event_type(),
        "time": time,
        "timestamp": time,
        "source": "/ojs/v1",
        "subject": subject,
        "data": data,
    })
}

/// The state of a job that has ended, in the form of the event that it ended with, and when that was.
#[must_use]
pub fn ended_event(job: &Job) -> (Moment, EventBody) {
    let kind = match job.state {
        State::Completed => EventKind::Completed,
        State::Cancelled => EventKind::Cancelled,
        _ => EventKind::Discarded,
    };
    let at = job.times.finished.unwrap_or(job.times.created);
    let event = JobEvent::main(&Transition::new(job.clone(), kind, None, at), LARGEST_PART);
    (at, EventBody::Job(Box::new(event)))
}

/// How far a job has come, as an event under the id of the one before it.
#[must_use]
pub fn progress_envelope(id: &str, job: JobId, progress: &Progress<'_>) -> Value {
    let (time, job) = (rfc3339(progress.at), job.to_string());
    let mut envelope = json!({
        "specversion": "1.0", "id": id, "type": PROGRESS, "event": PROGRESS, "time": time,
        "timestamp": time, "source": "/ojs/v1", "subject": job, "data": { "job_id": job },
    });
    for (part, value) in progress_parts(progress) {
        envelope["data"][format!("progress_{part}")] = value;
    }
    envelope
}

/// What is known of the progress of a job: `percent`, `message` and `data`, as far as they were reported.
pub fn progress_parts(progress: &Progress<'_>) -> impl Iterator<Item = (&'static str, Value)> {
    let percent = progress.fraction.map(|fraction| Value::from((fraction * 100.0).floor() as u64));
    let data = progress.data.and_then(|data| serde_json::from_slice(data).ok());
    let parts = [("percent", percent), ("message", progress.message.map(Value::from)), ("data", data)];
    parts.into_iter().filter_map(|(part, value)| Some((part, value?)))
}

/// What is told of the event of a job that happened at this time.
#[must_use]
pub fn job_event_data(event: &JobEvent, at: Moment) -> Value {
    let mut data = json!({
        "job_id": event.job.to_string(),
        "job_type": &*event.job_type,
        "queue": &*event.queue,
        "state": event.state.name(),
        "attempt": event.attempt,
    });
    for (key, value) in details(event, at) {
        data[key] = value;
    }
    data
}

/// What is told of some events only.
#[must_use]
pub fn details(event: &JobEvent, at: Moment) -> Vec<(&'static str, Value)> {
    let mut told = Vec::new();
    if let Some(from) = event.from {
        told.push(("from", from.name().into()));
    }
    if let Some(worker) = event.worker.as_deref().filter(|worker| !worker.is_empty()) {
        told.push(("worker_id", worker.into()));
    }
    let timed = matches!(event.kind, EventKind::Completed | EventKind::RetryScheduled | EventKind::Discarded);
    if let Some(run_time) = event.run_time.filter(|_| timed) {
        told.push(("duration_ms", (run_time.ms().round() as u64).into()));
    }
    let due = || event.due.map(rfc3339).map(Value::from);
    match event.event_type {
        "job.enqueued" => told.push(("priority", event.priority.into())),
        "job.scheduled" => told.extend(due().map(|due| ("scheduled_at", due))),
        "job.completed" => {
            let result = event.result.as_ref().and_then(|result| serde_json::from_slice(result).ok());
            told.extend(result.map(|result: Value| ("result", result)));
        }
        "job.failed" => told.push(("error", error(event.error.as_ref(), event.kind))),
        "webhook.delivered" | "webhook.failed" | "webhook.dead" => {
            let run = event.queue.strip_prefix(RESERVED_QUEUES).unwrap_or_default();
            told.push(("subscription_id", format!("sub_{run}").into()));
            told.push(("delivery_id", format!("del_{}", event.job).into()));
            if event.error.is_some() {
                told.push(("error", error(event.error.as_ref(), event.kind)));
            }
        }
        "job.retrying" => {
            told.extend(event.most_attempts.map(|most| ("max_attempts", most.into())));
            told.extend(due().map(|due| ("next_retry_at", due)));
            told.push(("error", error(event.error.as_ref(), event.kind)));
        }
        "job.discarded" => {
            told.push(("dead_letter", event.dead.into()));
            told.push(("total_attempts", event.attempt.into()));
            told.push(("last_error", error(event.error.as_ref(), event.kind)));
        }
        "job.expired" => {
            told.push(("created_at", rfc3339(event.created).into()));
            told.push(("expired_at", rfc3339(at).into()));
            let ttl = event.expires.map(|expires| expires.since(event.created).ms().round() as u64);
            told.extend(ttl.map(|ttl| ("ttl_ms", ttl.into())));
        }
        _ => {}
    }
    told
}

/// An error with the three members that are always there.
fn error(stored: Option<&Blob>, kind: EventKind) -> Value {
    let stored: Value = stored.and_then(|stored| serde_json::from_slice(stored).ok()).unwrap_or_default();
    let text = |key: &str| stored[key].as_str().filter(|text| !text.is_empty());
    let mut error = json!({
        "code": text("code").or_else(|| text("type")).unwrap_or("handler_error"),
        "message": text("message").unwrap_or_default(),
        "retryable": stored["retryable"].as_bool().unwrap_or(kind == EventKind::RetryScheduled),
    });
    for key in ["type", "details", "backtrace"] {
        if let Some(value) = stored.get(key) {
            error[key] = value.clone();
        }
    }
    error
}
