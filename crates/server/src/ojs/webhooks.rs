//! Webhooks: subscriptions to events, and their deliveries.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use crate::webhooks::{Attempt, NoAnswer, cancel_all, endpoint};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use redrive_engine::{EngineError, Randomness, RunRequest, SystemRandomness};
use redrive_ojs::time::rfc3339;
use redrive_ojs::webhooks::{
    Definition, Subscription, SubscriptionRequest, WEBHOOK, delivery_id, delivery_of, delivery_queue, payload, signals,
    subscription_id, subscription_of,
};
use redrive_policy::Problem;
use redrive_store::{
    Blob, Filter, Job, Page, RESERVED_QUEUES, Redrive, Run, RunFilter, RunId, Signal, State as JobState,
};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Instant;
use tracing::info;

/// What a list of deliveries is asked for with.
pub(super) const DELIVERIES: &[&str] = &["subscription_id", "status", "limit"];
/// How many subscriptions there may be.
const MOST_SUBSCRIPTIONS: usize = 100;
/// How many deliveries a list has where the caller does not say.
const DEFAULT: usize = 50;

/// `POST /webhooks/subscriptions`. This is the only answer with the secret, besides that of a rotation.
pub(crate) async fn create(State(app): State<Arc<App>>, payload: Payload) -> Result<JsonResponse, ApiError> {
    let definition = request(&app, |request| request.create(&payload.members()?).map_err(ApiError::invalid))?;
    if all(&app).await?.len() >= MOST_SUBSCRIPTIONS {
        let message = format!("there are {MOST_SUBSCRIPTIONS} subscriptions already, the most that are allowed");
        return Err(ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "too_many_subscriptions" })));
    }
    let secret = new_secret();
    let state = Blob::from(Subscription::new(definition, secret.clone()).write());
    let run = app.engine.start_run(RunRequest { id: None, program: WEBHOOK, state, key: None }).await?;
    let id = subscription_id(run.id);
    info!(subscription = id, "webhook {id} was created");
    let mut answer = shown(&run)?;
    answer["secret"] = secret.into();
    let location = format!("/ojs/v1/webhooks/subscriptions/{id}");
    Ok(JsonResponse::json(&answer).status(StatusCode::CREATED).location(&location))
}

/// `GET /webhooks/subscriptions`, the newest first.
pub(crate) async fn list(State(app): State<Arc<App>>) -> Result<JsonResponse, ApiError> {
    let all: Vec<Value> = all(&app).await?.iter().map(shown).collect::<Result<_, _>>()?;
    Ok(JsonResponse::json(&json!({ "subscriptions": all, "total": all.len() })))
}

/// `GET /webhooks/subscriptions/{id}`.
pub(crate) async fn show(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    Ok(JsonResponse::json(&shown(&find(&app, &id).await?)?))
}

/// `PATCH /webhooks/subscriptions/{id}`.
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    let run = find(&app, &id).await?;
    let before = read(&run)?.definition;
    let new = request(&app, |request| request.change(&payload.members()?, before).map_err(ApiError::invalid))?;
    let body = serde_json::to_vec(&new).map_err(|error| ApiError::new(Code::InternalError, error))?;
    let run = tell(&app, run.id, signals::REPLACE, body).await?;
    info!(subscription = id, "webhook {id} was changed");
    Ok(JsonResponse::json(&shown(&run)?))
}

/// `DELETE /webhooks/subscriptions/{id}`. Deliveries that have not ended are cancelled.
pub(crate) async fn delete(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let run = find(&app, &id).await?;
    tell(&app, run.id, signals::DELETE, Vec::new()).await?;
    cancel_all(&app, run.id).await?;
    info!(subscription = id, "webhook {id} was deleted");
    Ok(JsonResponse::json(&json!({ "deleted": true, "id": id })))
}

/// `POST /webhooks/subscriptions/{id}/rotate-secret`.
pub(crate) async fn rotate(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let (run, secret) = (find(&app, &id).await?, new_secret());
    let run = tell(&app, run.id, signals::ROTATE, secret.clone().into_bytes()).await?;
    info!(subscription = id, "the secret of webhook {id} was replaced");
    let mut answer = shown(&run)?;
    answer["secret"] = secret.into();
    Ok(JsonResponse::json(&answer))
}

