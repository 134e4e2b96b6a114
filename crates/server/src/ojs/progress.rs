//! How far running jobs have come: reported by workers, read by those who watch.

use super::envelope::shown;
use super::names::id_in_path;
use super::settle::{lease_ref, token};
use crate::access::Caller;
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::Payload;
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_engine::ProgressReport;
use redrive_ojs::json::{Members, check_nested, member, push_str};
use redrive_ojs::push_moment;
use redrive_policy::Problem;
use redrive_store::{Job, JobId, LeaseRef};
use std::io::Write;
use std::sync::Arc;

/// `POST /workers/progress`, as client libraries call it: in percent.
pub(crate) async fn report(
    State(app): State<Arc<App>>,
    caller: Caller,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members()?;
    let mut problems = Vec::new();
    let lease_ref = lease_ref(&members, &app.limits, &mut problems);
    let report = read(&app, &members, "percentage", 100.0, &mut problems);
    match lease_ref {
        Some(lease_ref) if problems.is_empty() => {
            caller.check_jobs(&app, &[lease_ref.id]).await?;
            noted(&app, lease_ref, report).await
        }
        _ => Err(ApiError::invalid(problems)),
    }
}

/// `PUT /jobs/{id}/progress`: as a fraction.
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members()?;
    let mut problems = Vec::new();
    let worker = members.worker_name(&app.limits.of_jobs(), &mut problems);
    let lease_ref = LeaseRef { id: id_in_path(&id)?, token: token(&members, worker.as_deref(), &mut problems) };
    let report = read(&app, &members, "progress", 1.0, &mut problems);
    if problems.is_empty() { noted(&app, lease_ref, report).await } else { Err(ApiError::invalid(problems)) }
}

/// `GET /jobs/{id}/progress`. Where nothing was reported the members are null, so that this differs
/// from a job that is not there (OJS progress, 7.1).
pub(crate) async fn get(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let job = app.engine.job(id_in_path(&id)?).await?;
    Ok(JsonResponse::ok(written(&app, &job, None)))
}

/// The number under `key` is out of `whole`; what lies outside is moved to the nearest end.
fn read(app: &App, members: &Members<'_>, key: &str, whole: f64, problems: &mut Vec<Problem>) -> ProgressReport {
    let allowed = format!("a number from 0 to {whole}");
    let number = members.read(key, &allowed, problems, |value| value.get().parse::<f64>().ok());
    let message = members.text("message", problems).map(|message| message.into_owned());
    let data = members.get("data").filter(|data| data.get() != "null");
    if let Some(Err(message)) = data.map(|data| check_nested(data, app.limits.nesting)) {
        members.add_problem("data", Problem::with_message("", message), problems);
    }
    let data = data.map(|data| Arc::from(data.get().as_bytes()));
    ProgressReport { fraction: number.map(|number| number / whole), message, data }
}

/// A report about a run that is over is no error, it is merely late (OJS progress, 6.1); the answer says
/// why it was passed over.
async fn noted(app: &App, lease_ref: LeaseRef, report: ProgressReport) -> Result<JsonResponse, ApiError> {
    let id = lease_ref.id;
    match app.engine.report_progress(lease_ref, report).await.map_err(ApiError::from) {
        Ok(job) => Ok(JsonResponse::ok(written(app, &job, Some(true)))),
        Err(error) if error.code == Code::Conflict => Ok(JsonResponse::ok(passed_over(id, &error))),
        Err(error) => Err(error),
    }
}

fn passed_over(id: JobId, error: &ApiError) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let _ = write!(out, "{{\"job_id\":\"{id}\",\"accepted\":false");
    if let Some(reason) = error.details.as_ref().and_then(|details| details["reason"].as_str()) {
        member(&mut out, "reason");
        push_str(&mut out, reason);
    }
    member(&mut out, "message");
    push_str(&mut out, &error.message);
    out.push(b'}');
    out
}

fn written(app: &App, job: &Job, accepted: Option<bool>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    let _ = write!(out, "{{\"job_id\":\"{}\"", job.id);
    if let Some(accepted) = accepted {
        let _ = write!(out, ",\"accepted\":{accepted}");
    }
    member(&mut out, "state");
    push_str(&mut out, job.state.name());
    let progress = app.engine.progress(job);
    let progress = progress.as_ref().map(shown);
    for key in ["progress", "message", "data"] {
        member(&mut out, key);
        if !progress.as_ref().is_some_and(|progress| progress.push_part(&mut out, key)) {
            out.extend_from_slice(b"null");
        }
    }
    if let Some(progress) = &progress {
        push_moment(&mut out, "updated_at", progress.at);
    }
    if let Some(lease) = &job.lease {
        push_moment(&mut out, "lease_expires_at", lease.until);
    }
    out.push(b'}');
    out
}
