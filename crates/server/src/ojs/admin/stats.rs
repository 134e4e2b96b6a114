//! The whole server in numbers.

use crate::api_error::ApiError;
use crate::app::App;
use crate::response::JsonResponse;
use axum::extract::State;
use redrive_store::{RESERVED_QUEUES, State as JobState};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// `GET /admin/stats`, from the counters of the store.
pub(crate) async fn stats(State(app): State<Arc<App>>) -> Result<JsonResponse, ApiError> {
    let queues = app.engine.queues().await?;
    let count = |state| queues.iter().map(|queue| queue.count(state)).sum::<usize>();
    let jobs: Map<String, Value> =
        JobState::ALL.into_iter().map(|state| (state.name().to_owned(), count(state).into())).collect();
    let own = queues.iter().filter(|queue| !queue.name.starts_with(RESERVED_QUEUES)).count();
    let throughput = app.engine.throughput(None);
    let now = app.engine.now();
    Ok(JsonResponse::json(&json!({
        "queues": own,
        "workers": app.engine.workers().iter().filter(|worker| !worker.is_stale(now)).count(),
        "jobs": jobs,
        "throughput": {
            "processed_per_minute": throughput.completed,
            "failed_per_minute": throughput.failed,
        },
        "streams": app.limits.streams - app.streams.available_permits(),
        "uptime_seconds": app.engine.uptime().secs() as u64,
    })))
}
