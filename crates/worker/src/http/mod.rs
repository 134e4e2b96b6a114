//! The HTTP client under [`crate::Client`], for programs that also call other endpoints of a server: one request, its
//! whole response, and connections that are used again. It follows no redirects and uses no proxy of the environment.

pub(crate) mod events;
mod stream;
#[cfg(feature = "tls")]
mod tls;

pub(crate) use stream::HttpBody;

use crate::ClientError;
#[cfg(feature = "tls")]
use crate::roots::RootCertificates;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::http::request::Builder;
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;
#[cfg(feature = "tls")]
use tls::Connector;

#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;
/// Without encryption there are no root certificates.
#[cfg(not(feature = "tls"))]
enum RootCertificates {}

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an unused connection is kept; servers close theirs after about thirty seconds.
const IDLE: Duration = Duration::from_secs(20);
/// The largest response that is read.
const MAX_ANSWER: usize = 256 << 20;

/// Sends requests to one server.
#[derive(Clone)]
pub struct HttpClient {
    client: Client<Connector, Full<Bytes>>,
    /// `http://HOST:PORT` or `https://HOST:PORT`, without a slash at the end.
    base: String,
    key: Option<HeaderValue>,
}

/// A response of any status, read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// After which time to try again, where the response says so in seconds.
    pub retry_after: Option<Duration>,
}

impl HttpResponse {
    /// Whether the status is 2xx.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }
}

impl HttpClient {
    /// A client for a server. It sends the API key, if there is one, with every request. For `https://` it uses the
    /// root certificates of the system, and needs the feature `tls`. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is not that of a server, no header can carry the key, or encryption cannot be set up.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, ClientError> {
        Self::build(url, key, None)
    }

    /// The same with other root certificates than those of the system.
    ///
    /// # Errors
    /// As [`HttpClient::new`].
    #[cfg(feature = "tls")]
    pub fn with_roots(url: &str, key: Option<&str>, roots: &RootCertificates) -> Result<Self, ClientError> {
        Self::build(url, key, Some(roots))
    }

    fn build(url: &str, key: Option<&str>, roots: Option<&RootCertificates>) -> Result<Self, ClientError> {
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
            ClientError::Invalid(
                "the API key has characters that cannot be sent in a header; check where it comes from".into(),
            )
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
            .build(encrypting(connector, encrypted, roots)?);
        Ok(Self { client, base, key })
    }

    /// `GET`. `path` starts after the host; the whole response has to come `within` this time.
    ///
    /// # Errors
    /// No response came: the server cannot be reached, did not answer in time, or is not to be trusted.
    pub async fn get(&self, path: &str, within: Duration) -> Result<HttpResponse, ClientError> {
        self.send(Method::GET, path, Vec::new(), within).await
    }

    /// `DELETE`.
    ///
    /// # Errors
    /// As [`HttpClient::get`].
    pub async fn delete(&self, path: &str, within: Duration) -> Result<HttpResponse, ClientError> {
        self.send(Method::DELETE, path, Vec::new(), within).await
    }

    /// `POST` of a JSON document, or of nothing.
    ///
    /// # Errors
    /// As [`HttpClient::get`].
    pub async fn post(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<HttpResponse, ClientError> {
        self.send(Method::POST, path, body, within).await
    }

    /// Puts a document in place of what is there.
    ///
    /// # Errors
    /// As for [`HttpClient::get`].
    pub async fn put(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<HttpResponse, ClientError> {
        self.send(Method::PUT, path, body, within).await
    }

    /// Sends a change of what is there.
    ///
    /// # Errors
    /// As for [`HttpClient::get`].
    pub async fn patch(&self, path: &str, body: Vec<u8>, within: Duration) -> Result<HttpResponse, ClientError> {
        self.send(Method::PATCH, path, body, within).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        within: Duration,
    ) -> Result<HttpResponse, ClientError> {
        let mut request = self.request(method, path);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::new(Bytes::from(body))).map_err(invalid)?;
        let answered = async {
            let response = self.client.request(request).await.map_err(|error| self.unreachable(&error))?;
            let status = response.status().as_u16();
            let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            let body = body.map_err(|error| self.unreachable(&*error))?;
            Ok(HttpResponse { status, body: body.to_bytes(), retry_after: after.map(Duration::from_secs) })
        };
        self.in_time(answered, within).await
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            // With this header, responses have the form that client libraries expect.
            .header("ojs-version", "1.0");
        match &self.key {
            Some(key) => request.header(AUTHORIZATION, key),
            None => request,
        }
    }

    async fn in_time<T>(
        &self,
        answered: impl Future<Output = Result<T, ClientError>>,
        within: Duration,
    ) -> Result<T, ClientError> {
        let answered = tokio::time::timeout(within, answered).await;
        answered.unwrap_or_else(|_| {
            Err(ClientError::Unreachable(format!("{} did not answer within {within:?}", self.base)))
        })
    }

    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> ClientError {
        #[cfg(feature = "tls")]
        if let Some(why) = RootCertificates::certificate_problem(error) {
            return ClientError::Untrusted(format!("{}: {why}", self.base));
        }
        // The outermost error names only the stage; its causes say what happened.
        let first = error.source().unwrap_or(error);
        let mut message = format!("no answer from the server at {}: {first}", self.base);
        let mut next = first.source();
        while let Some(cause) = next {
            message.push_str(&format!(": {cause}"));
            next = cause.source();
        }
        ClientError::Unreachable(message)
    }
}

