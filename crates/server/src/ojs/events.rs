//! What happened lately.

use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Event;
use redrive_ojs::events::{OTHER_EVENT_TYPES, WEBHOOK_EVENT_TYPES, details, event_envelope, selected_types};
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Problem, resembling};
use redrive_store::{EventBody, EventKind, JOB_EVENT_TYPES, Job, JobEvent, State as JobState, Transition};
use serde_json::{Value, json};
use std::borrow::Cow;
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
    let known: Vec<&'static str> = types().collect();
    let types = read_types(&query, "types", &known, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let queues = query.list("queues");
    let fits = |event: &Event| {
        types.as_ref().is_none_or(|types| types.contains(&event.body.event_type()))
            && queues.as_ref().is_none_or(|queues| event.body.queue().is_some_and(|queue| queues.contains(&queue)))
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

/// All types of events, for filters.
pub(super) fn types() -> impl Iterator<Item = &'static str> {
    JOB_EVENT_TYPES.into_iter().chain(OTHER_EVENT_TYPES).chain(WEBHOOK_EVENT_TYPES)
}

/// The types that a parameter names. One that is misspelt would be waited for in vain.
pub(super) fn read_types<'k>(
    query: &Query,
    key: &str,
    known: &[&'k str],
    problems: &mut Vec<Problem>,
) -> Option<Vec<&'k str>> {
    let mut read = |said: &&str| {
        let found = selected_types(said, known);
        if found.is_empty() {
            let near = resembling(said, known).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            let allowed = format!("{}, or patterns as job.*{near}", known.join(", "));
            problems.push(Problem::new(format!("?{key}"), format!("\"{said}\""), allowed));
        }
        found
    };
    query.list(key).map(|types| types.iter().flat_map(&mut read).collect())
}

/// The largest error or result in the state of a job in the form of an event, in bytes.
const LARGEST_PART: usize = 4_096;
/// The type of the event that a job was removed.
const REMOVED: &str = "dead_letter.deleted";

/// What real-time streams call every event that changes the state of a job.
pub(super) const STATE_CHANGED: &str = "job.state_changed";

/// An event as it is written, or the state of a job in the form of an event.
pub(super) struct EventView<'e> {
    pub(super) id: String,
    at: Moment,
    body: Cow<'e, EventBody>,
    /// Whether it tells the state of the job, not what happened to it.
    is_current: bool,
}

impl<'e> EventView<'e> {
    pub(super) fn of(event: &'e Event, boot: u32) -> Self {
        Self { id: id_of(event.number, boot), at: event.at, body: Cow::Borrowed(&event.body), is_current: false }
    }

    /// A job that has ended, under the id of the event before which that is known.
    pub(super) fn of_ended(job: &Job, id: String) -> Self {
        let kind = match job.state {
            JobState::Completed => EventKind::Completed,
            JobState::Cancelled => EventKind::Cancelled,
            _ => EventKind::Discarded,
        };
        let at = job.times.finished.unwrap_or(job.times.created);
        let event = JobEvent::main(&Transition::new(job.clone(), kind, None, at), LARGEST_PART);
        Self { id, at, body: Cow::Owned(EventBody::Job(Box::new(event))), is_current: true }
    }

    pub(super) fn type_name(&self) -> &str {
        self.body.event_type()
    }

    pub(super) fn envelope(&self) -> Value {
        let mut envelope = event_envelope(&self.id, self.at, &self.body);
        if self.is_current {
            envelope["data"]["current"] = true.into();
        }
        envelope
    }

    /// The name and the data of the event for the streams of jobs and queues, in the words of the real-time page, with
    /// the type of the event beside them. `None` where the event changes nothing that another one does not tell.
    pub(super) fn change(&self) -> Option<(&str, Value)> {
        let EventBody::Job(event) = &*self.body else { return Some((self.type_name(), self.envelope())) };
        if !event.is_main {
            return None;
        }
        let mut change = json!({
            "job_id": event.job.to_string(),
            "queue": &*event.queue,
            "type": &*event.job_type,
            "to": event.state.name(),
            "timestamp": rfc3339(self.at),
            "event": event.event_type,
            "attempt": event.attempt,
        });
        for (key, value) in details(event, self.at) {
            change[key] = value;
        }
        if self.is_current {
            change["current"] = true.into();
        }
        Some((if event.event_type == REMOVED { REMOVED } else { STATE_CHANGED }, change))
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
