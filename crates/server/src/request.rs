//! Reading what a request brings: its body and its query.

use crate::api_error::{ApiError, Code};
use crate::app::App;
use crate::edge::names_version;
use axum::body::{Bytes, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use redrive_ojs::json::{Members, unknown};
use redrive_ojs::time::parse_rfc3339;
use redrive_ojs::{TRACEPARENT, TRACESTATE, TraceContext};
use redrive_policy::{Moment, Problem};
use std::convert::Infallible;
use std::sync::Arc;

/// The body of a request, whole and within the limit.
pub(crate) struct Payload(Bytes);

impl FromRequest<Arc<App>> for Payload {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let limit = app.limits.body_bytes;
        let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if let Some(length) = announced.filter(|length: &u64| *length > limit as u64) {
            return Err(too_large(&format!("of {length} bytes"), limit));
        }
        match tokio::time::timeout(app.limits.body_timeout, to_bytes(request.into_body(), limit)).await {
            Ok(Ok(bytes)) => Ok(Self(bytes)),
            // The body is cut short by the client, or it is too long; only the latter hears the answer.
            Ok(Err(_)) => Err(too_large("that did not end", limit)),
            Err(_) => {
                let waited = app.limits.body_timeout.as_secs_f64();
                Err(ApiError::new(Code::RequestTimeout, format!("the body was not complete within {waited} s")))
            }
        }
    }
}

fn too_large(found: &str, limit: usize) -> ApiError {
    let message = format!("found a body {found}; allowed are {limit} bytes (limits.body_bytes)");
    ApiError::new(Code::PayloadTooLarge, message)
}

impl Payload {
    /// The body as it was sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The body as an object.
    pub(crate) fn members(&self) -> Result<Members<'_>, ApiError> {
        if self.0.is_empty() {
            return Err(ApiError::new(Code::InvalidPayload, "the body is empty; a JSON object is required"));
        }
        let text = std::str::from_utf8(&self.0).map_err(|error| {
            let place = error.valid_up_to();
            ApiError::new(Code::InvalidPayload, format!("the body is not UTF-8: byte {place} does not fit"))
        })?;
        Members::parse(text).map_err(|error| {
            let code = if error.is_data() { Code::InvalidRequest } else { Code::InvalidPayload };
            ApiError::new(code, format!("the body is not a JSON object as it should be: {error}"))
        })
    }

    /// As [`Payload::members`], for requests that need none: no body is an object without members.
    pub(crate) fn members_or_none(&self) -> Result<Members<'_>, ApiError> {
        if self.0.is_empty() { Ok(Members::default()) } else { self.members() }
    }
}

/// The parameters behind the question mark; those that the endpoint knows, each at most once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

/// The edge has read it already, because it knows which parameters the endpoint takes.
impl FromRequestParts<Arc<App>> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        Ok(parts.extensions.remove().unwrap_or_default())
    }
}

impl Query {
    /// Reads the parameters of a request to an endpoint that takes those in `known`.
    ///
    /// # Errors
    /// Parameters that it does not take, that stand twice, or that have no value: each of them would
    /// otherwise be passed over, and what the caller meant to choose would be everything.
    pub(crate) fn read(text: &str, known: &[&str]) -> Result<Self, ApiError> {
        let mut problems = Vec::new();
        let mut read: Vec<(String, String)> = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (percent_decoded(key), percent_decoded(value));
            let message = if !known.contains(&&*key) {
                unknown("parameter", &key, known)
            } else if read.iter().any(|(other, _)| *other == key) {
                "appears twice; keep one of them".to_owned()
            } else if value.is_empty() {
                "has no value; give it one, or leave it out".to_owned()
            } else {
                read.push((key, value));
                continue;
            };
            problems.push(Problem::with_message(format!("?{key}"), message));
        }
        if problems.is_empty() { Ok(Self(read)) } else { Err(ApiError::invalid(problems)) }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// A timestamp.
    pub(crate) fn moment(&self, key: &str, problems: &mut Vec<Problem>) -> Option<Moment> {
        let said = self.get(key)?;
        let at = parse_rfc3339(said);
        if at.is_none() {
            let allowed = "a timestamp such as \"2026-02-13T10:00:00Z\"";
            problems.push(Problem::new(format!("?{key}"), format!("\"{said}\""), allowed));
        }
        at
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self, key: &str, problems: &mut Vec<Problem>) -> Option<bool> {
        let said = self.get(key)?;
        let flag = said.parse().ok();
        if flag.is_none() {
            problems.push(Problem::new(format!("?{key}"), format!("\"{said}\""), "true or false"));
        }
        flag
    }

