//! States, as runtimes take them and report them.

use super::place::Place;
use super::reply::{Document, bad, fields, missing};
use crate::api_error::ApiError;
use crate::app::App;
use crate::listen::stop_of;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::{ClaimRequest, Ending, EngineError, FailureReport};
use redrive_exosphere::{
    Enqueue, StateId, error_document, outputs_document, pruned_document, queue_of, read_enqueue, read_error,
    read_outputs, read_prune, read_wait,
};
use redrive_ojs::body;
use redrive_ojs::time::rfc3339;
use redrive_policy::{Moment, Outcome, Reason, Signal, Span};
use redrive_store::{Blob, Job, LeaseRef, Refusal, Settled, State as JobState, Token};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How many nodes one call may name.
const MOST_NODES: usize = 1_000;
/// How states are claimed: runtimes do not say who they are.
pub(crate) const WORKER: &str = "exosphere";

/// `POST states/enqueue`: claims states of some nodes.
pub(crate) async fn enqueue(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let Enqueue { nodes, batch_size } = read_enqueue(&body).map_err(|errors| fields(&errors))?;
    if nodes.len() > MOST_NODES {
        return Err(bad(format!("found {} nodes; at most {MOST_NODES} are allowed in one call", nodes.len())));
    }
    let queues: Vec<Arc<str>> = nodes.iter().map(|node| queue_of(&place.namespace, node).into()).collect();
    let count = batch_size.min(app.limits.fetch);
    let jobs = if queues.is_empty() || count == 0 {
        Vec::new()
    } else {
        let bytes = app.limits.answer_bytes;
        let request = ClaimRequest { count, bytes, wait: Duration::ZERO, ..ClaimRequest::new(queues, WORKER) };
        app.engine.claim_or_release(request, stop_of(app.stopping.clone())).await?
    };
    let states: Vec<Value> = jobs.iter().map(claimed).collect();
    let answer = json!({
        "count": states.len(), "namespace": place.namespace, "status": "QUEUED", "states": states,
    });
    Ok(JsonResponse::json(&answer))
}

/// `POST state/{state}/executed`.
pub(crate) async fn executed(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let outputs = read_outputs(&body).map_err(|errors| fields(&errors))?;
    let (id, job) = find(&app, &place).await?;
    let result = Blob::from(outputs_document(outputs, id.retry));
    settle(&app, id, &job, Ending::Done(Some(result))).await?.ok_or_else(not_queued)?;
    Ok(JsonResponse::json(&json!({ "status": "EXECUTED" })))
}

/// `POST state/{state}/errored`: the policy of the graph decides whether another state comes after it.
pub(crate) async fn errored(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let error = read_error(&body).map_err(|errors| fields(&errors))?;
    let (id, job) = find(&app, &place).await?;
    if StateId::of(&job) == id && job.state == JobState::Completed {
        return Err(bad("State is already executed"));
    }
    let error = Blob::from(error_document(cut(&error, app.limits.error_bytes)));
    let settled = settle(&app, id, &job, Ending::Failed(FailureReport::new(error))).await?;
    let settled = settled.ok_or_else(|| bad("State is not queued or executed"))?;
    let retried = settled.state == JobState::Retryable;
    Ok(JsonResponse::json(&json!({ "status": "ERRORED", "retry_created": retried })))
}

/// `POST state/{state}/prune`: ends the branch. A runtime whose call was answered with anything but 200 would stop, so
/// that a call which arrives twice is answered twice.
pub(crate) async fn prune(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let data = read_prune(&body).map_err(|errors| fields(&errors))?;
    let (id, job) = find(&app, &place).await?;
    let report = FailureReport { signal: Signal::Prune, ..FailureReport::new(Blob::from(pruned_document(&data))) };
    let settled = match settle(&app, id, &job, Ending::Failed(report)).await? {
        Some(settled) => settled,
        None => find(&app, &place).await.map(|(_, job)| job).ok().filter(is_pruned).ok_or_else(not_queued)?,
    };
    let since = settled.times.available.unwrap_or(settled.times.created);
    Ok(JsonResponse::json(&json!({ "status": "PRUNED", "enqueue_after": ms(since) })))
}

