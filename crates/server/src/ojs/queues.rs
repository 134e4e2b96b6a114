//! Queues: listing, counting, closing and opening.

use super::lists::{Pages, named_page};
use super::names::queue_in_path;
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{NamesVersion, Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_engine::EngineError;
use redrive_ojs::json::{member, push_str};
use redrive_ojs::push_moment;
use redrive_ojs::time::rfc3339;
use redrive_policy::resembling;
use redrive_store::{Missing, Queue, RESERVED_QUEUES, State as JobState};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tracing::info;

pub(crate) async fn list(State(app): State<Arc<App>>, caller: Caller, query: Query) -> Result<JsonResponse, ApiError> {
    let queues = queues_for(&app, &caller).await?;
    let (page, shown) = named_page(&query, Pages::Plain, &app.limits, &queues, |queue| &queue.name)?;
    let mut out = b"{\"queues\":[".to_vec();
    for (index, queue) in page.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
        member(&mut out, "name");
        push_str(&mut out, &queue.name);
        member(&mut out, "status");
        push_str(&mut out, status(queue.paused));
        member(&mut out, "paused");
        out.extend_from_slice(if queue.paused { b"true" } else { b"false" });
        push_moment(&mut out, "created_at", queue.created);
        out.push(b'}');
    }
    out.push(b']');
    shown.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// The numbers of a queue, in the shapes of all clients at once. Only `queue` differs: a name for
/// client libraries, an object for the conformance cases.
pub(crate) async fn stats(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    let found = app.engine.queues().await?.into_iter().find(|queue| *queue.name == *name);
    let paused = found.as_ref().is_some_and(|queue| queue.paused);
    let counts = counts(found.as_ref());
    let depth = [JobState::Available, JobState::Scheduled, JobState::Retryable, JobState::Pending];
    let depth: usize = depth.iter().map(|state| found.as_ref().map_or(0, |queue| queue.count(*state))).sum();
    let mut stats = counts.clone();
    stats.insert("queue".to_owned(), name.clone().into());
    stats.insert("depth".to_owned(), depth.into());
    let mut whole = counts.clone();
    let mut queue = counts;
    queue.insert("name".to_owned(), name.clone().into());
    queue.insert("paused".to_owned(), paused.into());
    whole.insert("queue".to_owned(), if names_version { name.into() } else { Value::Object(queue) });
    whole.insert("status".to_owned(), status(paused).into());
    whole.insert("paused".to_owned(), paused.into());
    whole.insert("stats".to_owned(), Value::Object(stats));
    whole.insert("computed_at".to_owned(), rfc3339(app.engine.now()).into());
    Ok(JsonResponse::json(&Value::Object(whole)))
}

/// How many jobs are in each state; a queue that was never used has none.
pub(super) fn counts(queue: Option<&Queue>) -> Map<String, Value> {
    let count = |state| queue.map_or(0, |queue| queue.count(state));
    JobState::ALL.into_iter().map(|state| (state.name().to_owned(), count(state).into())).collect()
}

pub(super) const fn status(paused: bool) -> &'static str {
    if paused { "paused" } else { "active" }
}

/// Closes a queue. One that has had no job yet is made, because that is what the conformance cases do
/// (L4-PAUSE-002); with `"create": false` it is refused.
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let queue = pause_named(&app, &name, &payload).await?;
    Ok(answer(&app, &queue))
}

/// Closes the queue, as the body says.
pub(super) async fn pause_named(app: &App, name: &str, payload: &Payload) -> Result<Queue, ApiError> {
    let create = flag(payload, &["create"])?;
    let missing = if create.unwrap_or(true) { Missing::Create } else { Missing::Refuse };
    set_paused(app, name, true, missing).await
}

/// Opens a queue, which must be known.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let queue = resume_named(&app, &name, &payload).await?;
    Ok(answer(&app, &queue))
}

/// Opens the queue.
pub(super) async fn resume_named(app: &App, name: &str, payload: &Payload) -> Result<Queue, ApiError> {
    flag(payload, &[])?;
    set_paused(app, name, false, Missing::Refuse).await
}

/// What the body says under the one key that is known, if any is. No body is an empty object.
fn flag(payload: &Payload, known: &[&str]) -> Result<Option<bool>, ApiError> {
    let mut problems = Vec::new();
    let members = payload.members_or_none()?;
    members.only(known, &mut problems);
    let flag = known.first().and_then(|key| members.flag(key, &mut problems));
    if problems.is_empty() { Ok(flag) } else { Err(ApiError::invalid(problems)) }
}

async fn set_paused(app: &App, name: &str, paused: bool, missing: Missing) -> Result<Queue, ApiError> {
    queue_in_path(name, &app.limits)?;
    let queue = match app.engine.pause(Arc::from(name), paused, missing).await {
        Err(EngineError::NoSuchQueue(name)) => return Err(no_such_queue(app, &name).await?),
        answer => answer?,
    };
    info!(queue = name, "queue {name} was {}", if paused { "closed" } else { "opened" });
    Ok(queue)
}

fn answer(app: &App, queue: &Queue) -> JsonResponse {
    JsonResponse::json(&json!({
        "queue": { "name": &*queue.name, "paused": queue.paused },
        "status": status(queue.paused),
        changed_at(queue.paused): rfc3339(app.engine.now()),
    }))
}

/// What the time is called at which a queue was closed or opened.
pub(super) const fn changed_at(paused: bool) -> &'static str {
    if paused { "paused_at" } else { "resumed_at" }
}

/// Forgets a queue that has no jobs.
pub(crate) async fn remove(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    match app.engine.remove_queue(Arc::from(&*name)).await {
        Err(EngineError::NoSuchQueue(name)) => return Err(no_such_queue(&app, &name).await?),
        answer => answer?,
    };
    info!(queue = name, "queue {name} was removed");
    let now = rfc3339(app.engine.now());
    Ok(JsonResponse::json(&json!({ "queue": { "name": name }, "status": "removed", "removed_at": now })))
}

/// How many queues a refusal names at most.
const NAMED: usize = 20;

/// The queues of applications. Those of the server itself, which have the deliveries of webhooks, are not theirs to
/// fetch from, to pause or to remove; subscriptions and deliveries tell what they hold.
pub(super) async fn own_queues(app: &App) -> Result<Vec<Queue>, ApiError> {
    let mut queues = app.engine.queues().await?;
    queues.retain(|queue| !queue.name.starts_with(RESERVED_QUEUES));
    Ok(queues)
}

/// Those of them that a caller may use.
pub(super) async fn queues_for(app: &App, caller: &Caller) -> Result<Vec<Queue>, ApiError> {
    let mut queues = own_queues(app).await?;
    queues.retain(|queue| caller.may_use(&queue.name));
    Ok(queues)
}

/// That there is no such queue, which there are, and which of them may be meant.
pub(super) async fn no_such_queue(app: &App, name: &str) -> Result<ApiError, ApiError> {
    let queues = own_queues(app).await?;
    let known: Vec<&str> = queues.iter().map(|queue| &*queue.name).collect();
    let near = resembling(name, &known).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    let more = known.len().saturating_sub(NAMED);
    let shown = known.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let are = match (known.len(), more) {
        (0, _) => "there are no queues yet".to_owned(),
        (_, 0) => format!("known queues: {shown}"),
        (_, more) => format!("known queues: {shown} and {more} more"),
    };
    let why = format!("there is no queue \"{name}\"; a queue comes into being with its first job; {are}{near}");
    Ok(ApiError::new(Code::NotFound, why))
}
