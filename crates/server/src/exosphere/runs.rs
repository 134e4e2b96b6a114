//! Runs of graphs and their states, for operators.

use super::place::Place;
use super::reply::{Document, bad, damaged, fields, missing};
use super::states;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::EngineError;
use redrive_exosphere::{
    Manual, RETRY, RUN, RunState, STATUSES, StateId, StateView, Status, Totals, read_page, read_retry, states_of,
};
use redrive_ojs::time::rfc3339;
use redrive_store::{Blob, Job, JobId, Parent, Run, RunFilter, Signal};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// How many runs are read from the store at a time.
const STEP: usize = 100;

/// `GET runs/{page}/{size}`: the newest first. All runs of graphs are read, to find those of the namespace.
pub(crate) async fn list(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let (page, size) = read_page(&place.page, &place.size, app.limits.page).map_err(|errors| fields(&errors))?;
    let first = (page - 1).saturating_mul(size);
    let list = async {
        let (mut total, mut runs) = (0, Vec::new());
        let mut filter = RunFilter { program: Some(RUN.into()), ..RunFilter::default() };
        loop {
            let some = app.engine.list_runs(filter.clone(), STEP).await?;
            let Some(last) = some.last() else { return Ok((total, runs)) };
            filter.after = Some(last.id);
            for run in some {
                let state = RunState::read(&run.state).map_err(damaged)?;
                if state.namespace != place.namespace {
                    continue;
                }
                if (first..first.saturating_add(size)).contains(&total) {
                    runs.push(listed_run(&app, &run, &state).await?);
                }
                total += 1;
            }
        }
    };
    let (total, runs): (usize, Vec<Value>) = app.engine.throttled::<Result<_, ApiError>>(list).await?;
    let answer = json!({
        "namespace": place.namespace, "total": total, "page": page, "size": size, "runs": runs,
    });
    Ok(JsonResponse::json(&answer))
}

/// A run in numbers.
pub(crate) async fn listed_run(app: &App, run: &Run, state: &RunState) -> Result<Value, ApiError> {
    let pending = |index: &u32| state.row(*index).status == Status::Started;
    let jobs = jobs_of(app, run, state, pending).await?;
    let totals = Totals::of(run, state, &jobs);
    Ok(json!({
        "run_id": run.id.to_string(),
        "graph_name": state.graph,
        "success_count": totals.success,
        "pending_count": totals.pending,
        "errored_count": totals.errored,
        "retried_count": totals.retried,
        "total_count": totals.all(),
        "status": totals.status(run),
        "created_at": rfc3339(run.created),
    }))
}

/// `GET states/run/{run}/graph`: the states of a run and how they follow each other.
pub(crate) async fn structure(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let found = find(&app, &place).await?;
    let mut summary: Map<String, Value> = STATUSES.iter().map(|status| ((*status).to_owned(), 0.into())).collect();
    let (mut roots, mut nodes, mut edges) = (Vec::new(), Vec::new(), Vec::new());
    if let Some((run, state)) = &found {
        let jobs = jobs_of(&app, run, state, |_| true).await?;
        for view in states_of(run, state, &jobs) {
            let shown = described(&view);
            if let Some(count) = summary.get_mut(view.status) {
                *count = (count.as_u64().unwrap_or(0) + 1).into();
            }
            match view.parents(run, state, &jobs).last() {
                Some((_, parent)) => {
                    edges.push(json!({ "source": parent.to_string(), "target": view.id.to_string() }));
                }
                None => roots.push(shown.clone()),
            }
            nodes.push(shown);
        }
    }
    Ok(JsonResponse::json(&json!({
        "root_states": roots,
        "graph_name": found.as_ref().map_or("", |(_, state)| &state.graph),
        "node_count": nodes.len(),
        "edge_count": edges.len(),
        "nodes": nodes,
        "edges": edges,
        "execution_summary": summary,
    })))
}

