//! What every request passes on its way in and out: the caller's key, the version of the protocol, the
//! query, the request's id, and the net under handlers that panic.

use crate::access::{self, OPEN};
use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::endpoints::Table;
use crate::exosphere;
use crate::flow;
use crate::request::Query;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

const OJS_VERSION: HeaderName = HeaderName::from_static("ojs-version");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const VERSION: HeaderValue = HeaderValue::from_static("1.0");
const MEDIA: HeaderValue = HeaderValue::from_static("application/openjobspec+json");
/// The same media type with a parameter, for clients that look for `application/json` in it.
const MEDIA_ALIAS: HeaderValue = HeaderValue::from_static("application/openjobspec+json; alias=\"application/json\"");
/// That of flows, which Open Job Spec knows nothing of.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Whether a request names the version of the protocol.
pub(crate) fn names_version(headers: &HeaderMap) -> bool {
    headers.contains_key(OJS_VERSION)
}

/// What the edge knows.
#[derive(Clone)]
pub(crate) struct Edge {
    pub(crate) app: Arc<App>,
    pub(crate) table: Arc<Table>,
}

pub(crate) async fn edge(State(edge): State<Edge>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = request_id(&edge.app, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let response = match exosphere::is_path(request.uri()) {
        true => exosphere_edge(&edge, request, next, &id).await,
        false => ojs_edge(&edge, request, next, id).await,
    };
    let route = route.as_ref().map(MatchedPath::as_str);
    edge.app.metrics.requests.answered(&method, route, response.status(), begun.elapsed());
    response
}

async fn ojs_edge(edge: &Edge, mut request: Request, next: Next, id: HeaderValue) -> Response {
    let app = &*edge.app;
    let media = match names_version(request.headers()) {
        _ if flow::is_path(request.uri()) => JSON,
        true => MEDIA_ALIAS,
        false => MEDIA,
    };
    let response = match admit(edge, &mut request).await {
        Ok(()) => caught(next.run(request)).await.unwrap_or_else(ApiError::into_response),
        Err(error) => error.into_response(),
    };
    let mut response = worded(response, app, &id);
    let headers = response.headers_mut();
    headers.entry(header::CONTENT_TYPE).or_insert(media);
    headers.insert(OJS_VERSION, VERSION);
    headers.insert(REQUEST_ID, id);
    response
}

/// The same for Exosphere's API, which has other headers and other words.
async fn exosphere_edge(edge: &Edge, mut request: Request, next: Next, id: &HeaderValue) -> Response {
    let own_id = exosphere::request_id(&edge.app, request.headers());
    let response = match admit(edge, &mut request).await {
        Ok(()) => caught(next.run(request)).await.unwrap_or_else(ApiError::into_response),
        Err(error) => error.into_response(),
    };
    let mut response = exosphere::worded(response, |error| note_error(&edge.app, error, id));
    response.headers_mut().insert(header::CONTENT_TYPE, exosphere::MEDIA);
    response.headers_mut().insert(exosphere::REQUEST_ID, own_id);
    response.headers_mut().insert(REQUEST_ID, id.clone());
    response
}

/// The id that the caller gave, where it is fit for logs and headers; else a new one.
fn request_id(app: &App, headers: &HeaderMap) -> HeaderValue {
    const LONGEST: usize = 128;
    let fit = |id: &&HeaderValue| {
        (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(|byte| byte.is_ascii_graphic())
    };
    headers.get(REQUEST_ID).filter(fit).cloned().unwrap_or_else(|| {
        HeaderValue::from_str(&app.next_request_id()).unwrap_or(const { HeaderValue::from_static("req") })
    })
}

/// Lets a request pass, with its caller and its query read for the handler.
async fn admit(edge: &Edge, request: &mut Request) -> Result<(), ApiError> {
    let app = &*edge.app;
    // With a key, the caller is no page that a browser was lured into loading.
    if app.guard.is_open() || app.hosts.are_named() {
        app.hosts.admit(request).map_err(|host| {
            let message = format!(
                "found the host {host:?}; this server is called as localhost, by its address, or by a name of the \
                 setting hosts"
            );
            ApiError::new(Code::Misdirected, message)
        })?;
    }
    let entry = edge.table.entry(request);
    let rule = entry.map(|entry| entry.rule);
    if rule != Some(OPEN) {
        // What is no endpoint tells so only to callers with a key.
        let caller = app.guard.identify(&app.engine, request.headers()).await?;
        request.extensions_mut().insert(caller);
    }
    check_headers(request.headers())?;
    let query = match (request.uri().query(), entry) {
        (Some(text), Some(entry)) => Query::read(text, entry.takes),
        _ => Ok(Query::default()),
    };
    if let Some(rule) = rule {
        access::check(app, request, rule, query.as_ref().ok()).await?;
    }
    request.extensions_mut().insert(query?);
    Ok(())
}

/// Refuses what comes from elsewhere, or in another version of the protocol.
fn check_headers(headers: &HeaderMap) -> Result<(), ApiError> {
    if let Some(origin) = headers.get(header::ORIGIN)
        && !same_origin(origin, headers.get(header::HOST))
    {
        return Err(ApiError::new(Code::Forbidden, "the request comes from a page of another origin"));
    }
    if let Some(version) = headers.get(OJS_VERSION)
        && !matches!(version.as_bytes(), [b'1'] | [b'1', b'.', ..])
    {
        let found = String::from_utf8_lossy(version.as_bytes()).into_owned();
        let message = format!("found OJS-Version {found:?}; allowed are 1 and what starts with 1.");
        return Err(ApiError::new(Code::Unsupported, message));
    }
    Ok(())
}

/// A page may call the server that it came from. Browsers name the origin of every request that could
/// change something; programs name none.
fn same_origin(origin: &HeaderValue, host: Option<&HeaderValue>) -> bool {
    let authority = |origin: &str| origin.split_once("://").map(|(_, authority)| authority.to_owned());
    let origin = origin.to_str().ok().and_then(authority);
    origin.is_some() && origin.as_deref() == host.and_then(|host| host.to_str().ok())
}

/// Runs a handler; one that panics is a fault, and the server goes on.
async fn caught(handler: impl Future<Output = Response>) -> Result<Response, ApiError> {
    let mut handler = pin!(handler);
    std::future::poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| handler.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(_) => Poll::Ready(Err(ApiError::new(Code::InternalError, "the handler of this request panicked"))),
    })
    .await
}

