//! Open Job Spec over HTTP: levels 0 and 1, and what is cheap beyond.

mod about;
mod admin;
mod body;
mod dead;
mod envelope;
mod events;
mod failure;
mod fetch;
mod heartbeat;
mod inbox;
mod intake;
mod jobs;
mod lists;
mod names;
mod policies;
mod progress;
mod queues;
mod schedule;
mod settle;

pub(crate) use policies::Policies;

use crate::app::App;
use crate::fault::{Code, Fault};
use axum::Router;
use axum::http::Uri;
use axum::routing::{delete, get, post};
use std::sync::Arc;

/// All paths.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/ojs/v1/health", get(about::health))
        .route("/ojs/v1/errors/{code}", get(about::error))
        .route("/ojs/v1/jobs", post(jobs::enqueue))
        .route("/ojs/v1/jobs/batch", post(jobs::enqueue_batch))
        .route("/ojs/v1/jobs/{id}", get(jobs::show).delete(jobs::cancel))
        .route("/ojs/v1/jobs/{id}/activate", post(jobs::activate))
        .route("/ojs/v1/jobs/{id}/progress", get(progress::get).put(progress::put))
        .route("/ojs/v1/workers/fetch", post(fetch::fetch))
        .route("/ojs/v1/workers/ack", post(settle::ack))
        .route("/ojs/v1/workers/nack", post(settle::nack))
        .route("/ojs/v1/workers/settle", post(settle::settle_many))
        .route("/ojs/v1/workers/heartbeat", post(heartbeat::heartbeat))
        .route("/ojs/v1/workers/progress", post(progress::report))
        .route("/ojs/v1/queues", get(queues::list))
        .route("/ojs/v1/queues/{name}/stats", get(queues::stats))
        .route("/ojs/v1/queues/{name}/pause", post(queues::pause))
        .route("/ojs/v1/queues/{name}/resume", post(queues::resume))
        .route("/ojs/v1/dead-letter", get(dead::list).delete(dead::delete_many))
        .route("/ojs/v1/dead-letter/stats", get(dead::stats))
        .route("/ojs/v1/dead-letter/retry", post(dead::retry_many))
        .route("/ojs/v1/dead-letter/{id}", delete(dead::delete).get(dead::show))
        .route("/ojs/v1/dead-letter/{id}/retry", post(dead::retry))
        .route("/ojs/v1/events", get(events::list))
        .route("/ojs/v1/admin/jobs", get(admin::jobs))
        .route("/ojs/v1/admin/jobs/{id}/retry", post(admin::retry))
        .route("/ojs/manifest", get(about::manifest))
        .route("/health", get(about::health))
        .fallback(no_such_path)
}

async fn no_such_path(uri: Uri) -> Fault {
    Fault::new(Code::NotFound, format!("there is no path {}; GET /ojs/manifest tells what there is", uri.path()))
}
