//! `GET /openapi.json`.

use super::openapi;
use crate::endpoints::Endpoints;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;

/// Adds the paths under which the description is read.
pub(crate) fn add(endpoints: Endpoints) -> Endpoints {
    endpoints.get("/openapi.json", &[], json)
}

async fn json() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], openapi())
}
