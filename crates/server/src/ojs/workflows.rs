//! Workflows: create, look at, list, cancel.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::RunRequest;
use redrive_ojs::json::{member, push_str};
use redrive_ojs::workflows::{CANCEL, WORKFLOW, WorkflowLimits, WorkflowRequest, WorkflowState, push_workflow};
use redrive_policy::Problem;
use redrive_store::{Blob, Job, Run, RunFilter, RunId, Signal};
use std::sync::Arc;

/// What a list is asked for with.
pub(super) const LIST_PARAMETERS: &[&str] = &["limit", "after", "state"];
/// How many workflows a page holds where the caller does not say.
const DEFAULT_PAGE: usize = 50;
/// How many workflows may be around a job.
const DEPTH: usize = 8;

pub(crate) async fn create(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let limits = WorkflowLimits { jobs: app.limits.workflow, depth: DEPTH, of_jobs: app.limits.of_jobs() };
    let members = payload.members()?;
    let request = WorkflowRequest::read(&members, &app.engine, limits, app.engine.now())?;
    let state = Blob::from(request.state.write());
    let run = app.engine.start_run(RunRequest { id: request.id, program: WORKFLOW, state, key: None }).await?;
    let location = format!("/ojs/v1/workflows/{}", run.id);
    Ok(answer(&app, &run).await?.status(StatusCode::CREATED).location(&location))
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let run = workflow(&app, &id).await?;
    answer(&app, &run).await
}

pub(crate) async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let run = workflow(&app, &id).await?;
    if let Some(word) = state(&run)?.over(&run) {
        return Err(over(run.id, word));
    }
    let signal = Signal { name: CANCEL.into(), body: Blob::default() };
    let run = app.engine.signal_run(run.id, signal).await?;
    // It may have ended before the signal arrived.
    match state(&run)?.over(&run) {
        Some(word) if word != "cancelled" => Err(over(run.id, word)),
        _ => answer(&app, &run).await,
    }
}

/// The newest first; `after` is the id of the last workflow of the page before.
pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT_PAGE, app.limits.page, &mut problems).max(1);
    let after = query.get("after").map(|text| (text, text.parse::<RunId>()));
    if let Some((text, Err(_))) = &after {
        problems.push(Problem::new("?after", format!("\"{text}\""), "the id of a workflow"));
    }
    let ended = match query.get("state") {
        None => None,
        Some("running") => Some(false),
        Some("ended") => Some(true),
        Some(other) => {
            problems.push(Problem::new("?state", format!("\"{other}\""), "running or ended"));
            None
        }
    };
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let after = after.and_then(|(_, id)| id.ok());
    let filter = RunFilter { program: Some(WORKFLOW.into()), ended, after };
    let runs = app.engine.list_runs(filter, limit).await?;
    let mut out = b"{\"workflows\":[".to_vec();
    for (index, run) in runs.iter().enumerate() {
        out.extend_from_slice(if index > 0 { b",{" } else { b"{" });
        push_workflow(&mut out, run, &state(run)?, &[]);
        out.push(b'}');
    }
    out.push(b']');
    if let Some(last) = runs.last().filter(|_| runs.len() == limit) {
        member(&mut out, "next_after");
        push_str(&mut out, &last.id.to_string());
    }
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// The run of a workflow. A run of another program is none.
async fn workflow(app: &App, text: &str) -> Result<Run, ApiError> {
    let missing = || ApiError::new(Code::NotFound, format!("there is no workflow \"{text}\""));
    let id: RunId = text.parse().map_err(|_| missing())?;
    let run = app.engine.run(id).await.map_err(|error| match error {
        redrive_engine::EngineError::RefusedRun(..) => missing(),
        other => other.into(),
    })?;
    if *run.program == *WORKFLOW { Ok(run) } else { Err(missing()) }
}

fn state(run: &Run) -> Result<WorkflowState, ApiError> {
    WorkflowState::read(&run.state).map_err(|why| ApiError::new(Code::InternalError, why))
}

fn over(id: RunId, word: &str) -> ApiError {
    ApiError::new(
        Code::Conflict,
        format!("the workflow {id} is {word} already, and what is {word} cannot be cancelled"),
    )
}

/// A workflow both ways: its members at the top, and under `workflow`. Client libraries read one or the other.
async fn answer(app: &App, run: &Run) -> Result<JsonResponse, ApiError> {
    let state = state(run)?;
    let jobs: Vec<Job> = app.engine.jobs(state.enqueued(run)).await?;
    let mut members = Vec::with_capacity(1_024);
    push_workflow(&mut members, run, &state, &jobs);
    Ok(JsonResponse::ok([b"{", &members[..], b",\"workflow\":{", &members[..], b"}}"].concat()))
}
