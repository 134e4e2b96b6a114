//! Flows: definitions, runs, their history, and events as they happen.

mod calls;
mod definitions;
mod list;
mod outcome;
mod request;
mod runs;
mod stream;

use crate::access::{Queues, admin, enqueue, read};
use crate::api_error::{ApiError, Code};
use crate::endpoints::Endpoints;
use axum::http::Uri;

/// What its paths begin with.
const BASE: &str = "/flows/";

/// Whether a path is one of flows.
pub(crate) fn is_path(uri: &Uri) -> bool {
    uri.path().starts_with(BASE)
}

/// Adds all paths.
pub(crate) fn add(endpoints: Endpoints) -> Endpoints {
    endpoints
        .get("/flows/v1/definitions", read(Queues::All), list::DEFINITIONS, list::definitions)
        .put("/flows/v1/definitions/{name}", admin(Queues::All), &[], definitions::put)
        .get("/flows/v1/definitions/{name}", read(Queues::All), &["version"], definitions::get)
        .delete("/flows/v1/definitions/{name}", admin(Queues::All), &[], definitions::delete)
        .get("/flows/v1/runs", read(Queues::All), list::RUNS, list::runs)
        .post("/flows/v1/runs", enqueue(Queues::All), &[], runs::start)
        .get("/flows/v1/runs/{id}", read(Queues::All), &[], runs::get)
        .delete("/flows/v1/runs/{id}", enqueue(Queues::All), &[], runs::cancel)
        .get("/flows/v1/runs/{id}/history", read(Queues::All), &["after", "limit"], runs::history)
        .get("/flows/v1/runs/{id}/events", read(Queues::All), &["last_event_id"], stream::open)
}

/// What is stored and cannot be read.
fn damaged(why: String) -> ApiError {
    ApiError::new(Code::InternalError, why)
}
