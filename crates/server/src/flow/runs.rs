//! Runs: start, look at, cancel, and what has happened.

use super::request::StartRequest;
use super::{damaged, definitions};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::{EngineError, RunRequest};
use redrive_flow::runs::{CANCEL, FLOW, FlowState, RunView, Shown};
use redrive_store::{Blob, RunId, RunRefusal, Signal};
use serde_json::{Value, json};
use std::sync::Arc;

/// How many events a page of a history holds where the caller does not say.
const DEFAULT_PAGE: usize = 100;

/// `POST /flows/v1/runs`. A request with an id can be repeated.
pub(crate) async fn start(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let request = StartRequest::read(&payload)?;
    if let Some(view) = started(&app, &request).await? {
        return Ok(JsonResponse::json(&view.to_value(Shown::Whole)));
    }
    let (_, definition) = definitions::find(&app, &request.definition).await?;
    let version = definitions::version(&request.definition, &definition, request.version)?;
    let (input, arguments) = (request.input.clone(), request.arguments.clone());
    let state = FlowState::new(&request.definition, version.version, &version.text, input, arguments);
    let state = state.map_err(|error| ApiError::new(Code::InvalidRequest, error.to_string()))?;
    let state = Blob::from(state.write());
    match app.engine.start_run(RunRequest { id: request.id, program: FLOW, state, key: None }).await {
        // The same request came twice at the same time.
        Err(EngineError::RefusedRun(id, RunRefusal::RunIdTaken(_))) => match started(&app, &request).await? {
            Some(view) => Ok(JsonResponse::json(&view.to_value(Shown::Whole))),
            None => Err(taken(id)),
        },
        answer => {
            let view = RunView::read(answer?).map_err(damaged)?;
            let location = format!("/flows/v1/runs/{}", view.run().id);
            let answer = JsonResponse::json(&view.to_value(Shown::Whole));
            Ok(answer.status(StatusCode::CREATED).location(&location))
        }
    }
}

/// The run that the same request has started before.
async fn started(app: &App, request: &StartRequest) -> Result<Option<RunView>, ApiError> {
    let Some(id) = request.id else { return Ok(None) };
    let run = match app.engine.run(id).await {
        Ok(run) => run,
        Err(EngineError::RefusedRun(_, RunRefusal::NotFound)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if *run.program != *FLOW {
        return Err(taken(id));
    }
    let view = RunView::read(run).map_err(damaged)?;
    let StartRequest { definition, version, input, arguments, .. } = request;
    if view.state().was_started_with(definition, *version, input, arguments) { Ok(Some(view)) } else { Err(taken(id)) }
}

fn taken(id: RunId) -> ApiError {
    let message = format!("a run {id} exists already, and was started with something else; an id is used once");
    ApiError::new(Code::Duplicate, message).with_details(json!({ "run_id": id.to_string() }))
}

/// `GET /flows/v1/runs/{id}`.
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    Ok(JsonResponse::json(&find(&app, &id).await?.to_value(Shown::Whole)))
}

/// `DELETE /flows/v1/runs/{id}`: what the flow cleans up, it does; its Result is there when that is done.
pub(crate) async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let view = find(&app, &id).await?;
    let over = |view: &RunView| {
        let (id, state) = (view.run().id, view.state_name());
        let message = format!("the run {id} is {state} already, and what is {state} cannot be cancelled");
        ApiError::new(Code::Conflict, message).with_details(json!({ "run_id": id.to_string(), "state": state }))
    };
    if view.run().end.is_some() {
        return Err(over(&view));
    }
    let signal = Signal { name: CANCEL.into(), body: Blob::default() };
    let view = RunView::read(app.engine.signal_run(view.run().id, signal).await?).map_err(damaged)?;
    // It may have ended before the signal arrived.
    if view.run().end.is_some() && !view.state().cancelled {
        return Err(over(&view));
    }
    Ok(JsonResponse::json(&view.to_value(Shown::Whole)).status(StatusCode::ACCEPTED))
}

/// `GET /flows/v1/runs/{id}/history`.
pub(crate) async fn history(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    query: Query,
) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let after = query.number("after", 0, usize::MAX, &mut problems) as u64;
    let limit = query.number("limit", DEFAULT_PAGE, app.limits.page, &mut problems).max(1);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let view = find(&app, &id).await?;
    let (omitted, mut rest) = view.events_after(after);
    let events: Vec<&_> = rest.by_ref().take(limit).collect();
    let next = events.last().map(|event| event.seq).filter(|_| rest.next().is_some());
    let listed: Vec<Value> = events.iter().map(|event| event.to_value()).collect();
    let mut answer = json!({ "id": view.run().id.to_string(), "events": listed, "omitted": omitted });
    if let Some(next) = next {
        answer["next_after"] = next.into();
    }
    Ok(JsonResponse::json(&answer))
}

/// The run of a flow. A run of another program is none.
pub(super) async fn find(app: &App, text: &str) -> Result<RunView, ApiError> {
    let missing = || {
        let message = format!("there is no run {text:?} of a flow; runs that have ended are kept for some time");
        ApiError::new(Code::NotFound, message)
    };
    let id: RunId = text.parse().map_err(|_| missing())?;
    match app.engine.run(id).await {
        Ok(run) if *run.program == *FLOW => RunView::read(run).map_err(damaged),
        Ok(_) | Err(EngineError::RefusedRun(_, RunRefusal::NotFound)) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}
