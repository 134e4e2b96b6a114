//! The dead-letter queue and the purge of queues, in the words of the admin page.

use super::bulk::{Action, BulkRequest, applied};
use super::select::Selection;
use super::{delete_many, delete_one, list_by};
use crate::api_error::ApiError;
use crate::app::App;
use crate::ojs::lists::Pages;
use crate::ojs::names::queue_in_path;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_ojs::json::{Members, text};
use redrive_ojs::time::parse_rfc3339;
use redrive_policy::{Moment, Problem};
use redrive_store::State as JobState;
use std::sync::Arc;

/// A filter, and which page.
pub(crate) const NUMBERED_PARAMETERS: &[&str] =
    &["queue", "type", "error_type", "since", "until", "page", "per_page", "cursor"];

/// `GET /admin/dead-letter`: the list of dead letters, by numbered pages.
pub(crate) async fn list_numbered(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    list_by(&app, &query, Pages::Numbered, "items").await
}

/// `DELETE /admin/dead-letter/{id}`.
pub(crate) async fn delete_silently(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<JsonResponse, ApiError> {
    delete_one(&app, &id).await?;
    Ok(JsonResponse::ok(Vec::new()).status(StatusCode::NO_CONTENT))
}

/// `DELETE /admin/dead-letter`: as `DELETE /dead-letter`; with `older_than` in place of a filter, those that were
/// discarded before that time.
pub(crate) async fn delete_older(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let members = payload.members_or_none()?;
    if !members.has("older_than") {
        return delete_many(State(app), Query::default(), payload).await;
    }
    let mut problems = Vec::new();
    members.only(&["older_than", "confirm", "dry_run"], &mut problems);
    let before = older_than(&members, &mut problems);
    let request = BulkRequest {
        dry_run: members.flag("dry_run", &mut problems).unwrap_or(false),
        confirm: members.flag("confirm", &mut problems).unwrap_or(false),
        selection: Selection::of_dead(before),
    };
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    Ok(JsonResponse::json(&applied(app, request, Action::Delete).await?))
}

/// `DELETE /admin/queues/{name}/jobs`: deletes jobs of a queue that have ended.
pub(crate) async fn purge(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    let members = payload.members_or_none()?;
    let mut problems = Vec::new();
    members.only(&["states", "older_than", "confirm", "dry_run"], &mut problems);
    let states = states(&members, &mut problems);
    let before = older_than(&members, &mut problems);
    let request = BulkRequest {
        dry_run: members.flag("dry_run", &mut problems).unwrap_or(false),
        confirm: members.flag("confirm", &mut problems).unwrap_or(false),
        selection: Selection::of_queue(&name, states.clone(), before),
    };
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let mut answer = applied(app, request, Action::Delete).await?;
    if let Some(deleted) = answer.get("succeeded").cloned() {
        answer["purged_count"] = deleted;
    }
    answer["states"] = states.iter().map(|state| state.name()).collect();
    Ok(JsonResponse::json(&answer))
}

/// The states that are named; only jobs that have ended can be deleted.
fn states(members: &Members<'_>, problems: &mut Vec<Problem>) -> Vec<JobState> {
    const ALLOWED: &str = "an array with at least one of completed, cancelled, discarded";
    let said = members.texts("states", problems).unwrap_or_default();
    let known = |name: &str| JobState::ALL.into_iter().find(|state| state.is_terminal() && state.name() == name);
    let mut states: Vec<JobState> = said.iter().filter_map(|name| known(name)).collect();
    if problems.is_empty() && (states.is_empty() || states.len() < said.len()) {
        members.wrong("states", ALLOWED, problems);
    }
    states.sort_unstable();
    states.dedup();
    states
}

fn older_than(members: &Members<'_>, problems: &mut Vec<Problem>) -> Option<Moment> {
    members.read("older_than", "a timestamp such as \"2026-02-13T10:00:00Z\"", problems, |value| {
        parse_rfc3339(&text(value)?)
    })
}
