//! `GET /openapi.json`, and the same as a page under `/docs`.

use super::openapi;
use super::page::{STYLE, page};
use crate::access::OPEN;
use crate::endpoints::Endpoints;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::response::IntoResponse;

/// A browser loads the style sheet of this server for the page, and nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Adds the paths under which the description is read.
pub(crate) fn add(endpoints: Endpoints) -> Endpoints {
    endpoints.get("/openapi.json", OPEN, &[], json).get("/docs", OPEN, &[], docs).get(
        "/docs/style.css",
        OPEN,
        &[],
        style,
    )
}

async fn json() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json"), (X_CONTENT_TYPE_OPTIONS, "nosniff")], openapi())
}

async fn docs() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    (headers, page())
}

async fn style() -> impl IntoResponse {
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (X_CONTENT_TYPE_OPTIONS, "nosniff")], STYLE)
}