/// `POST /webhooks/subscriptions/{id}/test`: sends one request now, and answers what came of it.
pub(crate) async fn test(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let run = find(&app, &id).await?;
    let (subscription, now) = (read(&run)?, app.engine.now());
    let random = SystemRandomness::default();
    let unique = RunId::new(now, u128::from(random.bits()) << 64 | u128::from(random.bits()));
    let body = json!({
        "specversion": "1.0", "id": format!("evt_{unique}"), "type": "webhook.test", "source": "/ojs/v1",
        "time": rfc3339(now), "subject": id, "data": { "message": "ping" },
    });
    let body = body.to_string();
    let delivery = format!("del_{unique}");
    let attempt = Attempt { run: run.id, event_type: "webhook.test", delivery, body: &body };
    let begun = Instant::now();
    let answer = attempt.send(&app, &subscription).await;
    let took = begun.elapsed().as_millis() as u64;
    Ok(JsonResponse::json(&match answer {
        Ok(answer) => json!({
            "success": answer.status.is_success(),
            "status_code": answer.status.as_u16(),
            "response_time_ms": took,
            "response_body": answer.body,
        }),
        Err(NoAnswer::Failed(why) | NoAnswer::NotAllowed(why)) => {
            json!({ "success": false, "response_time_ms": took, "error": why })
        }
    }))
}

/// `GET /webhooks/deliveries`, the newest first, as long as they are stored.
pub(crate) async fn deliveries(State(app): State<Arc<App>>, query: Query) -> Result<JsonResponse, ApiError> {
    let mut problems = Vec::new();
    let limit = query.number("limit", DEFAULT, app.limits.page, &mut problems).max(1);
    let states = states(query.get("status"), &mut problems);
    if !problems.is_empty() {
        return Err(ApiError::invalid(problems));
    }
    let queues: Vec<Arc<str>> = match query.get("subscription_id") {
        Some(id) => vec![delivery_queue(find(&app, id).await?.id)],
        None => {
            let queues = app.engine.queues().await?.into_iter().map(|queue| queue.name);
            queues.filter(|name| name.starts_with(RESERVED_QUEUES)).collect()
        }
    };
    let mut jobs: Vec<Job> = Vec::new();
    let mut has_more = false;
    for queue in queues {
        for state in states {
            let filter = Filter { queue: Some(Arc::clone(&queue)), state: *state, ..Filter::default() };
            let listed = app.engine.list(filter, Page::new(0, limit)).await?;
            has_more |= listed.next.is_some();
            jobs.extend(listed.jobs);
        }
    }
    jobs.sort_by_key(|job| Reverse(job.id));
    has_more |= jobs.len() > limit;
    jobs.truncate(limit);
    let deliveries: Vec<Value> = jobs.iter().map(shown_delivery).collect();
    Ok(JsonResponse::json(&json!({ "deliveries": deliveries, "has_more": has_more })))
}

