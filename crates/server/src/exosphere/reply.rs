//! Requests as JSON values, and refusals with `detail`.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::request::Payload;
use axum::extract::{FromRequest, Request};
use redrive_exosphere::FieldError;
use serde_json::Value;
use std::sync::Arc;

/// The body of a request.
pub(super) struct Document(pub(super) Value);

impl FromRequest<Arc<App>> for Document {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let payload = Payload::from_request(request, app).await?;
        let value = serde_json::from_slice(payload.bytes());
        value.map(Self).map_err(|error| fields(&[FieldError::not_json(&error.to_string())]))
    }
}

/// Fields that are wrong: 422 with a list.
pub(super) fn fields(errors: &[FieldError]) -> ApiError {
    let listed: Vec<Value> = errors.iter().map(FieldError::to_json).collect();
    ApiError::new(Code::ValidationError, "the request is not valid").with_details(listed.into())
}

/// What does not fit for another reason: 400.
pub(super) fn bad(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::InvalidRequest, message.into())
}

pub(super) fn missing(message: impl Into<String>) -> ApiError {
    ApiError::new(Code::NotFound, message.into())
}

/// What is stored and cannot be read.
pub(super) fn damaged(why: String) -> ApiError {
    ApiError::new(Code::InternalError, why)
}
