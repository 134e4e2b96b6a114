//! What all answers of Exosphere's API have in common.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const MEDIA: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-exosphere-request-id");

/// The id that the caller gave, where it is a UUID; else a new one.
pub(crate) fn request_id(app: &App, headers: &HeaderMap) -> HeaderValue {
    let is_uuid = |id: &&HeaderValue| {
        let hyphen = |index: usize| matches!(index, 8 | 13 | 18 | 23);
        let fits = |(index, byte): (usize, &u8)| if hyphen(index) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
        id.len() == 36 && id.as_bytes().iter().enumerate().all(fits)
    };
    headers.get(REQUEST_ID).filter(is_uuid).cloned().unwrap_or_else(|| {
        HeaderValue::from_str(&app.next_request_uuid()).unwrap_or(const { HeaderValue::from_static("none") })
    })
}

/// Gives faults their words: a body with `detail`.
pub(crate) fn worded(mut response: Response, log: impl Fn(&ApiError)) -> Response {
    let (status, detail) = match response.extensions_mut().remove::<Arc<ApiError>>() {
        Some(error) => {
            log(&error);
            if let Some(secs) = error.retry_after_secs {
                response.headers_mut().insert(header::RETRY_AFTER, secs.into());
            }
            (error.code.status(), detail(&error))
        }
        None if response.status() == StatusCode::METHOD_NOT_ALLOWED => (response.status(), "Method Not Allowed".into()),
        None if response.status().is_client_error() => (response.status(), "the path is not UTF-8".into()),
        None => return response,
    };
    *response.status_mut() = status;
    *response.body_mut() = Body::from(json!({ "detail": detail }).to_string());
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// The list of wrong fields, or one sentence.
fn detail(error: &ApiError) -> Value {
    match &error.details {
        Some(Value::Array(fields)) => fields.clone().into(),
        _ if error.code == Code::Unauthorized => "Invalid API key".into(),
        _ => error.message.as_str().into(),
    }
}
