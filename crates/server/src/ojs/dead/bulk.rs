//! Redriving, cancelling and deleting many jobs at once.

use super::select::{Among, FILTER, Selection};
use crate::api_error::ApiError;
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::EngineError;
use redrive_ojs::has_cleared_expiry;
use redrive_ojs::json::Members;
use redrive_policy::Problem;
use redrive_store::{JobId, Redrive};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::JoinSet;
use tracing::info;

/// How many jobs are changed at the same time: they share the store's flushes.
const AT_ONCE: usize = 64;
/// How many refusals are named.
const NAMED: usize = 20;

#[derive(Clone, Copy)]
pub(super) enum Action {
    Retry,
    Cancel,
    Delete,
}

impl Action {
    const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Delete => "delete",
        }
    }

    /// Answers whether the job was to expire, and does not any more.
    async fn apply(self, app: &App, id: JobId) -> Result<bool, EngineError> {
        match self {
            Self::Retry => Ok(has_cleared_expiry(&app.engine.redrive(id, Redrive::default()).await?.job)),
            Self::Cancel => app.engine.cancel(id).await.map(|_| false),
            Self::Delete => app.engine.remove(id).await.map(|_| false),
        }
    }
}

pub(crate) async fn retry_many(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    run(app, BulkRequest::read(Among::DeadLetters, &payload.members_or_none()?, &Query::default())?, Action::Retry)
        .await
}

/// Redrives jobs of one of the states in which jobs have ended.
pub(crate) async fn retry_ended(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    run(app, BulkRequest::read(Among::Ended, &payload.members_or_none()?, &Query::default())?, Action::Retry).await
}

/// Forgets jobs of one of the states in which jobs have ended.
pub(crate) async fn delete_ended(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    run(app, BulkRequest::read(Among::Ended, &payload.members_or_none()?, &Query::default())?, Action::Delete).await
}

/// Cancels jobs that have not ended, whether or not a worker has them.
pub(crate) async fn cancel_many(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    run(app, BulkRequest::read(Among::Live, &payload.members_or_none()?, &Query::default())?, Action::Cancel).await
}

/// The request is in the body, or in the query for clients that send no body with a DELETE.
pub(crate) async fn delete_many(
    State(app): State<Arc<App>>,
    query: Query,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    run(app, BulkRequest::read(Among::DeadLetters, &payload.members_or_none()?, &query)?, Action::Delete).await
}

/// Which jobs are meant, and whether anything happens to them.
pub(super) struct BulkRequest {
    pub(super) selection: Selection,
    pub(super) dry_run: bool,
    pub(super) confirm: bool,
}

impl BulkRequest {
    /// Reads an order. What it does not know it refuses, and so what is said twice; all jobs are meant
    /// only where it says so: nothing that is misspelt or forgotten makes an order larger.
    fn read(among: Among, members: &Members<'_>, query: &Query) -> Result<Self, ApiError> {
        let mut problems = Vec::new();
        members.only(&["filter", "all", "confirm", "dry_run"], &mut problems);
        let filter = members.object("filter", "/filter", &mut problems);
        if members.has("filter") && FILTER.iter().any(|key| query.get(key).is_some()) {
            problems.push(Problem::with_message("/filter", "appears in the body and in the query; keep one of them"));
        }
        let all = flag(members, query, "all", &mut problems);
        let dry_run = flag(members, query, "dry_run", &mut problems);
        let confirm = flag(members, query, "confirm", &mut problems);
        if !problems.is_empty() {
            return Err(ApiError::invalid(problems));
        }
        let selection = match (filter, among) {
            (Some(filter), _) => Selection::of_members(among, &filter)?,
            (None, Among::DeadLetters) => Selection::of_query(query)?,
            (None, Among::Ended | Among::Live) => Selection::of_members(among, &Members::default())?,
        };
        let problem = match (all, selection.fits_all()) {
            (false, true) if !dry_run => format!(
                "missing; name at least one of {}, or say \"all\": true for all {} there are",
                among.keys().join(", "),
                selection.noun()
            ),
            (true, false) => "contradicts \"all\": true; keep one of them".to_owned(),
            _ => return Ok(Self { selection, dry_run, confirm }),
        };
        Err(ApiError::invalid(vec![Problem::with_message("/filter", problem)]))
    }
}

/// A flag in the body or in the query; false where it is absent.
fn flag(members: &Members<'_>, query: &Query, key: &str, problems: &mut Vec<Problem>) -> bool {
    if members.has(key) && query.get(key).is_some() {
        problems
            .push(Problem::with_message(format!("/{key}"), "appears in the body and in the query; keep one of them"));
    }
    members.flag(key, problems).or(query.flag(key, problems)).unwrap_or(false)
}

async fn run(app: Arc<App>, request: BulkRequest, action: Action) -> Result<JsonResponse, ApiError> {
    Ok(JsonResponse::json(&applied(app, request, action).await?))
}

/// Changes what is selected, or says what would be changed.
pub(super) async fn applied(app: Arc<App>, request: BulkRequest, action: Action) -> Result<Value, ApiError> {
    let BulkRequest { selection, dry_run, confirm } = request;
    let noun = selection.noun();
    let mut ids = Vec::new();
    selection.for_each(&app, |job| ids.push(job.id)).await?;
    let matched = ids.len();
    if dry_run {
        return Ok(json!({ "action": action.name(), "dry_run": true, "matched": matched }));
    }
    if !confirm {
        let message =
            format!("missing; this would {} {matched} {noun}: send \"confirm\": true to do it", action.name());
        return Err(ApiError::invalid(vec![Problem::with_message("/confirm", message)]));
    }
    ids.truncate(app.limits.bulk);
    let attempted = ids.len();
    let Applied { succeeded, cleared, errors } = apply_all(&app, action, ids).await;
    let action_name = action.name();
    info!(action = action_name, matched, succeeded, "{noun}: {action_name} of {succeeded} of {matched} that fit");
    let mut answer = json!({
        "action": action.name(),
        "matched": matched,
        "succeeded": succeeded,
        "failed": attempted - succeeded,
        "remaining": matched - attempted,
        "errors": errors,
    });
    if cleared > 0 {
        answer["redrive"] = json!({ "cleared_expiry": cleared });
    }
    Ok(answer)
}

/// What became of many jobs.
#[derive(Default)]
struct Applied {
    succeeded: usize,
    /// How many were to expire, and do not any more.
    cleared: usize,
    /// The first refusals.
    errors: Vec<Value>,
}

/// Changes jobs, several at a time.
async fn apply_all(app: &Arc<App>, action: Action, ids: Vec<JobId>) -> Applied {
    let mut applied = Applied::default();
    let mut running = JoinSet::new();
    let mut ids = ids.into_iter();
    loop {
        for id in ids.by_ref().take(AT_ONCE - running.len()) {
            let app = Arc::clone(app);
            running.spawn(async move { (id, action.apply(&app, id).await) });
        }
        match running.join_next().await {
            None => return applied,
            Some(Ok((_, Ok(cleared)))) => {
                applied.succeeded += 1;
                applied.cleared += usize::from(cleared);
            }
            Some(Ok((id, Err(error)))) if applied.errors.len() < NAMED => {
                applied.errors.push(json!({ "job_id": id.to_string(), "message": ApiError::from(error).message }));
            }
            Some(_) => {}
        }
    }
}
