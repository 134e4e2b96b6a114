//! What the server was started with, without anything that is secret.

use crate::app::App;
use crate::limits::Limits;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_engine::Settings;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// `GET /admin/system/config`. The names are those of the configuration.
pub(crate) async fn config(State(app): State<Arc<App>>) -> JsonResponse {
    let Settings { lease, timeout, retention, most_releases, max_depth, .. } = app.engine.settings();
    JsonResponse::json(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "backend": app.backend,
        "api_key_required": !app.guard.is_open(),
        "allow_test_directives": app.test_directives,
        "lease_seconds": lease.secs(),
        "timeout_seconds": timeout.map(|timeout| timeout.secs()),
        "releases": most_releases,
        "max_depth": max_depth,
        "retention": { "finished_seconds": retention.finished.secs(), "dead_seconds": retention.dead.secs() },
        "limits": limits(&app.limits),
    }))
}

/// All limits; a new one has to be written here too.
fn limits(limits: &Limits) -> Value {
    let Limits {
        body_bytes,
        args_bytes,
        error_bytes,
        nesting,
        batch,
        workflow,
        fetch,
        page,
        answer_bytes,
        bulk,
        name_bytes,
        connections,
        connections_per_address,
        header_timeout,
        body_timeout,
        write_timeout,
        long_poll,
        long_polls,
        streams,
        stream_events,
        stream_heartbeat,
        stream_idle,
        metric_labels,
        drain,
    } = limits;
    let seconds = Duration::as_secs_f64;
    json!({
        "body_bytes": body_bytes,
        "args_bytes": args_bytes,
        "error_bytes": error_bytes,
        "nesting": nesting,
        "batch": batch,
        "workflow": workflow,
        "fetch": fetch,
        "page": page,
        "answer_bytes": answer_bytes,
        "bulk": bulk,
        "name_bytes": name_bytes,
        "connections": connections,
        "connections_per_address": connections_per_address,
        "header_timeout_seconds": seconds(header_timeout),
        "body_timeout_seconds": seconds(body_timeout),
        "write_timeout_seconds": seconds(write_timeout),
        "long_poll_seconds": seconds(long_poll),
        "long_polls": long_polls,
        "streams": streams,
        "stream_events": stream_events,
        "stream_heartbeat_seconds": seconds(stream_heartbeat),
        "stream_idle_seconds": seconds(stream_idle),
        "metric_labels": metric_labels,
        "drain_seconds": seconds(drain),
    })
}
