//! What happened lately.

use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Event;
use redrive_ojs::time::rfc3339;
use redrive_policy::Problem;
use redrive_store::EventKind;
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
    let events: Vec<Value> = events.iter().map(|event| written(event, app.boot)).collect();
    Ok(JsonResponse::json(&json!({ "events": events, "cursor": cursor, "has_more": has_more })))
}

/// Numbers start anew with each process; the process is part of the id.
fn id_of(number: u64, boot: u32) -> String {
    format!("evt-{boot:08x}-{number}")
}

/// The number of an event. One of an earlier process comes before all of this one.
fn number_of(id: &str, boot: u32) -> Option<u64> {
    let (process, number) = id.strip_prefix("evt-")?.split_once('-')?;
    let process = u32::from_str_radix(process, 16).ok()?;
    let number = number.parse().ok()?;
    Some(if process == boot { number } else { 0 })
}

const fn type_of(kind: EventKind) -> &'static str {
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

/// An event in the words of CloudEvents, and in those of the Python library beside them.
fn written(event: &Event, boot: u32) -> Value {
    let (kind, time) = (type_of(event.kind), rfc3339(event.at));
    let mut data = json!({
        "job_id": event.job.to_string(),
        "job_type": &*event.job_type,
        "queue": &*event.queue,
        "state": event.state.name(),
        "attempt": event.attempt,
    });
    let timed = matches!(event.kind, EventKind::Completed | EventKind::RetryScheduled | EventKind::Discarded);
    if let Some(run_time) = event.run_time.filter(|_| timed) {
        data["duration_ms"] = json!(run_time.ms().round() as u64);
    }
    if event.kind == EventKind::Discarded {
        data["dead_letter"] = event.dead.into();
    }
    json!({
        "specversion": "1.0",
        "id": id_of(event.number, boot),
        "type": kind,
        "event": kind,
        "time": time,
        "timestamp": time,
        "source": "/ojs/v1",
        "subject": event.job.to_string(),
        "data": data,
    })
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
