//! Schedules: register, list, look at, change, switch on and off, delete.

use super::lists::{Shown, named_page};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{NamesVersion, Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::{EngineError, RunRequest};
use redrive_ojs::cron::{CronJob, Definition, KIND, cron_definition, signals};
use redrive_ojs::json::{member, push_str, push_u64};
use redrive_policy::resembling;
use redrive_store::{Blob, Run, RunFilter, Signal};
use serde_json::json;
use std::sync::Arc;
use tracing::info;

/// What a list is asked for with.
pub(super) const LIST_PARAMETERS: &[&str] = &["limit", "offset", "cursor", "enabled"];
/// How many schedules are read from the store at a time.
const RUNS: usize = 500;

/// Registers a schedule under a name that is free.
pub(crate) async fn register(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let definition = definition(&app, &payload, None)?;
    let name = definition.name.clone();
    start(&app, definition, names_version).await?.ok_or_else(|| taken(&name))
}

/// Registers a schedule, or changes the one that has the name. What it has counted stays.
pub(crate) async fn replace(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let definition = definition(&app, &payload, Some(&name))?;
    let body = serde_json::to_vec(&definition).map_err(broken)?;
    // It may be deleted, or registered, between the look and the change.
    if app.engine.run_of_key(key(&name)).await?.is_none()
        && let Some(created) = start(&app, definition, names_version).await?
    {
        return Ok(created);
    }
    let changed = tell(&app, &name, signals::REPLACE, body).await?;
    info!(cron = name, "schedule {name} was changed");
    Ok(answer(&changed, names_version))
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
    let signal = if enabled { signals::ENABLE } else { signals::DISABLE };
    let switched = tell(&app, &name, signal, Vec::new()).await?;
    info!(cron = name, "schedule {name} was switched {}", if enabled { "on" } else { "off" });
    Ok(answer(&switched, names_version))
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
) -> Result<JsonResponse, ApiError> {
    let run = find(&app, &name).await?;
    Ok(answer(&read(&run)?, names_version))
}

/// Deletes a schedule. Jobs that it has enqueued stay.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    NamesVersion(names_version): NamesVersion,
    Path(name): Path<String>,
) -> Result<JsonResponse, ApiError> {
    let deleted = tell(&app, &name, signals::DELETE, Vec::new()).await?;
    info!(cron = name, "schedule {name} was deleted");
    let mut out = b"{\"deleted\":true".to_vec();
    member(&mut out, "name");
    push_str(&mut out, &name);
    push_both(&mut out, &deleted, names_version);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// All schedules by name, under both names that client libraries know.
pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let enabled = query.flag("enabled", &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let mut all = all(&app).await?;
    all.retain(|job| enabled.is_none_or(|enabled| enabled == job.is_enabled()));
    all.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    let (page, shown) = named_page(&query, &app.limits, &all, CronJob::name)?;
    let (items, written) = pushed(page, app.limits.answer_bytes / 2);
    let next = page[..written].last().filter(|_| written < page.len()).map(|last| last.name().to_owned());
    let mut out = b"{\"crons\":[".to_vec();
    out.extend_from_slice(&items);
    out.extend_from_slice(b"],\"cron_jobs\":[");
    out.extend_from_slice(&items);
    out.push(b']');
    member(&mut out, "count");
    push_u64(&mut out, written as u64);
    Shown { next: next.or(shown.next.clone()), ..shown }.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// Schedules one after the other, until there is no more room; the first is always there. Answers how many.
fn pushed(jobs: &[CronJob], most_bytes: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let end = out.len();
        if index > 0 {
            out.push(b',');
        }
        job.push(&mut out);
        if out.len() > most_bytes && index > 0 {
            out.truncate(end);
            return (out, index);
        }
    }
    (out, jobs.len())
}

async fn all(app: &App) -> Result<Vec<CronJob>, ApiError> {
    let mut filter = RunFilter { program: Some(KIND.into()), ended: Some(false), after: None };
    let mut all = Vec::new();
    loop {
        let runs = app.engine.list_runs(filter.clone(), RUNS).await?;
        let Some(last) = runs.last() else { return Ok(all) };
        filter.after = Some(last.id);
        for run in &runs {
            all.push(read(run)?);
        }
    }
}

fn definition(app: &App, payload: &Payload, name: Option<&str>) -> Result<Definition, ApiError> {
    let now = app.engine.now();
    Ok(cron_definition(&app.engine, &payload.members()?, name, &app.limits.of_jobs(), now)?)
}

/// Starts the run of a schedule; `None` where the name is taken.
async fn start(app: &App, definition: Definition, names_version: bool) -> Result<Option<JsonResponse>, ApiError> {
    let (name, key) = (definition.name.clone(), key(&definition.name));
    let state = Blob::from(CronJob::beginning(definition).map_err(broken)?);
    let run = match app.engine.start_run(RunRequest { id: None, program: KIND, state, key: Some(key) }).await {
        Err(EngineError::RunKeyTaken(_)) => return Ok(None),
        answer => answer?,
    };
    info!(cron = name, "schedule {name} was registered");
    let created = answer(&read(&run)?, names_version).status(StatusCode::CREATED);
    Ok(Some(created.location(&format!("/ojs/v1/cron/{name}"))))
}

/// Sends a signal to the run of a schedule, and answers how it stands then.
async fn tell(app: &App, name: &str, signal: &str, body: Vec<u8>) -> Result<CronJob, ApiError> {
    let run = find(app, name).await?;
    let signal = Signal { name: signal.into(), body: Blob::from(body) };
    read(&app.engine.signal_run(run.id, signal).await?)
}

async fn find(app: &App, name: &str) -> Result<Run, ApiError> {
    match app.engine.run_of_key(key(name)).await? {
        Some(run) => Ok(run),
        None => Err(missing(app, name).await?),
    }
}

/// That there is no such schedule, and which may be meant.
async fn missing(app: &App, name: &str) -> Result<ApiError, ApiError> {
    let all = all(app).await?;
    let names: Vec<&str> = all.iter().map(CronJob::name).collect();
    let near = resembling(name, &names).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
    Ok(ApiError::new(Code::NotFound, format!("there is no schedule \"{name}\"{near}")))
}

fn taken(name: &str) -> ApiError {
    let message =
        format!("a schedule \"{name}\" exists already; PUT /ojs/v1/cron/{name} changes it, DELETE removes it");
    ApiError::new(Code::Conflict, message).with_details(json!({ "cron": name, "reason": "name_taken" }))
}

fn read(run: &Run) -> Result<CronJob, ApiError> {
    CronJob::of(run).map_err(broken)
}

fn broken(why: impl std::fmt::Display) -> ApiError {
    ApiError::new(Code::InternalError, why)
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

/// The key of the run of a schedule.
fn key(name: &str) -> Arc<str> {
    format!("cron:{name}").into()
}
