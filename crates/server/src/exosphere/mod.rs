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
        .get("/v0/namespaces", &[], nodes::namespaces)
        .put("/v0/namespace/{namespace}/nodes/", &[], nodes::register)
        .put("/v0/namespace/{namespace}/nodes", &[], nodes::register)
        .get("/v0/namespace/{namespace}/nodes/", &[], nodes::list)
        .get("/v0/namespace/{namespace}/nodes", &[], nodes::list)
        .get("/v0/namespace/{namespace}/graphs/", &[], graphs::list)
        .get("/v0/namespace/{namespace}/graphs", &[], graphs::list)
        .put("/v0/namespace/{namespace}/graph/{graph}", &[], graphs::put)
        .get("/v0/namespace/{namespace}/graph/{graph}", &[], graphs::get)
        .post("/v0/namespace/{namespace}/graph/{graph}/trigger", &[], graphs::trigger)
        .post("/v0/namespace/{namespace}/states/enqueue", &[], states::enqueue)
        .post("/v0/namespace/{namespace}/state/{state}/executed", &[], states::executed)
        .post("/v0/namespace/{namespace}/state/{state}/errored", &[], states::errored)
        .post("/v0/namespace/{namespace}/state/{state}/prune", &[], states::prune)
        .post("/v0/namespace/{namespace}/state/{state}/re-enqueue-after", &[], states::enqueue_again)
        .get("/v0/namespace/{namespace}/state/{state}/secrets", &[], secrets::get)
        .post("/v0/namespace/{namespace}/state/{state}/manual-retry", &[], runs::retry)
        .get("/v0/namespace/{namespace}/runs/{page}/{size}", &[], runs::list)
        .get("/v0/namespace/{namespace}/states/run/{run}/graph", &[], runs::structure)
        .get("/v0/namespace/{namespace}/graph/{graph}/run/{run}/node/{state}", &[], runs::state)
}
