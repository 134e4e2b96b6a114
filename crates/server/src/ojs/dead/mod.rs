//! The dead-letter queue: listing, redriving, deleting; one by one and in bulk.

mod admin;
mod bulk;
mod revise;
mod select;
mod stats;

pub(crate) use admin::{NUMBERED_PARAMETERS, delete_older, delete_silently, list_numbered, purge};
pub(crate) use bulk::{cancel_many, delete_ended, delete_many, retry_ended, retry_many};
pub(crate) use select::FILTER;
pub(crate) use stats::stats;

use super::envelope::{flattened, push_job, push_members};
use super::lists::{Asked, Pages};
use super::names::id_in_path;
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_ojs::json::Members;
use redrive_ojs::{push_explanation, push_redriven};
use redrive_store::{Job, JobId};
use select::Selection;
use serde_json::json;
use std::sync::Arc;

/// A filter, and which page.
pub(crate) const LIST_PARAMETERS: &[&str] =
    &["queue", "type", "error_type", "since", "until", "limit", "offset", "cursor"];
/// A filter, and what a body would say beside it.
pub(crate) const DELETE_PARAMETERS: &[&str] =
    &["queue", "type", "error_type", "since", "until", "all", "confirm", "dry_run"];

pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    list_by(&app, &query, Pages::Plain, "jobs").await
}

/// A page of dead letters, under `name`.
async fn list_by(app: &App, query: &Query, pages: Pages, name: &str) -> Result<JsonResponse, ApiError> {
    let selection = Selection::of_query(query)?;
    let asked = Asked::read(query, pages, &app.limits, selection.filter())?;
    let list = async {
        let found = selection.page(app, asked.page).await?;
        Ok(asked.answer(name, selection.filter(), &found, |out, job| push_job(out, job, app)).await)
    };
    app.engine.throttled(list).await
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let job = dead(&app, id_in_path(&id)?).await?;
    let mut members = Vec::with_capacity(2_048);
    push_members(&mut members, &job, &app);
    push_explanation(&mut members, &job);
    Ok(JsonResponse::ok(flattened(&members)))
}

pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let id = id_in_path(&id)?;
    let members = payload.members_or_none()?;
    let job = dead(&app, id).await?;
    redriven(&app, &caller, &members, &job).await
}

/// Redrives a job, with what the request wants to be different, and answers what it has become.
pub(super) async fn redriven(
    app: &App,
    caller: &Caller,
    members: &Members<'_>,
    job: &Job,
) -> Result<JsonResponse, ApiError> {
    let redrive = revise::redrive(app, members, job)?;
    caller.check_queues(redrive.spec.iter().map(|spec| &*spec.queue))?;
    let job = app.engine.redrive(job.id, redrive).await?.job;
    let mut members = Vec::with_capacity(1_024);
    push_members(&mut members, &job, app);
    push_redriven(&mut members, &job);
    Ok(JsonResponse::ok(flattened(&members)))
}

pub(crate) async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let id = delete_one(&app, &id).await?;
    Ok(JsonResponse::json(&json!({ "deleted": true, "job_id": id.to_string() })))
}

async fn delete_one(app: &App, id: &str) -> Result<JobId, ApiError> {
    let id = id_in_path(id)?;
    dead(app, id).await?;
    app.engine.remove(id).await?;
    Ok(id)
}

/// A job that is a dead letter; any other is not found here.
async fn dead(app: &App, id: JobId) -> Result<Job, ApiError> {
    let job = app.engine.job(id).await?;
    if job.dead { Ok(job) } else { Err(ApiError::no_such_job(format_args!("{id} among the dead letters"))) }
}
