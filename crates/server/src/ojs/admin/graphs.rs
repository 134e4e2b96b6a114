//! Runs of Exosphere's graphs, of all namespaces; and states that a runtime has had for long.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::exosphere::{graph_run, jobs_of, listed_run};
use crate::ojs::lists::{Asked, Pages, sifted};
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_engine::{Ending, EngineError, FailureReport};
use redrive_exosphere::{RUN, RunState, STATE, StateId, StateView, error_document, queue_of, states_of};
use redrive_ojs::json::{member, push_str};
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Problem, Signal, Span};
use redrive_store::{Blob, Filter, Job, LeaseRef, Refusal, RunFilter, RunId, Settled, State as JobState, Token};
use serde_json::{Value, json};
use std::sync::Arc;
use tracing::info;

/// Which runs are listed.
pub(crate) const RUNS_PARAMETERS: &[&str] = &["namespace", "limit", "after"];
/// Which states are listed.
pub(crate) const STATES_PARAMETERS: &[&str] = &["namespace", "taken_before", "limit", "offset", "cursor"];

/// How many runs a page holds where the caller does not say, and how many are read from the store at a time.
const PAGE: usize = 50;
/// How long the name of an operator may be, in bytes.
const LONGEST_NAME: usize = 200;

/// `GET /admin/graph-runs`: the newest first, behind the run `after`.
pub(crate) async fn runs(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", PAGE, app.limits.page, &mut problems).max(1);
    let after = query.get("after").map(str::parse::<RunId>).transpose().unwrap_or_else(|_| {
        let found = format!("{:?}", query.get("after").unwrap_or_default());
        problems.push(Problem::new("?after", found, "the id of a run"));
        None
    });
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let list = async {
        let (mut runs, mut next) = (Vec::new(), None);
        let mut filter = RunFilter { program: Some(RUN.into()), after, ..RunFilter::default() };
        loop {
            let some = app.engine.list_runs(filter.clone(), PAGE).await?;
            let Some(last) = some.last() else { return Ok((runs, None)) };
            filter.after = Some(last.id);
            for run in some {
                if runs.len() == limit {
                    return Ok((runs, next));
                }
                let state = RunState::read(&run.state).map_err(unreadable)?;
                next = Some(run.id);
                if query.get("namespace").is_none_or(|namespace| namespace == state.namespace) {
                    runs.push(described(&app, &run, &state).await?);
                }
            }
        }
    };
    let (runs, next): (Vec<Value>, Option<RunId>) = app.engine.throttled::<Result<_, ApiError>>(list).await?;
    let mut answer = json!({ "runs": runs });
    if let Some(next) = next {
        answer["next_after"] = next.to_string().into();
    }
    Ok(JsonResponse::json(&answer))
}

/// `GET /admin/graph-runs/{run}`: a run with its graph and all of its states.
pub(crate) async fn run(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let found = graph_run(&app, &id).await?;
    let (run, state) =
        found.ok_or_else(|| ApiError::new(Code::NotFound, format!("there is no run of a graph \"{id}\"")))?;
    let jobs = jobs_of(&app, &run, &state, |_| true).await?;
    let shown = |view: &StateView| {
        let above = view.parents(&run, &state, &jobs).pop().map(|(_, id)| id.to_string());
        json!({
            "state_id": view.id.to_string(),
            "job_id": view.id.job.to_string(),
            "node_name": view.node_name,
            "identifier": view.identifier,
            "status": view.status,
            "retry": view.id.retry,
            "error": view.error,
            "after": above,
            "created_at": rfc3339(view.created),
            "updated_at": rfc3339(view.updated),
            "due_at": view.due.map(rfc3339),
            "taken_at": view.taken.map(rfc3339),
        })
    };
    let node = |node: &redrive_exosphere::TemplateNode| {
        json!({
            "identifier": node.identifier, "node_name": node.node_name, "namespace": node.namespace,
            "next_nodes": node.next_nodes, "unites": node.unites,
        })
    };
    let mut answer = described(&app, &run, &state).await?;
    answer["nodes"] = state.template.nodes.iter().map(node).collect();
    answer["states"] = states_of(&run, &state, &jobs).iter().map(shown).collect();
    Ok(JsonResponse::json(&answer))
}

async fn described(app: &App, run: &redrive_store::Run, state: &RunState) -> Result<Value, ApiError> {
    let mut shown = listed_run(app, run, state).await?;
    shown["namespace"] = state.namespace.as_str().into();
    Ok(shown)
}