fn invalid(error: hyper::http::Error) -> ClientError {
    ClientError::Invalid(format!("this is not a valid request: {error}"))
}

/// Encrypts connections if the address asks for it.
#[cfg(feature = "tls")]
fn encrypting(tcp: HttpConnector, encrypted: bool, roots: Option<&RootCertificates>) -> Result<Connector, ClientError> {
    let system = || RootCertificates::system().config();
    let tls = encrypted.then(|| roots.map_or_else(system, RootCertificates::config)).transpose()?;
    Ok(Connector::new(tcp, tls))
}

#[cfg(not(feature = "tls"))]
fn encrypting(
    tcp: HttpConnector,
    encrypted: bool,
    _roots: Option<&RootCertificates>,
) -> Result<Connector, ClientError> {
    if encrypted {
        return Err(ClientError::Invalid(
            "this program does not support TLS: build redrive-worker with its feature `tls`, or use http://HOST:PORT"
                .to_owned(),
        ));
    }
    Ok(tcp)
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("base", &self.base).finish_non_exhaustive()
    }
}

/// A part of a path or a query, percent-encoded: only what RFC 3986 calls unreserved stays as it is.
#[must_use]
pub fn escaped(text: &str) -> String {
    const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
    utf8_percent_encode(text, &RESERVED).to_string()
}

/// Whether what is sent to this address leaves the machine unencrypted.
#[must_use]
pub fn leaves_in_the_clear(url: &str) -> bool {
    let uri = url.parse::<Uri>().ok().filter(|uri| uri.scheme_str() == Some("http"));
    uri.as_ref().and_then(Uri::host).is_some_and(|host| {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_safe_only_on_this_machine_and_with_tls() {
        for url in ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:80", "https://jobs.example.org"] {
            assert!(!leaves_in_the_clear(url), "{url}");
        }
        for url in ["http://jobs.example.org", "http://10.0.0.1:8080", "http://localhost.example.org"] {
            assert!(leaves_in_the_clear(url), "{url}");
        }
    }
    #[test]
    fn what_a_path_could_misread_is_escaped() {
        assert_eq!(escaped("aZ09-._~"), "aZ09-._~");
        assert_eq!(escaped("a b/c?d&e=f%+ü\0"), "a%20b%2Fc%3Fd%26e%3Df%25%2B%C3%BC%00");
    }
}
