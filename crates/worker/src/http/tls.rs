//! Connections to a server, encrypted where its address says `https`.

use hyper::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio_rustls::TlsConnector;
use tower_service::Service;

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    tcp: HttpConnector,
    /// Absent where nothing is encrypted.
    tls: Option<TlsConnector>,
}

impl Connector {
    pub(super) fn new(mut tcp: HttpConnector, tls: Option<Arc<ClientConfig>>) -> Self {
        tcp.enforce_http(false);
        Self { tcp, tls: tls.map(TlsConnector::from) }
    }
}

/// A connection, encrypted or not.
pub(super) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Connector {
    type Response = Box<dyn Stream>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.tls.clone();
        // An address of IPv6 stands in brackets.
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
        let connecting = self.tcp.call(uri);
        Box::pin(async move {
            let stream = connecting.await?;
            let Some(tls) = tls else { return Ok(Box::new(stream) as Box<dyn Stream>) };
            let stream = tls.connect(ServerName::try_from(host)?, stream.into_inner()).await?;
            Ok(Box::new(TokioIo::new(stream)) as Box<dyn Stream>)
        })
    }
}
