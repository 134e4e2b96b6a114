//! Workers: which there are, how they do, and what operators tell them.

pub(super) mod describe;

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::exosphere;
use crate::ojs::lists::{Pages, named_page};
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::{STALE_AFTER, WorkerRefusal, WorkerState};
use redrive_ojs::json::member;
use redrive_ojs::time::rfc3339;
use redrive_ojs::workers::{ListedWorker, MOST_ACTIVE, list_workers, show_worker};
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::info;

/// `GET /admin/workers`.
pub(crate) async fn list(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let (workers, is_cut) = list_workers(&app.engine).await?;
    let now = app.engine.now();
    let (page, shown) = named_page(&query, Pages::Numbered, &app.limits, &workers, |worker| &worker.worker.id)?;
    let items: Vec<Value> = page.iter().map(|worker| worker.json(now)).collect();
    let count = |fits: &dyn Fn(&ListedWorker) -> bool| workers.iter().filter(|worker| fits(worker)).count();
    let is_stale = |worker: &ListedWorker| worker.worker.is_stale(now);
    let is = |worker: &ListedWorker, state| !is_stale(worker) && worker.worker.wanted() == state;
    let mut summary = json!({
        "total": workers.len(),
        "running": count(&|worker| is(worker, WorkerState::Running)),
        "quiet": count(&|worker| is(worker, WorkerState::Quiet)),
        "draining": count(&|worker| is(worker, WorkerState::Drain) || is(worker, WorkerState::Terminate)),
        "stale": count(&is_stale),
    });
    if is_cut {
        summary["active_jobs_counted"] = MOST_ACTIVE.into();
    }
    let mut out = b"{\"items\":".to_vec();
    out.extend_from_slice(Value::from(items).to_string().as_bytes());
    member(&mut out, "summary");
    out.extend_from_slice(summary.to_string().as_bytes());
    shown.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// `GET /admin/workers/{id}`: one worker, and what it runs.
pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let worker = show_worker(&app.engine, &id).await?.ok_or_else(|| no_such_worker(&app, &id))?;
    Ok(JsonResponse::json(&worker))
}

/// `GET /workers/{id}/health`: 503 for a worker that gets no jobs, or that was not heard of lately.
pub(crate) async fn health(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let worker = app.engine.worker(&id).ok_or_else(|| no_such_worker(&app, &id))?;
    let (now, wanted) = (app.engine.now(), worker.wanted());
    let (status, word) = match wanted {
        _ if worker.is_stale(now) => (StatusCode::SERVICE_UNAVAILABLE, "stale"),
        WorkerState::Running => (StatusCode::OK, "ok"),
        WorkerState::Quiet => (StatusCode::SERVICE_UNAVAILABLE, "quiet"),
        WorkerState::Drain | WorkerState::Terminate => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
    };
    let mut health = json!({
        "worker_id": &*worker.id,
        "status": word,
        "state": wanted.name(),
        "last_seen_at": rfc3339(worker.last_seen),
    });
    if let Some(at) = worker.last_heartbeat {
        health["last_heartbeat_at"] = rfc3339(at).into();
    }
    Ok(JsonResponse::json(&health).status(status))
}

/// `POST /admin/workers/{id}/quiet`.
pub(crate) async fn quiet(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    direct(&app, &id, &payload, Some(WorkerState::Quiet))
}

/// `POST /admin/workers/{id}/terminate`.
pub(crate) async fn terminate(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    direct(&app, &id, &payload, Some(WorkerState::Terminate))
}

/// `POST /admin/workers/{id}/resume`: cancels what a worker was told.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    direct(&app, &id, &payload, None)
}

fn direct(app: &App, id: &str, payload: &Payload, state: Option<WorkerState>) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    payload.members_or_none()?.only(&[], &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let worker = app.engine.direct_worker(id, state).ok_or_else(|| no_such_worker(app, id))?;
    let word = state.unwrap_or_default().name();
    info!(worker = id, "worker {id} is told: {word}");
    Ok(JsonResponse::json(&json!({
        "id": &*worker.id,
        "state": worker.state().name(),
        "directive": state.map(WorkerState::name),
        "delivered_with": "the next heartbeat",
    })))
}

/// `DELETE /admin/workers/{id}`: forgets a stale worker, and ends its runs.
pub(crate) async fn remove(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    if id == exosphere::WORKER {
        let message = format!(
            "worker \"{id}\" stands for all runtimes of Exosphere's graphs, which do not say who they are; \
             `redrive graph stuck` frees the states of one that has died"
        );
        let details = json!({ "reason": "runtimes_of_graphs", "worker_id": &id });
        return Err(ApiError::new(Code::Conflict, message).with_details(details));
    }
    let ended = app.engine.remove_worker(&id).await.map_err(|refusal| match refusal {
        WorkerRefusal::NotFound => no_such_worker(&app, &id),
        WorkerRefusal::Engine(error) => error.into(),
        WorkerRefusal::Alive(worker) => {
            let (at, after) = (rfc3339(worker.last_seen), STALE_AFTER.secs());
            let message = format!(
                "worker \"{id}\" was heard of at {at}; only one that was silent for {after} s can be removed: \
                 POST /admin/workers/{{id}}/quiet or /terminate ends it gracefully"
            );
            ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "worker_alive", "worker_id": &id }))
        }
    })?;
    info!(worker = id, ended, "worker {id} was removed; {ended} runs of it were ended as failed");
    Ok(JsonResponse::json(&json!({ "deleted": true, "id": id, "rescheduled_jobs": ended })))
}

fn no_such_worker(app: &App, id: &str) -> ApiError {
    ApiError::new(Code::NotFound, redrive_ojs::workers::no_such_worker(&app.engine, id))
}
