//! Queues with their numbers.

use super::history::latency;
use crate::access::Caller;
use crate::api_error::ApiError;
use crate::app::App;
use crate::ojs::lists::{Pages, named_page};
use crate::ojs::names::queue_in_path;
use crate::ojs::queues::{changed_at, counts, no_such_queue, pause_named, queues_for, resume_named, status};
use crate::request::{Payload, Query};
use crate::response::JsonResponse;
use axum::extract::{Path, State};
use redrive_ojs::time::rfc3339;
use redrive_store::Queue;
use serde_json::{Value, json};
use std::sync::Arc;

/// How many minutes latencies are of.
const LATELY: i64 = 5;

/// `GET /admin/queues`.
pub(crate) async fn queues(
    State(app): State<Arc<App>>,
    caller: Caller,
    query: Query,
) -> Result<JsonResponse, ApiError> {
    let queues = queues_for(&app, &caller).await?;
    let (page, shown) = named_page(&query, Pages::Numbered, &app.limits, &queues, |queue| &queue.name)?;
    let items: Vec<Value> = page.iter().map(|queue| shown_queue(&app, queue)).collect();
    let mut out = b"{\"items\":".to_vec();
    out.extend_from_slice(Value::from(items).to_string().as_bytes());
    shown.push(&mut out);
    out.push(b'}');
    Ok(JsonResponse::ok(out))
}

/// `GET /admin/queues/{name}`: the same for one queue, and what applies to its jobs.
pub(crate) async fn queue(State(app): State<Arc<App>>, Path(name): Path<String>) -> Result<JsonResponse, ApiError> {
    queue_in_path(&name, &app.limits)?;
    let queues = app.engine.queues().await?;
    let Some(queue) = queues.iter().find(|queue| *queue.name == *name) else {
        return Err(no_such_queue(&app, &name).await?);
    };
    let mut shown = shown_queue(&app, queue);
    let retention = app.engine.settings().retention;
    shown["configuration"] = json!({
        "retention": {
            "completed": format!("PT{}S", retention.finished.secs()),
            "discarded": format!("PT{}S", retention.finished.secs()),
            "dead_letter": format!("PT{}S", retention.dead.secs()),
        },
    });
    Ok(JsonResponse::json(&shown))
}

fn shown_queue(app: &App, queue: &Queue) -> Value {
    let throughput = app.engine.throughput(Some(&queue.name));
    let lately = app.engine.lately(&queue.name, LATELY);
    json!({
        "name": &*queue.name,
        "state": status(queue.paused),
        "paused": queue.paused,
        "counts": counts(Some(queue)),
        "throughput": {
            "processed_per_minute": throughput.completed,
            "failed_per_minute": throughput.failed,
        },
        "latency_ms": {
            "p50": latency(&lately, 0.5),
            "p95": latency(&lately, 0.95),
            "p99": latency(&lately, 0.99),
        },
        "created_at": rfc3339(queue.created),
    })
}

/// `POST /admin/queues/{name}/pause`.
pub(crate) async fn pause(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    Ok(changed(&app, &pause_named(&app, &name, &payload).await?))
}

/// `POST /admin/queues/{name}/resume`.
pub(crate) async fn resume(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    payload: Payload,
) -> Result<JsonResponse, ApiError> {
    Ok(changed(&app, &resume_named(&app, &name, &payload).await?))
}

fn changed(app: &App, queue: &Queue) -> JsonResponse {
    JsonResponse::json(&json!({
        "name": &*queue.name,
        "paused": queue.paused,
        "state": status(queue.paused),
        changed_at(queue.paused): rfc3339(app.engine.now()),
    }))
}
