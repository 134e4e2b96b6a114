//! One request, and its answer read whole.

#[cfg(feature = "tls")]
use super::tls::Connector;
use crate::ClientError;
#[cfg(feature = "tls")]
use crate::trust::Trust;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::Value;
use std::time::Duration;

#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;
/// Without encryption there is nothing to trust.
#[cfg(not(feature = "tls"))]
pub(super) enum Trust {}

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept; servers close theirs after about thirty seconds.
const IDLE: Duration = Duration::from_secs(20);
/// An answer larger than this is not one of ours.
const MAX_ANSWER: usize = 256 << 20;

/// Sends requests to one server over connections that are used again.
#[derive(Clone)]
pub(super) struct Caller {
    client: Client<Connector, Full<Bytes>>,
    /// `http://HOST:PORT` or `https://HOST:PORT`, without a slash at the end.
    base: String,
    key: Option<HeaderValue>,
}

impl Caller {
    pub(super) fn new(url: &str, key: Option<&str>, trust: Option<&Trust>) -> Result<Self, ClientError> {
        let base = url.trim_end_matches('/').to_owned();
        let uri = base.parse::<Uri>().ok().filter(|uri| uri.host().is_some());
        let encrypted = match uri.as_ref().and_then(Uri::scheme_str) {
            Some("http") => false,
            Some("https") => true,
            _ => {
                return Err(ClientError::Invalid(format!(
                    "\"{url}\" is not the address of a server: allowed is http://HOST:PORT or https://HOST:PORT"
                )));
            }
        };
        let key = key.map(|key| HeaderValue::try_from(format!("Bearer {key}"))).transpose();
        let mut key = key.map_err(|_| {
            ClientError::Invalid("the API key holds characters that no header can carry; look where it is from".into())
        })?;
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(fitted(connector, encrypted, trust)?);
        Ok(Self { client, base, key })
    }

    pub(super) async fn get(&self, path: &str, within: Duration) -> Result<Bytes, ClientError> {
        self.send(Method::GET, path, Vec::new(), within).await.map(|(_, answer)| answer)
    }

    pub(super) async fn delete(&self, path: &str, within: Duration) -> Result<Bytes, ClientError> {
        self.send(Method::DELETE, path, Vec::new(), within).await.map(|(_, answer)| answer)
    }

    pub(super) async fn post(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<Bytes, ClientError> {
        self.post_for(path, body, within).await.map(|(_, answer)| answer)
    }

    /// The same with the status, which is a success.
    pub(super) async fn post_for(
        &self,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<(u16, Bytes), ClientError> {
        self.send(Method::POST, path, body, within).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<(u16, Bytes), ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            // With this header the shapes are those that client libraries expect.
            .header("ojs-version", "1.0");
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, key);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| ClientError::Invalid(format!("no request can be made of this: {error}")))?;
        let answered = async {
            let response = self.client.request(request).await.map_err(|error| self.unreachable(&error))?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|error| self.unreachable(&*error))?;
            Ok((status, body.to_bytes()))
        };
        let answered = tokio::time::timeout(within, answered).await;
        let (status, body) = answered.unwrap_or_else(|_| {
            Err(ClientError::Unreachable(format!("{} did not answer within {within:?}", self.base)))
        })?;
        if (200..300).contains(&status) { Ok((status, body)) } else { Err(refusal(status, &body)) }
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> ClientError {
        #[cfg(feature = "tls")]
        if let Some(why) = Trust::refusal_in(error) {
            return ClientError::Untrusted(format!("{}: {why}", self.base));
        }
        let mut message = format!("no answer from the server at {}: {error}", self.base);
        let mut next = error.source();
        while let Some(cause) = next {
            message.push_str(&format!(": {cause}"));
            next = cause.source();
        }
        ClientError::Unreachable(message)
    }
}

/// Encrypts connections where that is wanted.
#[cfg(feature = "tls")]
fn fitted(tcp: HttpConnector, encrypted: bool, trust: Option<&Trust>) -> Result<Connector, ClientError> {
    let system = || Trust::system().config();
    let tls = encrypted.then(|| trust.map_or_else(system, Trust::config)).transpose()?;
    Ok(Connector::new(tcp, tls))
}

#[cfg(not(feature = "tls"))]
fn fitted(tcp: HttpConnector, encrypted: bool, _trust: Option<&Trust>) -> Result<Connector, ClientError> {
    if encrypted {
        return Err(ClientError::Invalid(
            "this program speaks no TLS: build redrive-worker with its feature `tls`, or use http://HOST:PORT"
                .to_owned(),
        ));
    }
    Ok(tcp)
}

/// What the server says about a request that it does not carry out.
fn refusal(status: u16, body: &[u8]) -> ClientError {
    let document: Value = serde_json::from_slice(body).unwrap_or_default();
    read_error(status, &document["error"])
}

/// The `error` object of an answer.
pub(super) fn read_error(status: u16, error: &Value) -> ClientError {
    let code = error["code"].as_str().unwrap_or("error");
    let said = error["message"].as_str().unwrap_or("the server gives no reason");
    match error["hint"].as_str().filter(|hint| !hint.is_empty()) {
        Some(hint) => ClientError::refused(status, code, format_args!("{said}. {hint}")),
        None => ClientError::refused(status, code, said),
    }
}