/// `GET /webhooks/deliveries/{id}`, with the event that it carries.
pub(crate) async fn show_delivery(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<JsonResponse, ApiError> {
    let job = find_delivery(&app, &id).await?;
    let mut shown = shown_delivery(&job);
    if let Ok(payload) = payload(&job) {
        shown["event"] = serde_json::from_str(payload.text).unwrap_or_default();
    }
    Ok(JsonResponse::json(&shown))
}

/// `POST /webhooks/deliveries/{id}/retry`: a delivery that has ended is sent again, under the same id.
pub(crate) async fn retry(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<JsonResponse, ApiError> {
    let job = find_delivery(&app, &id).await?;
    let transition = app.engine.redrive(job.id, Redrive::default()).await?;
    info!(delivery = id, "delivery {id} is sent again");
    Ok(JsonResponse::json(&shown_delivery(&transition.job)))
}

/// `DELETE /webhooks/deliveries/{id}`: drops a delivery.
pub(crate) async fn drop_delivery(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<JsonResponse, ApiError> {
    let job = find_delivery(&app, &id).await?;
    if !job.state.is_terminal() {
        app.engine.cancel(job.id).await?;
    }
    app.engine.remove(job.id).await?;
    Ok(JsonResponse::json(&json!({ "deleted": true, "id": id })))
}

fn request(
    app: &App,
    read: impl FnOnce(SubscriptionRequest<'_>) -> Result<Definition, ApiError>,
) -> Result<Definition, ApiError> {
    let check_url = |url: &str| endpoint(url, app.webhooks.settings()).map(drop);
    read(SubscriptionRequest { engine: &app.engine, limits: app.limits.of_jobs(), check_url: &check_url })
}

/// A secret with 256 random bits.
fn new_secret() -> String {
    let random = SystemRandomness::default();
    let words: Vec<String> = (0..4).map(|_| format!("{:016x}", random.bits())).collect();
    format!("whsec_{}", words.concat())
}

async fn all(app: &App) -> Result<Vec<Run>, ApiError> {
    let filter = RunFilter { program: Some(WEBHOOK.into()), ended: Some(false), ..RunFilter::default() };
    Ok(app.engine.list_runs(filter, 10 * MOST_SUBSCRIPTIONS).await?)
}

async fn find(app: &App, text: &str) -> Result<Run, ApiError> {
    let missing = || ApiError::new(Code::NotFound, format!("there is no subscription \"{text}\""));
    let id = subscription_of(text).ok_or_else(missing)?;
    match app.engine.run(id).await {
        Ok(run) if *run.program == *WEBHOOK && run.end.is_none() => Ok(run),
        Ok(_) | Err(EngineError::RefusedRun(..)) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}

async fn find_delivery(app: &App, text: &str) -> Result<Job, ApiError> {
    let missing = || ApiError::new(Code::NotFound, format!("there is no delivery \"{text}\""));
    let id = delivery_of(text).ok_or_else(missing)?;
    match app.engine.job(id).await {
        Ok(job) if job.spec.queue.starts_with(RESERVED_QUEUES) => Ok(job),
        Ok(_) | Err(EngineError::Refused(..)) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}

async fn tell(app: &App, id: RunId, signal: &str, body: Vec<u8>) -> Result<Run, ApiError> {
    Ok(app.engine.signal_run(id, Signal { name: signal.into(), body: Blob::from(body) }).await?)
}

fn read(run: &Run) -> Result<Subscription, ApiError> {
    Subscription::read(&run.state).map_err(|why| ApiError::new(Code::InternalError, why))
}

/// A subscription as it is returned, without its secrets.
fn shown(run: &Run) -> Result<Value, ApiError> {
    let Subscription { definition, disabled, deliveries, outstanding, delivered, dead, lost, .. } = read(run)?;
    let mut shown = json!({
        "id": subscription_id(run.id),
        "url": definition.url,
        "events": definition.events,
        "active": definition.active,
        "timeout_ms": definition.timeout_ms,
        "created_at": rfc3339(run.created),
        "deliveries": {
            "total": deliveries, "outstanding": outstanding, "delivered": delivered, "dead": dead, "lost_events": lost,
        },
    });
    for (key, names) in [("queues", definition.queues), ("job_types", definition.job_types)] {
        if !names.is_empty() {
            shown["filter"][key] = names.into();
        }
    }
    for (key, value) in [("metadata", definition.metadata), ("retry", definition.retry)] {
        if let Some(value) = value {
            shown[key] = serde_json::from_str(value.get()).unwrap_or_default();
        }
    }
    if let Some(why) = disabled {
        shown["disabled_reason"] = why.into();
    }
    Ok(shown)
}

fn shown_delivery(job: &Job) -> Value {
    let run = job.spec.queue.strip_prefix(RESERVED_QUEUES).unwrap_or_default();
    let mut shown = json!({
        "id": delivery_id(job.id),
        "subscription_id": format!("sub_{run}"),
        "status": status(job.state),
        "attempts": job.attempt,
        "created_at": rfc3339(job.times.created),
    });
    if let Ok(payload) = payload(job) {
        shown["event_type"] = payload.event_type.into();
    }
    if let Some(due) = job.due {
        shown["next_attempt_at"] = rfc3339(due).into();
    }
    if let Some(finished) = job.times.finished {
        shown["finished_at"] = rfc3339(finished).into();
    }
    if let Some(failure) = job.failures.last() {
        shown["last_error"] = serde_json::from_slice(&failure.error).unwrap_or_default();
    }
    if let Some(result) = &job.result {
        shown["result"] = serde_json::from_slice(result).unwrap_or_default();
    }
    shown
}

/// The word for how far a delivery is.
const fn status(state: JobState) -> &'static str {
    match state {
        JobState::Completed => "delivered",
        JobState::Discarded => "dead",
        JobState::Cancelled => "cancelled",
        JobState::Retryable => "retrying",
        JobState::Active => "sending",
        JobState::Scheduled | JobState::Pending | JobState::Available => "waiting",
    }
}

/// The states of a word.
fn states(said: Option<&str>, problems: &mut Vec<Problem>) -> &'static [Option<JobState>] {
    match said {
        None => &[None],
        Some("delivered") => &[Some(JobState::Completed)],
        Some("dead") => &[Some(JobState::Discarded)],
        Some("cancelled") => &[Some(JobState::Cancelled)],
        Some("retrying") => &[Some(JobState::Retryable)],
        Some("sending") => &[Some(JobState::Active)],
        Some("waiting") => &[Some(JobState::Available)],
        Some(other) => {
            let allowed = "delivered, dead, cancelled, retrying, sending or waiting";
            problems.push(Problem::new("?status", format!("\"{other}\""), allowed));
            &[]
        }
    }
}