    /// The words of a comma list; `None` where it is absent.
    pub(crate) fn list(&self, key: &str) -> Option<Vec<&str>> {
        Some(self.get(key)?.split(',').map(str::trim).filter(|word| !word.is_empty()).collect())
    }

    /// A whole number up to `most`, or `default`. What is larger is cut down.
    pub(crate) fn number(&self, key: &str, default: usize, most: usize, problems: &mut Vec<Problem>) -> usize {
        match self.get(key).map(str::parse) {
            None => default.min(most),
            Some(Ok(number)) => usize::min(number, most),
            Some(Err(_)) => {
                let found = format!("\"{}\"", self.get(key).unwrap_or_default());
                problems.push(Problem::new(format!("?{key}"), found, "a whole number, not negative"));
                default
            }
        }
    }
}

/// The key under which a request may be sent twice, where it names one.
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl FromRequestParts<Arc<App>> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let refused = |message: String| ApiError::invalid(vec![Problem::with_message("Idempotency-Key", message)]);
        let mut keys = parts.headers.get_all("idempotency-key").iter();
        let Some(key) = keys.next() else { return Ok(Self(None)) };
        if keys.any(|other| other != key) {
            return Err(refused("the header appears twice with different keys; keep one of them".to_owned()));
        }
        let most = app.limits.name_bytes;
        match std::str::from_utf8(key.as_bytes()) {
            Ok(text) if (1..=most).contains(&text.len()) => Ok(Self(Some(text.to_owned()))),
            Ok(text) => Err(refused(format!("found a key of {} bytes; allowed are 1 to {most}", text.len()))),
            Err(_) => Err(refused("found bytes that are not UTF-8; allowed is text in UTF-8".to_owned())),
        }
    }
}

/// The trace of a request, as its headers say it. What is not valid is none: it keeps no job from being enqueued.
#[derive(Debug)]
pub(crate) struct Trace {
    parent: Option<String>,
    state: Option<String>,
}

impl Trace {
    pub(crate) fn context(&self) -> Option<TraceContext<'_>> {
        TraceContext::read(self.parent.as_deref()?, self.state.as_deref())
    }
}

impl FromRequestParts<Arc<App>> for Trace {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Ok(Self { parent: text(TRACEPARENT), state: text(TRACESTATE) })
    }
}

/// Whether the caller names the version of the protocol, as all client libraries do and the
/// conformance cases never do; where the two want different shapes, this tells them apart.
pub(crate) struct NamesVersion(pub(crate) bool);

impl FromRequestParts<Arc<App>> for NamesVersion {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Infallible> {
        Ok(Self(names_version(&parts.headers)))
    }
}

/// `%41` and `+` as what they stand for; what is no escape stays as it is.
fn percent_decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::percent_decoded;

    #[test]
    fn escapes_are_decoded_and_broken_ones_left_alone() {
        for (text, decoded) in [
            ("a%2Cb+c", "a,b c"),
            ("100%", "100%"),
            ("%zz", "%zz"),
            ("%C3%A9", "é"),
            ("%ff", "\u{fffd}"),
            ("%2B%+4", "+% 4"),
        ] {
            assert_eq!(percent_decoded(text), decoded);
        }
    }
}
