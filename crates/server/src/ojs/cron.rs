//! Schedules: register, list, look at, change, switch on and off, delete.

use super::lists::{Pages, Place, Shown, Total};
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::{NamesVersion, Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_ojs::cron::CronJob;
use redrive_ojs::json::{member, push_str, push_u64};
use redrive_ojs::runs::schedules::{self, ScheduleList, SchedulePage};
use std::sync::Arc;
use tracing::info;

/// What a list is asked for with.
pub(super) const LIST_PARAMETERS: &[&str] = &["limit", "offset", "cursor", "enabled"];
/// The same for numbered pages.
pub(super) const NUMBERED_PARAMETERS: &[&str] = &["page", "per_page", "cursor", "enabled"];

/// Registers a schedule under a name that is free.
pub(crate) async fn register(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let job = schedules::register(&app.engine, &payload.members()?, &app.limits.of_jobs()).await?;
    Ok(created(&job, names_version))
}

/// Registers a schedule, or changes the one that has the name. What it has counted stays.
pub(crate) async fn replace(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let (job, is_new) = schedules::replace(&app.engine, &name, &payload.members()?, &app.limits.of_jobs()).await?;
    if is_new {
        return Ok(created(&job, names_version));
    }
    info!(cron = name, "schedule {name} was changed");
    Ok(answer(&job, names_version))
}

/// Switches a schedule on or off.
pub(crate) async fn switch(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let members = payload.members()?;
    members.only(&["enabled"], &mut problems);
    if !members.has("enabled") {
        members.wrong("enabled", "true or false", &mut problems);
    }
    let enabled = members.flag("enabled", &mut problems);
    let Some(enabled) = enabled.filter(|_| problems.is_empty()) else { return Err(ApiError::invalid(problems)) };
    let switched = schedules::switch(&app.engine, &name, enabled).await?;
    info!(cron = name, "schedule {name} was switched {}", if enabled { "on" } else { "off" });
    Ok(answer(&switched, names_version))
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
) -> Result<JsonResponse, ApiError> {
    Ok(answer(&schedules::show(&app.engine, &name).await?, names_version))
}

/// Deletes a schedule. Jobs that it has enqueued stay.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
) -> Result<JsonResponse, ApiError> {
    let deleted = schedules::delete(&app.engine, &name).await?;
    info!(cron = name, "schedule {name} was deleted");
    let mut out = b"{\"deleted\":true".to_vec();
    member(&mut out, "name");
    push_str(&mut out, &name);
    push_both(&mut out, &deleted, names_version);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// A page of schedules by name, under both names that client libraries know.
pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let (items, shown) = page(&app, &query, Pages::Plain, app.limits.answer_bytes / 2).await?;
    let mut out = b"{\"crons\":[".to_vec();
    out.extend_from_slice(&items.text);
    out.extend_from_slice(b"],\"cron_jobs\":[");
    out.extend_from_slice(&items.text);
    out.push(b']');
    member(&mut out, "count");
    push_u64(&mut out, items.count as u64);
    shown.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// `GET /admin/crons`: the same by numbered pages.
pub(crate) async fn list_numbered(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let (items, shown) = page(&app, &query, Pages::Numbered, app.limits.answer_bytes).await?;
    let mut out = b"{\"items\":[".to_vec();
    out.extend_from_slice(&items.text);
    out.push(b']');
    shown.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// Schedules as they are written, one after the other.
struct Items {
    text: Vec<u8>,
    count: usize,
}

async fn page(app: &App, query: &Query, pages: Pages, most_bytes: usize) -> Result<(Items, Shown), ApiError> {
    let mut problems = Vec::new();
    let place = Place::read(query, pages, &app.limits, &mut problems);
    let enabled = query.flag("enabled", &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let after = query.get("cursor");
    let offset = if after.is_some() { 0 } else { place.offset };
    let wanted = ScheduleList { enabled, after, offset, limit: place.limit };
    let found = app.engine.throttled(async { schedules::list(&app.engine, wanted).await }).await?;
    let items = fitting(&found, most_bytes);
    let goes_on = found.goes_on || items.count < found.jobs.len();
    let next = found.jobs[..items.count].last().filter(|_| goes_on).map(|last| last.name().to_owned());
    let total = match next {
        None if after.is_none() && (items.count > 0 || offset == 0) => Total::Exactly(offset + items.count),
        _ => Total::AtLeast(items.count),
    };
    Ok((items, place.shown(offset, total, next)))
}

/// Schedules one after the other, until there is no more room; the first is always there.
fn fitting(page: &SchedulePage, most_bytes: usize) -> Items {
    let mut text = Vec::new();
    for (count, job) in page.jobs.iter().enumerate() {
        let end = text.len();
        if count > 0 {
            text.push(b',');
        }
        job.push(&mut text);
        if text.len() > most_bytes && count > 0 {
            text.truncate(end);
            return Items { text, count };
        }
    }
    Items { text, count: page.jobs.len() }
}

fn created(job: &CronJob, names_version: bool) -> JsonResponse {
    let name = job.name();
    info!(cron = name, "schedule {name} was registered");
    answer(job, names_version).status(StatusCode::CREATED).location(&format!("/ojs/v1/cron/{name}"))
}

/// A schedule in the shapes of all clients at once. Only `cron` differs: the expression for client libraries, an
/// object for the conformance cases.
fn answer(job: &CronJob, names_version: bool) -> JsonResponse {
    let mut out = vec![b'{'];
    job.push_members(&mut out);
    push_both(&mut out, job, names_version);
    out.push(b'}');
    JsonResponse::ok(out)
}

fn push_both(out: &mut Vec<u8>, job: &CronJob, names_version: bool) {
    member(out, "cron");
    if names_version {
        push_str(out, job.expression())
    } else {
        job.push(out)
    }
    member(out, "cron_job");
    job.push(out);
}
