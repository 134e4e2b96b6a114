//! For operators: which jobs there are, and taking any of them back.

use super::dead;
use super::envelope::{push_bare_job, push_job};
use super::lists::Asked;
use super::names::id_in_path;
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_policy::Problem;
use redrive_store::{Filter, Page, State as JobState};
use std::sync::Arc;

/// A filter, which page, and with what.
pub(crate) const LIST_PARAMETERS: &[&str] = &["queue", "type", "state", "page", "per_page", "cursor", "include"];

/// Lists jobs without their arguments, metadata, results and error details, which can be large, unless `include`
/// asks for them.
pub(crate) async fn jobs(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let state = state(&query, &mut problems);
    let payloads = payloads(&query, &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let name = |key: &str| query.get(key).map(Arc::from);
    let filter = Filter { queue: name("queue"), kind: name("type"), state, ..Filter::default() };
    let asked = Asked::numbered(&query, &app.limits, &filter)?;
    let list = async {
        let found = app.engine.list(filter.clone(), Page { payloads, ..asked.page }).await?;
        let mut out = b"{\"items\":".to_vec();
        let push = if payloads { push_job } else { push_bare_job };
        let shown = asked.push_jobs(&mut out, &filter, &found, |out, job| push(out, job, &app)).await;
        shown.push_numbered(&mut out);
        out.push(b'}');
        Ok(JsonResponse::ok(out))
    };
    app.engine.throttled(list).await
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

/// Redrives a job that has ended, dead letter or not, to run again as if it were new.
pub(crate) async fn retry(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let id = id_in_path(&id)?;
    let members = payload.members_or_none()?;
    let job = app.engine.job(id).await?;
    dead::redriven(&app, &members, &job).await
}
