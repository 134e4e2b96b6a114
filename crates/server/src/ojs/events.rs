//! What happened lately.

use crate::access::Caller;
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Query;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Event;
use redrive_ojs::events::{EventId, details, ended_event, event_envelope, event_types, named_types};
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Problem};
use redrive_store::{EventBody, Job};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// How many events one answer holds where the caller does not say.
const DEFAULT: usize = 100;

pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT, app.limits.page, &mut problems).max(1);
    let number = |cursor: &str| cursor.parse::<EventId>().ok().map(|id| id.number_in(app.boot));
    let after = query.get("after").map_or(Some(0), number);
    if after.is_none() {
        let found = format!("\"{}\"", query.get("after").unwrap_or_default());
        problems.push(Problem::new("?after", found, "the id of an event, or the cursor of an earlier answer"));
    }
    let known: Vec<&'static str> = event_types().collect();
    let types = read_types(&query, "types", &known, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let queues = query.list("queues");
    caller.check_queues(queues.iter().flatten().copied())?;
    let fits = |event: &Event| {
        may_see(&caller, event)
            && types.as_ref().is_none_or(|types| types.contains(&event.body.event_type()))
            && queues.as_ref().is_none_or(|queues| event.body.queue().is_some_and(|queue| queues.contains(&queue)))
    };
    let (events, has_more) = app.engine.events(after.unwrap_or(0), limit, fits);
    let cursor = events.last().map(|event| id_of(event.number, app.boot));
    let cursor = cursor.or_else(|| query.get("after").map(str::to_owned)).unwrap_or_default();
    let events: Vec<Value> = events.iter().map(|event| EventView::of(event, app.boot).envelope()).collect();
    Ok(JsonResponse::json(&json!({ "events": events, "cursor": cursor, "has_more": has_more })))
}

/// Whether a caller may learn of an event: one that is limited to queues learns of theirs.
pub(super) fn may_see(caller: &Caller, event: &Event) -> bool {
    caller.limits().is_none() || event.body.queue().is_some_and(|queue| caller.may_use(queue))
}

/// The id of the event with this number in this process.
pub(super) fn id_of(number: u64, boot: u32) -> String {
    EventId { process: boot, number }.to_string()
}

/// The types that a parameter names.
pub(super) fn read_types<'k>(
    query: &Query,
    key: &str,
    known: &[&'k str],
    problems: &mut Vec<Problem>,
) -> Option<Vec<&'k str>> {
    query.list(key).map(|said| named_types(&said, known, &format!("?{key}"), problems))
}

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
        let (at, body) = ended_event(job);
        Self { id, at, body: Cow::Owned(body), is_current: true }
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
