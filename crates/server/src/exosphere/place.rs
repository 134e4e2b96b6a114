//! What the path of a request names.

use super::reply::bad;
use crate::api_error::ApiError;
use crate::app::App;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use redrive_exosphere::check_name;
use std::sync::Arc;

/// The names in a path; those that an endpoint does not have are empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) graph: String,
    pub(super) state: String,
    pub(super) run: String,
    pub(super) page: String,
    pub(super) size: String,
}

impl FromRequestParts<Arc<App>> for Place {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let found = RawPathParams::from_request_parts(parts, app).await;
        let found = found.map_err(|error| bad(format!("the path cannot be read: {error}")))?;
        let mut place = Self::default();
        for (name, value) in &found {
            let field = match name {
                "namespace" => &mut place.namespace,
                "graph" => &mut place.graph,
                "state" => &mut place.state,
                "run" => &mut place.run,
                "page" => &mut place.page,
                "size" => &mut place.size,
                _ => continue,
            };
            value.clone_into(field);
            if let "namespace" | "graph" = name {
                check_name(&format!("the {name}"), value).map_err(bad)?;
            }
        }
        Ok(place)
    }
}