/// `POST state/{state}/re-enqueue-after`: it runs again later, which is not a failure.
pub(crate) async fn enqueue_again(
    State(app): State<Arc<App>>,
    place: Place,
    Document(body): Document,
) -> Result<JsonResponse, ApiError> {
    let wait = read_wait(&body).map_err(|errors| fields(&errors))?;
    let (id, job) = find(&app, &place).await?;
    let signal = Signal::RequeueAfter(Span::saturating_ms(wait as f64));
    let report = FailureReport { signal, ..FailureReport::new(Blob::default()) };
    let waiting = match settle(&app, id, &job, Ending::Failed(report)).await? {
        Some(settled) => settled,
        // The same call may have arrived before.
        None => {
            find(&app, &place).await.map(|(_, job)| job).ok().filter(|job| waits(job, id)).ok_or_else(not_queued)?
        }
    };
    let from = waiting.due.or(waiting.times.available).unwrap_or(waiting.times.created);
    Ok(JsonResponse::json(&json!({ "status": "CREATED", "enqueue_after": ms(from) })))
}

/// The job of a state, if it belongs to the namespace.
pub(super) async fn find(app: &App, place: &Place) -> Result<(StateId, Job), ApiError> {
    let unknown = || missing("State not found");
    let id: StateId = place.state.parse().map_err(|()| unknown())?;
    let job = app.engine.job(id.job).await.map_err(|error| match error {
        EngineError::Refused(_, Refusal::NotFound) => unknown(),
        other => other.into(),
    })?;
    if job.parent.is_some() && job.spec.queue.starts_with(&queue_of(&place.namespace, "")) {
        Ok((id, job))
    } else {
        Err(unknown())
    }
}

/// Ends a state that a runtime has; `None` where it is not queued, or where another report was faster.
async fn settle(app: &App, id: StateId, job: &Job, ending: Ending) -> Result<Option<Job>, ApiError> {
    let lease = job.lease.as_ref().filter(|_| StateId::of(job) == id);
    let Some(lease) = lease else { return Ok(None) };
    let lease_ref = LeaseRef { id: job.id, token: Token::Lease(lease.token) };
    match app.engine.settle(vec![(lease_ref, ending)]).await?.pop() {
        Some(Ok(Settled::Transition(transition))) => Ok(Some(transition.job)),
        Some(Ok(Settled::Repeated(_))) | Some(Err(EngineError::Refused(..))) | None => Ok(None),
        Some(Err(other)) => Err(other.into()),
    }
}

fn not_queued() -> ApiError {
    bad("State is not queued")
}

fn is_pruned(job: &Job) -> bool {
    let last = job.failures.last().map(|failure| failure.verdict.outcome);
    job.state == JobState::Discarded && matches!(last, Some(Outcome::Stop { reason: Reason::Pruned, .. }))
}

fn waits(job: &Job, id: StateId) -> bool {
    StateId::of(job) == id && matches!(job.state, JobState::Retryable | JobState::Available)
}

fn claimed(job: &Job) -> Value {
    let text = |name: &str| meta(job, name).unwrap_or_default();
    let args: Vec<Value> = serde_json::from_str(body::args(&job.spec.body)).unwrap_or_default();
    let created = job.failures.iter().rfind(|failure| failure.generation == job.generation);
    let created = created.map_or(job.times.created, |failure| failure.at);
    json!({
        "state_id": StateId::of(job).to_string(),
        "node_name": text("node"),
        "identifier": text("identifier"),
        "inputs": args.into_iter().next().unwrap_or_else(|| json!({})),
        "created_at": rfc3339(created),
    })
}

/// What the run of a state has noted on its job.
fn meta(job: &Job, name: &str) -> Option<String> {
    let body: Value = serde_json::from_slice(&job.spec.body).ok()?;
    Some(body.get("meta")?.get(name)?.as_str()?.to_owned())
}

/// Milliseconds since 1970.
const fn ms(at: Moment) -> i64 {
    at.micros().div_euclid(1_000)
}

/// A text, cut to so many bytes.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}
