//! A TLS listener in front of a server, with generated certificates.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// An authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate, as PEM.
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let (mut authority, key) = (CertificateParams::default(), KeyPair::generate().expect("a key"));
        authority.distinguished_name.push(DnType::CommonName, name);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = authority.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(authority, key), pem }
    }

    /// A server's certificate for a name, ready to be used.
    fn server(&self, name: &str) -> Arc<ServerConfig> {
        let certified = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let chain = vec![certified.signed_by(&key, &self.issuer).expect("a certificate").der().clone()];
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
        Arc::new(builder.with_single_cert(chain, key).expect("a certificate with its key"))
    }

    /// Listens with a certificate for a name, and passes everything on; returns the port.
    pub(crate) async fn listen(&self, name: &str, to: SocketAddr) -> u16 {
        let acceptor = TlsAcceptor::from(self.server(name));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client that does not trust the certificate disconnects.
                    let Ok(mut inside) = acceptor.accept(stream).await else { return };
                    if let Ok(mut outside) = TcpStream::connect(to).await {
                        let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
                    }
                });
            }
        });
        port
    }
}
