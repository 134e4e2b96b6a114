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
mod intake;
mod jobs;
mod lists;
mod names;
mod policies;
mod queues;
mod schedule;
mod settle;

pub(crate) use policies::Policies;

use crate::app::App;
use crate::fault::{Code, Fault};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Uri;
use axum::routing::{delete, get, post};
use std::sync::Arc;

/// All paths.
pub(crate) fn routes() -> Router<Arc<App>> {
    let v1 = Router::new()
        .route("/health", get(about::health))
        .route("/errors/{code}", get(about::error))
        .route("/jobs", post(jobs::enqueue))
        .route("/jobs/batch", post(jobs::enqueue_batch))
        .route("/jobs/{id}", get(jobs::show).delete(jobs::cancel))
        .route("/jobs/{id}/activate", post(jobs::activate))
        .route("/workers/fetch", post(fetch::fetch))
        .route("/workers/ack", post(settle::ack))
        .route("/workers/nack", post(settle::nack))
        .route("/workers/settle", post(settle::settle_many))
        .route("/workers/heartbeat", post(heartbeat::heartbeat))
        .route("/queues", get(queues::list))
        .route("/queues/{name}/stats", get(queues::stats))
        .route("/queues/{name}/pause", post(queues::pause))
        .route("/queues/{name}/resume", post(queues::resume))
        .route("/dead-letter", get(dead::list).delete(dead::delete_many))
        .route("/dead-letter/stats", get(dead::stats))
        .route("/dead-letter/retry", post(dead::retry_many))
        .route("/dead-letter/{id}", delete(dead::delete).get(dead::show))
        .route("/dead-letter/{id}/retry", post(dead::retry))
        .route("/events", get(events::list))
        .route("/admin/jobs", get(admin::jobs))
        .route("/admin/jobs/{id}/retry", post(admin::retry));
    Router::new()
        .nest("/ojs/v1", v1)
        .route("/ojs/manifest", get(about::manifest))
        .route("/health", get(about::health))
        .fallback(no_such_path)
        // The limit is the operator's, and is checked where the body is read.
        .layer(DefaultBodyLimit::disable())
}

async fn no_such_path(uri: Uri) -> Fault {
    Fault::new(Code::NotFound, format!("there is no path {}; GET /ojs/manifest tells what there is", uri.path()))
}
