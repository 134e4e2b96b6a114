//! The server about itself: what it can do, whether it is well, and what its errors mean.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::edge::names_version;
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use redrive_engine::Wall;
use redrive_ojs::time::rfc3339;
use redrive_policy::Moment;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) async fn manifest(State(app): State<Arc<App>>, headers: HeaderMap) -> JsonResponse {
    // Client libraries, which name the version, read all capabilities as true or false.
    let unique_jobs = match names_version(&headers) {
        true => Value::from(true),
        false => json!({ "strength": "strong", "mechanism": MECHANISM }),
    };
    JsonResponse::json(&json!({
        "specversion": "1.0",
        "ojs_version": "1.0",
        "implementation": { "name": "redrive", "version": VERSION, "language": "rust" },
        "conformance_level": 4,
        "protocols": ["http"],
        "backend": app.backend,
        "capabilities": {
            "batch_enqueue": true,
            "cron_jobs": true,
            "dead_letter": true,
            "delayed_jobs": true,
            "job_ttl": true,
            "pause_resume": true,
            "priority_queues": true,
            "rate_limiting": true,
            "schema_validation": false,
            "unique_jobs": unique_jobs,
            "workflows": true,
        },
        "extensions": EXTENSIONS,
        "endpoints": { "base_url": "/ojs/v1", "manifest": "/ojs/manifest", "health": "/ojs/v1/health" },
    }))
}

/// How it is made sure that unique jobs are.
const MECHANISM: &str = "the store looks for the key in the atomic step that stores the job, under a lock of the key";

/// What goes beyond the specification.
const EXTENSIONS: [&str; 14] = [
    "urn:ojs:ext:webhooks",
    "urn:ojs:ext:progress",
    "urn:ojs:ext:admin-api",
    "urn:ojs:ext:graceful-shutdown",
    "urn:redrive:ext:event-streams",
    "urn:redrive:ext:long-poll",
    "urn:redrive:ext:settle-many",
    "urn:redrive:ext:lease-tokens",
    "urn:redrive:ext:retry-after",
    "urn:redrive:ext:snooze",
    "urn:redrive:ext:policy-dialects",
    "urn:redrive:ext:worker-policies",
    "urn:redrive:ext:explanations",
    "urn:redrive:ext:idempotency-key",
];

pub(crate) async fn health(State(app): State<Arc<App>>, headers: HeaderMap) -> JsonResponse {
    let asked = Instant::now();
    let answer = app.engine.next_sweep().await;
    let latency_ms = asked.elapsed().as_secs_f64() * 1_000.0;
    let (status, word, backend) = match &answer {
        Ok(_) => (StatusCode::OK, "ok", "ok"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "degraded", "unhealthy"),
    };
    let mut health = json!({
        "status": word,
        "version": VERSION,
        "uptime_seconds": app.engine.uptime().secs() as u64,
        "backend": { "type": app.backend, "status": backend, "latency_ms": latency_ms },
        "clock": clock(app.engine.wall(), app.engine.now()),
    });
    if app.engine.maintenance().is_some() {
        health["maintenance"] = true.into();
    }
    if answer.is_ok() {
        // What Exosphere's clients look for.
        health["message"] = "OK".into();
    }
    let insider = app.guard.knows(&app.engine, &headers);
    if let Some(local) = app.local.get() {
        health["store"] = local.health(insider);
    }
    if let (Err(error), true) = (answer, insider) {
        health["backend"]["message"] = Value::from(error.to_string());
    }
    JsonResponse::json(&health).status(status)
}

/// How the wall clock relates to the time by which leases and delays are measured: whether it was set since the
/// start, and by how much in all.
fn clock(wall: Wall, now: Moment) -> Value {
    let seconds = |micros: i64| micros as f64 / 1e6;
    let mut clock = json!({
        "time": rfc3339(now),
        "wall_clock_ahead_seconds": seconds(wall.ahead_us),
        "steps": wall.steps,
    });
    if let Some(step) = wall.last {
        let at = Moment::from_micros(step.at.micros().saturating_add(wall.ahead_us));
        clock["last_step"] = json!({ "at": rfc3339(at), "seconds": seconds(step.by_us) });
    }
    clock
}

/// The page that `docs_url` of an error points to.
pub(crate) async fn error(Path(name): Path<String>) -> Result<JsonResponse, ApiError> {
    let code = Code::ALL.into_iter().find(|code| code.name() == name).ok_or_else(|| {
        let names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        ApiError::new(Code::NotFound, format!("there is no error {name:?}; there are {}", names.join(", ")))
    })?;
    Ok(JsonResponse::json(&json!({
        "code": code.name(),
        "status": code.status().as_u16(),
        "retryable": code.retryable(),
        "hint": code.hint(),
    })))
}
