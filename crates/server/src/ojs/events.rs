//! What happened lately.

use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Event;
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Problem, Span};
use redrive_store::{EventKind, Job, JobId, State as JobState};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many events one answer holds where the caller does not say.
const DEFAULT: usize = 100;

pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT, app.limits.page, &mut problems).max(1);
    let after = query.get("after").map_or(Some(0), |cursor| number_of(cursor, app.boot));
    if after.is_none() {
        let found = format!("\"{}\"", query.get("after").unwrap_or_default());
        problems.push(Problem::new("?after", found, "the id of an event, or the cursor of an earlier answer"));
    }
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let (types, queues) = (query.list("types"), query.list("queues"));
    let fits = |event: &Event| {
        types.as_ref().is_none_or(|types| types.contains(&type_of(event.kind)))
            && queues.as_ref().is_none_or(|queues| queues.contains(&&*event.queue))
    };
    let (events, has_more) = app.engine.events(after.unwrap_or(0), limit, fits);
    let cursor = events.last().map(|event| id_of(event.number, app.boot));
    let cursor = cursor.or_else(|| query.get("after").map(str::to_owned)).unwrap_or_default();
    let events: Vec<Value> = events.iter().map(|event| EventView::of(event, app.boot).envelope()).collect();
    Ok(JsonResponse::json(&json!({ "events": events, "cursor": cursor, "has_more": has_more })))
}

/// Numbers start anew with each process; the process is part of the id.
pub(super) fn id_of(number: u64, boot: u32) -> String {
    format!("evt-{boot:08x}-{number}")
}

/// The number of an event. One of an earlier process comes before all of this one.
fn number_of(id: &str, boot: u32) -> Option<u64> {
    let (process, number) = parts_of(id)?;
    Some(if process == boot { number } else { 0 })
}

/// The process of an event, and its number there.
pub(super) fn parts_of(id: &str) -> Option<(u32, u64)> {
    let (process, number) = id.strip_prefix("evt-")?.split_once('-')?;
    Some((u32::from_str_radix(process, 16).ok()?, number.parse().ok()?))
}

pub(super) const fn type_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Enqueued => "job.enqueued",
        EventKind::Due | EventKind::Activated => "job.available",
        EventKind::Claimed => "job.started",
        EventKind::Completed => "job.completed",
        EventKind::RetryScheduled => "job.failed",
        EventKind::Discarded => "job.discarded",
        EventKind::Expired => "job.expired",
        EventKind::Released | EventKind::Snoozed => "job.released",
        EventKind::Cancelled => "job.cancelled",
        EventKind::Redriven => "dead_letter.retried",
        EventKind::Removed => "dead_letter.deleted",
    }
}

/// All types of events, for filters.
pub(super) const TYPES: [&str; 11] = [
    "job.enqueued",
    "job.available",
    "job.started",
    "job.completed",
    "job.failed",
    "job.discarded",
    "job.expired",
    "job.released",
    "job.cancelled",
    "dead_letter.retried",
    "dead_letter.deleted",
];

/// What real-time streams call every event that changes the state of a job.
pub(super) const STATE_CHANGED: &str = "job.state_changed";

/// An event as it is written, or the state of a job in the form of an event.
pub(super) struct EventView<'e> {
    pub(super) id: String,
    pub(super) type_name: &'static str,
    at: Moment,
    job: JobId,
    job_type: &'e str,
    queue: &'e str,
    from: Option<JobState>,
    to: JobState,
    attempt: u32,
    worker: Option<&'e str>,
    run_time: Option<Span>,
    dead: Option<bool>,
    /// Whether it tells the state of the job, not what happened to it.
    is_current: bool,
}

impl<'e> EventView<'e> {
    pub(super) fn of(event: &'e Event, boot: u32) -> Self {
        let timed = matches!(event.kind, EventKind::Completed | EventKind::RetryScheduled | EventKind::Discarded);
        Self {
            id: id_of(event.number, boot),
            type_name: type_of(event.kind),
            at: event.at,
            job: event.job,
            job_type: &event.job_type,
            queue: &event.queue,
            from: event.from,
            to: event.state,
            attempt: event.attempt,
            worker: event.worker.as_deref().filter(|worker| !worker.is_empty()),
            run_time: event.run_time.filter(|_| timed),
            dead: (event.kind == EventKind::Discarded).then_some(event.dead),
            is_current: false,
        }
    }

    /// A job that has ended, under the id of the event before which that is known.
    pub(super) fn of_ended(job: &'e Job, id: String) -> Self {
        let (type_name, dead) = match job.state {
            JobState::Completed => ("job.completed", None),
            JobState::Cancelled => ("job.cancelled", None),
            _ => ("job.discarded", Some(job.dead)),
        };
        Self {
            id,
            type_name,
            at: job.times.finished.unwrap_or(job.times.created),
            job: job.id,
            job_type: &job.spec.kind,
            queue: &job.spec.queue,
            from: None,
            to: job.state,
            attempt: job.attempt,
            worker: None,
            run_time: None,
            dead,
            is_current: true,
        }
    }

    /// In the words of CloudEvents, and in those of the Python library beside them.
    pub(super) fn envelope(&self) -> Value {
        let time = rfc3339(self.at);
        let mut data = json!({
            "job_id": self.job.to_string(),
            "job_type": self.job_type,
            "queue": self.queue,
            "state": self.to.name(),
            "attempt": self.attempt,
        });
        self.add_details(&mut data);
        json!({
            "specversion": "1.0",
            "id": self.id,
            "type": self.type_name,
            "event": self.type_name,
            "time": time,
            "timestamp": time,
            "source": "/ojs/v1",
            "subject": self.job.to_string(),
            "data": data,
        })
    }

    /// The name of the event for the streams of jobs and queues.
    pub(super) fn change_name(&self) -> &'static str {
        if self.type_name == type_of(EventKind::Removed) { self.type_name } else { STATE_CHANGED }
    }

    /// In the words of the real-time page, with the type of the event beside them.
    pub(super) fn change(&self) -> Value {
        let mut change = json!({
            "job_id": self.job.to_string(),
            "queue": self.queue,
            "type": self.job_type,
            "to": self.to.name(),
            "timestamp": rfc3339(self.at),
            "event": self.type_name,
            "attempt": self.attempt,
        });
        self.add_details(&mut change);
        change
    }

    fn add_details(&self, data: &mut Value) {
        if let Some(from) = self.from {
            data["from"] = from.name().into();
        }
        if let Some(worker) = self.worker {
            data["worker_id"] = worker.into();
        }
        if let Some(run_time) = self.run_time {
            data["duration_ms"] = json!(run_time.ms().round() as u64);
        }
        if let Some(dead) = self.dead {
            data["dead_letter"] = dead.into();
        }
        if self.is_current {
            data["current"] = true.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_of_an_earlier_process_starts_over() {
        assert_eq!(number_of(&id_of(42, 7), 7), Some(42));
        assert_eq!(number_of(&id_of(42, 8), 7), Some(0));
        assert_eq!(number_of("42", 7), None);
    }
}