/// `GET graph/{graph}/run/{run}/node/{state}`: everything about one state.
pub(crate) async fn state(State(app): State<Arc<App>>, place: Place) -> Result<JsonResponse, ApiError> {
    let id: StateId = place.state.parse().map_err(|()| bad(format!("{:?} is not the id of a state", place.state)))?;
    let unknown = || missing("State not found");
    let (run, state) = find(&app, &place).await?.filter(|(_, state)| state.graph == place.graph).ok_or_else(unknown)?;
    let jobs = jobs_of(&app, &run, &state, |_| true).await?;
    let view = states_of(&run, &state, &jobs).into_iter().find(|view| view.id == id).ok_or_else(unknown)?;
    let (inputs, outputs) = view.values(&state, jobs.get(&id.job));
    let parents = view.parents(&run, &state, &jobs);
    let parents: Map<String, Value> = parents.into_iter().map(|(name, id)| (name, id.to_string().into())).collect();
    Ok(JsonResponse::json(&json!({
        "id": view.id.to_string(),
        "node_name": view.node_name,
        "identifier": view.identifier,
        "graph_name": state.graph,
        "run_id": run.id.to_string(),
        "status": view.status,
        "inputs": inputs,
        "outputs": outputs,
        "error": view.error,
        "parents": parents,
        "created_at": rfc3339(view.created),
        "updated_at": rfc3339(view.updated),
    })))
}

/// `POST state/{state}/manual-retry`: another state takes its place, with all of its retries.
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let fanout_id = read_retry(&body).map_err(|errors| fields(&errors))?;
    let (id, job) = states::find(&app, &place).await?;
    let Some(Parent { run, child }) = job.parent else { return Err(missing("State not found")) };
    let state = RunState::read(&app.engine.run(run).await?.state).map_err(damaged)?;
    let further = (0..)
        .zip(&state.rows)
        .find(|(_, row)| row.copy_of.is_some_and(|(of, number)| u64::from(of) == child && Some(number) == id.output));
    let row = match id.output {
        Some(_) => further.map(|(row, _)| row).ok_or_else(|| missing("State not found"))?,
        None => u32::try_from(child).map_err(|_| missing("State not found"))?,
    };
    let call = app.next_request_id();
    let manual = Manual { row, fanout_id, call: call.clone() };
    let body = serde_json::to_vec(&manual).map_err(|error| damaged(error.to_string()))?;
    let run = app.engine.signal_run(run, Signal { name: RETRY.into(), body: Blob::from(body) }).await?;
    let state = RunState::read(&run.state).map_err(damaged)?;
    let created = (0..).zip(&state.rows).find(|(_, row)| row.manual.as_ref().is_some_and(|(_, by)| *by == call));
    let Some((created, _)) = created else {
        return Err(ApiError::new(Code::Conflict, "Duplicate retry state detected"));
    };
    let id = state.job_id(&run, created);
    Ok(JsonResponse::json(&json!({ "id": id.to_string(), "status": "CREATED" })))
}

/// The run that a path names, if it belongs to the namespace.
async fn find(app: &App, place: &Place) -> Result<Option<(Run, RunState)>, ApiError> {
    let found = graph_run(app, &place.run).await?;
    Ok(found.filter(|(_, state)| state.namespace == place.namespace))
}

/// The run of a graph, of whatever namespace.
pub(crate) async fn graph_run(app: &App, id: &str) -> Result<Option<(Run, RunState)>, ApiError> {
    let Ok(id) = id.parse() else { return Ok(None) };
    let run = match app.engine.run(id).await {
        Err(EngineError::RefusedRun(..)) => return Ok(None),
        answer => answer?,
    };
    if *run.program != *RUN {
        return Ok(None);
    }
    let state = RunState::read(&run.state).map_err(damaged)?;
    Ok(Some((run, state)))
}

/// The jobs of some of the states of a run, as far as they are stored.
pub(crate) async fn jobs_of(
    app: &App,
    run: &Run,
    state: &RunState,
    wanted: impl Fn(&u32) -> bool,
) -> Result<HashMap<JobId, Job>, ApiError> {
    let rows = (0..state.rows.len() as u32).filter(|row| state.has_job(*row)).filter(wanted);
    let ids: Vec<JobId> = rows.map(|row| state.job_id(run, row)).collect();
    let jobs = app.engine.jobs(ids).await?;
    Ok(jobs.into_iter().map(|job| (job.id, job)).collect())
}

fn described(view: &StateView) -> Value {
    json!({
        "id": view.id.to_string(),
        "node_name": view.node_name,
        "identifier": view.identifier,
        "status": view.status,
        "error": view.error,
    })
}
