//! One request with an event, and its answer. The address that is connected to is the one that was checked.

use super::address::{WebhookSettings, endpoint, host_of, may_reach, not_allowed, port_of};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, Response, StatusCode, Uri, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How many redirects are followed.
const REDIRECTS: usize = 3;
/// How much of an answer is read, in bytes.
const ANSWER: usize = 8 << 10;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<String>,
    /// What it says, as far as that is read.
    pub(crate) body: String,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// It is not allowed to send there.
    NotAllowed(String),
    /// The other side did not answer.
    Failed(String),
}

/// A request to be sent.
pub(crate) struct Delivery<'d> {
    pub(crate) method: Method,
    pub(crate) url: &'d str,
    pub(crate) headers: Vec<(&'d str, String)>,
    pub(crate) body: Bytes,
}

/// Sends requests.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    settings: WebhookSettings,
    tls: OnceLock<Arc<ClientConfig>>,
}

impl Sender {
    pub(crate) fn new(settings: WebhookSettings) -> Self {
        Self { settings, tls: OnceLock::new() }
    }

    pub(crate) const fn settings(&self) -> WebhookSettings {
        self.settings
    }

    /// Sends a request, and follows redirects, within a time.
    pub(crate) async fn post(&self, delivery: &Delivery<'_>, within: Duration) -> Result<Answer, NoAnswer> {
        let late = || NoAnswer::Failed(format!("there was no answer within {} s", within.as_secs()));
        tokio::time::timeout(within, self.follow(delivery)).await.map_err(|_| late())?
    }

    async fn follow(&self, delivery: &Delivery<'_>) -> Result<Answer, NoAnswer> {
        let mut url = delivery.url.to_owned();
        for _ in 0..=REDIRECTS {
            let uri =
                endpoint(&url, self.settings).map_err(|why| NoAnswer::NotAllowed(format!("the address {why}")))?;
            let response = self.request(&uri, delivery).await?;
            match redirect(&uri, &response)? {
                Some(next) => url = next,
                None => return read(response).await,
            }
        }
        Err(NoAnswer::Failed(format!("there were more than {REDIRECTS} redirects")))
    }

    /// Sends a request once: where the answer is a redirect, it is answered like any other.
    pub(crate) async fn once(&self, delivery: &Delivery<'_>) -> Result<Response<Incoming>, NoAnswer> {
        let uri = endpoint(delivery.url, self.settings);
        self.request(&uri.map_err(|why| NoAnswer::NotAllowed(format!("the address {why}")))?, delivery).await
    }

    async fn request(&self, uri: &Uri, delivery: &Delivery<'_>) -> Result<Response<Incoming>, NoAnswer> {
        let stream = self.connect(uri).await?;
        if uri.scheme() == Some(&Scheme::HTTP) {
            return exchange(stream, uri, delivery).await;
        }
        let name = ServerName::try_from(host_of(uri).to_owned()).map_err(failed)?;
        let stream = TlsConnector::from(self.tls()).connect(name, stream).await.map_err(failed)?;
        exchange(stream, uri, delivery).await
    }

    /// Connects to an address that may be reached. A name that leads to others is refused as a whole, so that one of
    /// them is not reached by chance.
    async fn connect(&self, uri: &Uri) -> Result<TcpStream, NoAnswer> {
        let found: Vec<_> = tokio::net::lookup_host((host_of(uri), port_of(uri))).await.map_err(failed)?.collect();
        if let Some(address) = found.iter().find(|address| !may_reach(address.ip(), self.settings)) {
            return Err(NoAnswer::NotAllowed(not_allowed(address.ip())));
        }
        let mut last = NoAnswer::Failed(format!("the host {} has no address", host_of(uri)));
        for address in found {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = failed(error),
            }
        }
        Err(last)
    }

    /// The roots of the system are read when they are first needed.
    fn tls(&self) -> Arc<ClientConfig> {
        let config = self.tls.get_or_init(|| {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
            // The provider has the versions that this program was built with.
            let config = config.map(|config| config.with_root_certificates(roots).with_no_client_auth());
            Arc::new(config.unwrap_or_else(|_| {
                ClientConfig::builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
            }))
        });
        Arc::clone(config)
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    uri: &Uri,
    delivery: &Delivery<'_>,
) -> Result<Response<Incoming>, NoAnswer> {
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // It ends with the answer, or when the answer is dropped.
    tokio::spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let host = uri.authority().map_or("", |host| host.as_str());
    let mut request = Request::builder().method(delivery.method.clone()).uri(path).header(header::HOST, host);
    for (name, value) in &delivery.headers {
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(delivery.body.clone())).map_err(failed)?;
    sender.send_request(request).await.map_err(failed)
}

/// Where an answer sends the request on to. The method and the body stay as they are, whatever the status: without
/// its body a delivery would be empty.
fn redirect(uri: &Uri, response: &Response<Incoming>) -> Result<Option<String>, NoAnswer> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
    let Some(location) = location else {
        return Err(NoAnswer::Failed(format!("the answer is {} without an address", response.status().as_u16())));
    };
    if location.starts_with('/') && !location.starts_with("//") {
        let (scheme, host) = (uri.scheme_str().unwrap_or("https"), uri.authority().map_or("", |host| host.as_str()));
        return Ok(Some(format!("{scheme}://{host}{location}")));
    }
    Ok(Some(location.to_owned()))
}

async fn read(response: Response<Incoming>) -> Result<Answer, NoAnswer> {
    let (parts, mut body) = response.into_parts();
    let header = parts.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut read = Vec::new();
    while let Some(frame) = body.frame().await {
        // The status is known: what is missing of the rest changes nothing.
        let Ok(frame) = frame else { break };
        if let Some(data) = frame.data_ref() {
            read.extend_from_slice(&data[..data.len().min(ANSWER - read.len())]);
        }
        if read.len() == ANSWER {
            break;
        }
    }
    let body = String::from_utf8_lossy(&read).into_owned();
    Ok(Answer { status: parts.status, retry_after: header, body })
}

fn failed(error: impl std::fmt::Display) -> NoAnswer {
    NoAnswer::Failed(error.to_string())
}
