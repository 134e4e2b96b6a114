//! Answers of handlers. What all answers have in common is added at the edge.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// JSON text with a status.
#[derive(Debug)]
pub(crate) struct JsonResponse {
    status: StatusCode,
    body: Vec<u8>,
    location: Option<HeaderValue>,
}

impl JsonResponse {
    pub(crate) const fn ok(body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, body, location: None }
    }

    pub(crate) fn json(value: &serde_json::Value) -> Self {
        Self::ok(value.to_string().into_bytes())
    }

    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The path of what was created.
    pub(crate) fn location(self, path: &str) -> Self {
        Self { location: HeaderValue::from_str(path).ok(), ..self }
    }
}

impl IntoResponse for JsonResponse {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        if let Some(location) = self.location {
            response.headers_mut().insert(header::LOCATION, location);
        }
        response
    }
}