/// Counts an error, and logs it where a client cannot repair it.
fn note_error(app: &App, error: &ApiError, id: &HeaderValue) {
    app.metrics.requests.failed(error.code.name());
    if error.code.status().is_server_error() {
        let (id, code, message) = (id.to_str().unwrap_or_default(), error.code.name(), &error.message);
        tracing::error!(request_id = id, code, "request {id} failed: {code}: {message}");
    }
}

/// Gives faults their words.
fn worded(mut response: Response, app: &App, id: &HeaderValue) -> Response {
    let error = match response.extensions_mut().remove::<Arc<ApiError>>() {
        Some(error) => error,
        None if response.status() == StatusCode::METHOD_NOT_ALLOWED => {
            Arc::new(ApiError::new(Code::MethodNotAllowed, "the path exists, but not for this method"))
        }
        // The router itself refuses only paths that are no text.
        None if response.status().is_client_error() => {
            Arc::new(ApiError::new(Code::InvalidRequest, "the path of the request is not UTF-8"))
        }
        None => return response,
    };
    note_error(app, &error, id);
    let id = id.to_str().unwrap_or_default();
    *response.status_mut() = error.code.status();
    *response.body_mut() = Body::from(format!("{{\"error\":{}}}", error.to_json(id)));
    response.headers_mut().remove(header::CONTENT_LENGTH);
    if let Some(secs) = error.retry_after_secs {
        response.headers_mut().insert(header::RETRY_AFTER, secs.into());
    }
    if let Some(full) = &error.full {
        response.headers_mut().insert("x-ojs-queue-depth", full.depth.into());
        response.headers_mut().insert("x-ojs-queue-bound", full.bound.into());
    }
    if error.code == Code::Unauthorized {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}