/// `GET /admin/graph-states`: states that a runtime has and has not reported, since before a time.
pub(crate) async fn states(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let before = query.moment("taken_before", &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let queues = query.get("namespace").map(|namespace| queue_of(namespace, ""));
    let filter = Filter { kind: Some(STATE.into()), state: Some(JobState::Active), ..Filter::default() };
    let asked = Asked::read(&query, Pages::Plain, &app.limits, &filter)?;
    let fits = |job: &Job| {
        job.times.started.is_some_and(|started| before.is_none_or(|before| started < before))
            && queues.as_ref().is_none_or(|queues| job.spec.queue.starts_with(queues.as_str()))
    };
    let list = async {
        let found = sifted(&app, &filter, asked.page, fits).await?;
        Ok(asked.answer("states", &filter, &found, push_state).await)
    };
    app.engine.throttled(list).await
}

fn push_state(out: &mut Vec<u8>, job: &Job) {
    let document: Value = serde_json::from_slice(&job.spec.body).unwrap_or_default();
    let meta = &document["meta"];
    let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
    out.push(b'{');
    let facts = [
        ("state_id", StateId::of(job).to_string()),
        ("job_id", job.id.to_string()),
        ("namespace", text("namespace")),
        ("graph_name", text("graph")),
        ("run_id", text("run_id")),
        ("node_name", text("node")),
        ("identifier", text("identifier")),
        ("taken_at", job.times.started.map(rfc3339).unwrap_or_default()),
    ];
    for (name, fact) in facts {
        member(out, name);
        push_str(out, &fact);
    }
    out.push(b'}');
}

/// `POST /admin/graph-states/{state}/free`: the runtime that has a state is taken for dead. That is a failure of the
/// state, so that the retry policy of its graph decides what comes next; a late report is refused.
pub(crate) async fn free(
    State(app): State<Arc<App>>,
    Path(text): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let members = payload.members_or_none()?;
    let mut problems = Vec::new();
    members.only(&["taken_before", "by"], &mut problems);
    let before = members.read("taken_before", "a timestamp such as \"2026-02-13T10:00:00Z\"", &mut problems, |value| {
        redrive_ojs::time::parse_rfc3339(&redrive_ojs::json::text(value)?)
    });
    let by = members.read("by", "a name of at most 200 bytes", &mut problems, |value| {
        redrive_ojs::json::text(value).filter(|name| name.len() <= LONGEST_NAME)
    });
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let by = by.as_deref().unwrap_or("an operator");
    let job = settled(&app, &text, before, by).await?;
    let status = if job.state == JobState::Retryable { "RETRY_CREATED" } else { "ERRORED" };
    info!(state = text, by, "state {text} was freed by {by}");
    Ok(JsonResponse::json(&json!({ "freed": true, "state_id": text, "status": status, "job_id": job.id.to_string() })))
}

/// Ends the attempt of a state that a runtime took before a time.
async fn settled(app: &App, text: &str, before: Option<Moment>, by: &str) -> Result<Job, ApiError> {
    let missing = || ApiError::new(Code::NotFound, format!("there is no state \"{text}\" of a graph"));
    let id: StateId = text.parse().map_err(|()| missing())?;
    let job = app.engine.job(id.job).await.map_err(|error| match error {
        EngineError::Refused(_, Refusal::NotFound) => missing(),
        other => other.into(),
    })?;
    if *job.spec.kind != *STATE || job.parent.is_none() {
        return Err(missing());
    }
    let refused = |why: String| {
        let message = format!("state {text} {why}; only one that a runtime has, and has not reported, can be freed");
        ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "not_stuck", "state_id": text }))
    };
    let Some(lease) = job.lease.as_ref().filter(|_| StateId::of(&job) == id) else {
        return Err(refused("is not QUEUED".to_owned()));
    };
    let started = job.times.started.unwrap_or(job.times.created);
    if before.is_some_and(|before| started >= before) {
        return Err(refused(format!("was taken at {}", rfc3339(started))));
    }
    let length: Span = app.engine.now().since(started);
    let error = error_document(&format!("no runtime reported the state within {length}, and {by} freed it"));
    let report = FailureReport {
        types: vec!["state_freed".to_owned()],
        signal: Signal::Overdue,
        ..FailureReport::new(Blob::from(error))
    };
    let lease_ref = LeaseRef { id: job.id, token: Token::Lease(lease.token) };
    match app.engine.settle(vec![(lease_ref, Ending::Failed(report))]).await?.pop() {
        Some(Ok(Settled::Transition(transition))) => Ok(transition.job),
        Some(Err(EngineError::Refused(..)) | Ok(_)) | None => Err(refused("was reported meanwhile".to_owned())),
        Some(Err(other)) => Err(other.into()),
    }
}

fn unreadable(why: String) -> ApiError {
    ApiError::new(Code::InternalError, why)
}
