//! Which jobs there are, all about one of them, cancelling it, and redriving it.

use crate::access::Caller;
use crate::api_error::ApiError;
use crate::app::App;
use crate::ojs::envelope::{push_bare_job, push_job, push_members};
use crate::ojs::lists::{Asked, Pages, sifted};
use crate::ojs::names::id_in_path;
use crate::ojs::{dead, jobs as data_plane};
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_ojs::json::member;
use redrive_ojs::{push_explanation, push_moment};
use redrive_policy::{Moment, Problem};
use redrive_store::{Filter, Job, Page, State as JobState};
use serde_json::Value;
use std::sync::Arc;

/// A filter, which page, and with what.
pub(crate) const LIST_PARAMETERS: &[&str] =
    &["queue", "type", "state", "since", "until", "sort", "order", "page", "per_page", "cursor", "include"];

/// Lists jobs without their arguments, metadata, results and error details, which can be large, unless `include`
/// asks for them.
pub(crate) async fn jobs(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let state = state(&query, &mut problems);
    let payloads = payloads(&query, &mut problems);
    let (since, until) = (query.moment("since", &mut problems), query.moment("until", &mut problems));
    check_order(&query, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let name = |key: &str| query.get(key).map(Arc::from);
    let filter = Filter { queue: name("queue"), kind: name("type"), state, ..Filter::default() };
    let asked = Asked::read(&query, Pages::Numbered, &app.limits, &filter)?;
    let list = async {
        let page = Page { payloads, ..asked.page };
        let found = match (since, until) {
            (None, None) => app.engine.list(filter.clone(), page).await?,
            _ => {
                let fits = |job: &Job| {
                    let created = job.times.created;
                    since.is_none_or(|since| created >= since) && until.is_none_or(|until| created < until)
                };
                sifted(&app, &filter, page, fits).await?
            }
        };
        let push = if payloads { push_job } else { push_bare_job };
        Ok(asked.answer("items", &filter, &found, |out, job| push(out, job, &app)).await)
    };
    app.engine.throttled(list).await
}

/// The list has one order, that of ids, the newest first. Any other would read all jobs for each page.
fn check_order(query: &Query, problems: &mut Vec<Problem>) {
    for (key, only) in [("sort", "created_at"), ("order", "desc")] {
        if let Some(other) = query.get(key).filter(|said| *said != only) {
            let allowed = format!("\"{only}\", or nothing: a list in another order would read all jobs for each page");
            problems.push(Problem::new(format!("?{key}"), format!("\"{other}\""), allowed));
        }
    }
}

/// Whether jobs are listed with all that belongs to them.
fn payloads(query: &Query, problems: &mut Vec<Problem>) -> bool {
    match query.get("include") {
        None => false,
        Some("payload") => true,
        Some(other) => {
            problems.push(Problem::new("?include", format!("\"{other}\""), "\"payload\", or nothing"));
            false
        }
    }
}

fn state(query: &Query, problems: &mut Vec<Problem>) -> Option<JobState> {
    let said = query.get("state")?;
    let known = JobState::ALL.into_iter().find(|state| state.name() == said);
    if known.is_none() {
        let names: Vec<&str> = JobState::ALL.iter().map(|state| state.name()).collect();
        problems.push(Problem::new("?state", format!("\"{said}\""), names.join(", ")));
    }
    known
}

/// `GET /admin/jobs/{id}`: the envelope, with its policy and its times under the names of the admin page as well.
pub(crate) async fn job(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let job = app.engine.job(id_in_path(&id)?).await?;
    let mut out = vec![b'{'];
    push_members(&mut out, &job, &app);
    push_explanation(&mut out, &job);
    push_admin_members(&mut out, &job);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// Writes what the admin page calls otherwise: the retry policy, and the times together. Times that have not come yet
/// are null there.
fn push_admin_members(out: &mut Vec<u8>, job: &Job) {
    // What is written already is an object that only lacks its end.
    let envelope: Value = serde_json::from_slice(&[&out[..], b"}"].concat()).unwrap_or_default();
    member(out, "retry_policy");
    out.extend_from_slice(envelope["retry"].to_string().as_bytes());
    if envelope.get("errors").is_none() {
        member(out, "errors");
        out.extend_from_slice(b"[]");
    }
    member(out, "metadata");
    out.push(b'{');
    let finished = |state| job.times.finished.filter(|_| job.state == state);
    let times: [(&str, Option<Moment>); 7] = [
        ("created_at", Some(job.times.created)),
        ("enqueued_at", job.times.available),
        ("started_at", job.times.started),
        ("scheduled_at", job.due.filter(|_| job.state == JobState::Scheduled)),
        ("completed_at", finished(JobState::Completed)),
        ("cancelled_at", finished(JobState::Cancelled)),
        ("discarded_at", finished(JobState::Discarded)),
    ];
    for (key, at) in times {
        match at {
            Some(at) => push_moment(out, key, at),
            None => {
                member(out, key);
                out.extend_from_slice(b"null");
            }
        }
    }
    out.push(b'}');
}

/// `POST /admin/jobs/{id}/cancel`: as `DELETE /jobs/{id}`.
pub(crate) async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    payload.members_or_none()?.only(&[], &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    data_plane::cancel(State(app), Path(id)).await
}

/// Redrives a job that has ended, dead letter or not, to run again as if it were new.
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    caller: Caller,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let id = id_in_path(&id)?;
    let members = payload.members_or_none()?;
    let job = app.engine.job(id).await?;
    dead::redriven(&app, &caller, &members, &job).await
}
