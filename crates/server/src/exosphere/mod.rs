//! Exosphere's API. Runtimes and programs that use its Python SDK call it without a change.

mod definitions;
mod edge;
mod graphs;
mod nodes;
mod place;
mod reply;
mod runs;
mod secrets;
mod states;

pub(crate) use edge::{MEDIA, REQUEST_ID, request_id, worded};
pub(crate) use runs::{graph_run, jobs_of, listed_run};
pub(crate) use states::WORKER;

use crate::access::{Queues, admin, enqueue, read, work};
use crate::endpoints::Endpoints;
use axum::http::Uri;

/// What its paths begin with.
const BASE: &str = "/v0/";

/// Whether a path is one of Exosphere's.
pub(crate) fn is_path(uri: &Uri) -> bool {
    uri.path().starts_with(BASE)
}

/// Adds all paths. Exosphere redirects lists without the last slash; here both forms are answered.
pub(crate) fn add(endpoints: Endpoints) -> Endpoints {
    endpoints
        .get("/v0/namespaces", read(Queues::All), &[], nodes::namespaces)
        .put("/v0/namespace/{namespace}/nodes/", work(Queues::All), &[], nodes::register)
        .put("/v0/namespace/{namespace}/nodes", work(Queues::All), &[], nodes::register)
        .get("/v0/namespace/{namespace}/nodes/", read(Queues::All), &[], nodes::list)
        .get("/v0/namespace/{namespace}/nodes", read(Queues::All), &[], nodes::list)
        .get("/v0/namespace/{namespace}/graphs/", read(Queues::All), &[], graphs::list)
        .get("/v0/namespace/{namespace}/graphs", read(Queues::All), &[], graphs::list)
        .put("/v0/namespace/{namespace}/graph/{graph}", admin(Queues::All), &[], graphs::put)
        .get("/v0/namespace/{namespace}/graph/{graph}", read(Queues::All), &[], graphs::get)
        .post("/v0/namespace/{namespace}/graph/{graph}/trigger", enqueue(Queues::All), &[], graphs::trigger)
        .post("/v0/namespace/{namespace}/states/enqueue", work(Queues::All), &[], states::enqueue)
        .post("/v0/namespace/{namespace}/state/{state}/executed", work(Queues::All), &[], states::executed)
        .post("/v0/namespace/{namespace}/state/{state}/errored", work(Queues::All), &[], states::errored)
        .post("/v0/namespace/{namespace}/state/{state}/prune", work(Queues::All), &[], states::prune)
        .post("/v0/namespace/{namespace}/state/{state}/re-enqueue-after", work(Queues::All), &[], states::enqueue_again)
        .get("/v0/namespace/{namespace}/state/{state}/secrets", work(Queues::All), &[], secrets::get)
        .post("/v0/namespace/{namespace}/state/{state}/manual-retry", admin(Queues::All), &[], runs::retry)
        .get("/v0/namespace/{namespace}/runs/{page}/{size}", read(Queues::All), &[], runs::list)
        .get("/v0/namespace/{namespace}/states/run/{run}/graph", read(Queues::All), &[], runs::structure)
        .get("/v0/namespace/{namespace}/graph/{graph}/run/{run}/node/{state}", read(Queues::All), &[], runs::state)
}
