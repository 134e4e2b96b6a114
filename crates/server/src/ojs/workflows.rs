//! Workflows: start, look at, list, cancel.

use super::lists::{Pages, Place, Total};
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_ojs::json::{member, push_str};
use redrive_ojs::runs::workflows::{self, Workflow};
use redrive_ojs::workflows::WorkflowLimits;
use redrive_policy::Problem;
use redrive_store::RunId;
use std::sync::Arc;

/// What a list is asked for with.
pub(super) const LIST_PARAMETERS: &[&str] = &["limit", "after", "state"];
/// The same for numbered pages.
pub(super) const NUMBERED_PARAMETERS: &[&str] = &["page", "per_page", "cursor", "state"];
/// How many workflows a page holds where the caller does not say.
const DEFAULT_PAGE: usize = 50;

pub(crate) async fn create(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let limits = WorkflowLimits::new(app.limits.workflow, app.limits.of_jobs());
    let workflow = workflows::start(&app.engine, &payload.members()?, limits).await?;
    let location = format!("/ojs/v1/workflows/{}", workflow.id());
    Ok(answer(&workflow).status(StatusCode::CREATED).location(&location))
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    Ok(answer(&workflows::show(&app.engine, &id).await?))
}

pub(crate) async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    Ok(answer(&workflows::cancel(&app.engine, &id).await?))
}

/// The newest first; `after` is the id of the last workflow of the page before.
pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT_PAGE, app.limits.page, &mut problems).max(1);
    let (ended, after) = (ended(&query, &mut problems), id(&query, "after", &mut problems));
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let mut out = b"{\"workflows\":[".to_vec();
    let next = push_page(&app, &mut out, ended, after, limit).await?.next;
    out.push(b']');
    if let Some(next) = next {
        member(&mut out, "next_after");
        push_str(&mut out, &next);
    }
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// `GET /admin/workflows`: the same by numbered pages.
pub(crate) async fn list_numbered(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let place = Place::read(&query, Pages::Numbered, &app.limits, &mut problems);
    let (ended, mut after) = (ended(&query, &mut problems), id(&query, "cursor", &mut problems));
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let passed = if after.is_some() { 0 } else { place.offset };
    let mut out = b"{\"items\":[".to_vec();
    let list = async {
        let mut left = passed;
        while left > 0 {
            let some = workflows::list(&app.engine, ended, after, left.min(DEFAULT_PAGE)).await?;
            let Some(last) = some.last() else { break };
            (after, left) = (Some(last.id()), left - some.len());
        }
        push_page(&app, &mut out, ended, after, place.limit).await
    };
    let Written { count, next } = app.engine.throttled(list).await?;
    out.push(b']');
    let total = match next {
        None if query.get("cursor").is_none() && (count > 0 || passed == 0) => Total::Exactly(passed + count),
        _ => Total::AtLeast(count),
    };
    place.shown(passed, total, next).push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// What was written of a page.
struct Written {
    count: usize,
    /// The last id, where there may be more.
    next: Option<String>,
}

/// Writes workflows, as far as the answer has room; the first is always there.
async fn push_page(
    app: &App,
    out: &mut Vec<u8>,
    ended: Option<bool>,
    after: Option<RunId>,
    limit: usize,
) -> Result<Written, ApiError> {
    let found = workflows::list(&app.engine, ended, after, limit).await?;
    let mut count = 0;
    for workflow in &found {
        let end = out.len();
        if count > 0 {
            out.push(b',');
        }
        workflow.push(out);
        if out.len() > app.limits.answer_bytes && count > 0 {
            out.truncate(end);
            break;
        }
        count += 1;
    }
    let goes_on = count < found.len() || found.len() == limit;
    let next = found[..count].last().filter(|_| goes_on).map(|last| last.id().to_string());
    Ok(Written { count, next })
}

fn id(query: &Query, key: &str, problems: &mut Vec<Problem>) -> Option<RunId> {
    let text = query.get(key)?;
    let id = text.parse().ok();
    if id.is_none() {
        problems.push(Problem::new(format!("?{key}"), format!("\"{text}\""), "the id of a workflow"));
    }
    id
}

fn ended(query: &Query, problems: &mut Vec<Problem>) -> Option<bool> {
    match query.get("state")? {
        "running" => Some(false),
        "ended" => Some(true),
        other => {
            problems.push(Problem::new("?state", format!("\"{other}\""), "running or ended"));
            None
        }
    }
}

/// A workflow both ways: its members at the top, and under `workflow`. Client libraries read one or the other.
fn answer(workflow: &Workflow) -> JsonResponse {
    let mut members = Vec::with_capacity(1_024);
    workflow.push_members(&mut members);
    JsonResponse::ok([b"{", &members[..], b",\"workflow\":{", &members[..], b"}}"].concat())
}
