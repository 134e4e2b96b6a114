//! Whether the server lives, and whether it is ready: what load balancers and supervisors ask.
//!
//! A server that lives answers; only a restart helps one that does not. A server is ready if a write would be flushed.
//! What an operator should see to, but does not keep it from writing, is named and does not make it unready: else one
//! step of the clock, or a maintenance, would take all servers from their clients at once.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::metrics::TEXT_FORMAT;
use crate::response::JsonResponse;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use redrive_policy::{Moment, Span};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

/// How long the answer of the store counts: every caller may ask whether the server is ready.
const FRESH: Duration = Duration::from_secs(1);
/// How long a write may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// For how long a step of the wall clock is named.
const STEP_NAMED: Span = Span::from_secs(900);

/// What the last write found out, and when.
#[derive(Debug, Default)]
pub(crate) struct Probe(Mutex<Option<(Instant, Result<(), String>)>>);

impl Probe {
    /// Whether a write is flushed at this moment, or was a moment ago.
    async fn outcome(&self, app: &App) -> Result<(), String> {
        // Those that ask meanwhile wait for the same write.
        let mut last = self.0.lock().await;
        if let Some((at, outcome)) = &*last
            && at.elapsed() < FRESH
        {
            return outcome.clone();
        }
        let outcome = match timeout(PROBE_TIMEOUT, app.engine.probe()).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err(format!("a write was not flushed within {} s", PROBE_TIMEOUT.as_secs())),
        };
        last.insert((Instant::now(), outcome)).1.clone()
    }
}

/// Something that an operator should know.
struct Reason {
    code: &'static str,
    /// Whether the server is not ready because of it.
    blocks: bool,
    /// For callers with a key: it may name places on this machine.
    message: String,
}

impl Reason {
    fn new(code: &'static str, blocks: bool, message: impl Into<String>) -> Self {
        Self { code, blocks, message: message.into() }
    }
}

/// `GET /live`.
pub(crate) async fn live() -> JsonResponse {
    JsonResponse::json(&json!({ "status": "ok" }))
}

/// `GET /ready`.
pub(crate) async fn ready(State(app): State<Arc<App>>, headers: HeaderMap) -> JsonResponse {
    let reasons = reasons(&app).await;
    let insider = app.guard.knows(&app.engine, &headers);
    let shown = |reason: &Reason| {
        let mut shown = json!({ "code": reason.code, "blocks": reason.blocks });
        if insider {
            shown["message"] = Value::from(&*reason.message);
        }
        shown
    };
    let (status, word) = if is_blocked(&reasons) {
        (StatusCode::SERVICE_UNAVAILABLE, "not_ready")
    } else if reasons.is_empty() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::OK, "degraded")
    };
    let reasons: Vec<Value> = reasons.iter().map(shown).collect();
    JsonResponse::json(&json!({ "status": word, "reasons": reasons })).status(status)
}

fn is_blocked(reasons: &[Reason]) -> bool {
    reasons.iter().any(|reason| reason.blocks)
}

async fn reasons(app: &App) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if *app.stopping.borrow() {
        reasons.push(Reason::new("stopping", true, "the server is stopping"));
    }
    if let Err(why) = app.probe.outcome(app).await {
        reasons.push(Reason::new("store_does_not_write", true, why));
    }
    if let Some(local) = app.local.get() {
        let status = local.store.status();
        if let Some(why) = status.waiting {
            reasons.push(Reason::new("store_waits", true, why));
        }
        if let Some(Err(why)) = status.compaction {
            reasons.push(Reason::new("compaction_fails", false, why.to_string()));
        }
    }
    if let Some(maintenance) = app.engine.maintenance() {
        let why = maintenance.reason.unwrap_or_else(|| "no reason is given".to_owned());
        reasons.push(Reason::new("maintenance", false, format!("no jobs are claimed: {why}")));
    }
    let (wall, now) = (app.engine.wall(), app.engine.now());
    if let Some(step) = wall.last {
        let at = Moment::from_micros(step.at.micros().saturating_add(wall.ahead_us));
        if now.since(at) < STEP_NAMED {
            let seconds = step.by_us as f64 / 1e6;
            reasons.push(Reason::new("clock_stepped", false, format!("the wall clock was set by {seconds} s")));
        }
    }
    reasons
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Result<Response, ApiError> {
    let is_ready = !is_blocked(&reasons(&app).await);
    let sample = app.sample(is_ready).await;
    let text =
        app.metrics.text(&sample).await.map_err(|error| ApiError::new(Code::InternalError, error.to_string()))?;
    let mut response = Response::new(Body::from(text));
    // Whoever asks for nothing but text gets the type that it has asked for.
    let plain = headers.get(header::ACCEPT).is_some_and(|accept| accept == "text/plain");
    let media = HeaderValue::from_static(if plain { "text/plain" } else { TEXT_FORMAT });
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    Ok(response)
}
