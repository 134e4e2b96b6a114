//! The root certificates that a server is verified with.

use crate::ClientError;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The root certificates that servers are verified with: those of the system, and those that the program adds.
#[derive(Clone)]
pub struct RootCertificates {
    roots: Vec<CertificateDer<'static>>,
}

impl RootCertificates {
    /// The root certificates of the system.
    #[must_use]
    pub fn system() -> Self {
        Self { roots: rustls_native_certs::load_native_certs().certs }
    }

    /// The same, and the certificates of a PEM file.
    ///
    /// # Errors
    /// The file cannot be read, or holds no certificate.
    pub fn with_file(mut self, path: impl AsRef<Path>) -> Result<Self, ClientError> {
        let path = path.as_ref();
        let unusable = |why: &dyn fmt::Display| {
            ClientError::Invalid(format!(
                "the certificates in {} cannot be used: {why}; allowed is a readable PEM file",
                path.display()
            ))
        };
        let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let found = found.map_err(|error| unusable(&error))?;
        if found.is_empty() {
            return Err(unusable(&"there is no certificate in it"));
        }
        // Each of them has to be a certificate, so that a wrong file is noticed here.
        for certificate in &found {
            RootCertStore::empty().add(certificate.clone()).map_err(|error| unusable(&error))?;
        }
        self.roots.extend(found);
        Ok(self)
    }

    /// The certificates, as DER.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        self.roots.iter().map(AsRef::as_ref)
    }

    /// Why a connection failed, and what to do about it, where the server's certificate was refused.
    pub(crate) fn certificate_problem(error: &(dyn Error + 'static)) -> Option<String> {
        let mut next = Some(error);
        while let Some(error) = next {
            // A handshake fails with an I/O error around the reason.
            let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
            if let Some(rustls::Error::InvalidCertificate(found)) = inner.or_else(|| error.downcast_ref()) {
                return Some(refusal(found));
            }
            next = error.source();
        }
        None
    }

    /// The configuration of connections.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, ClientError> {
        let mut roots = RootCertStore::empty();
        // Some systems have certificates that cannot be read; the others are enough.
        roots.add_parsable_certificates(self.roots.iter().cloned());
        if roots.is_empty() {
            return Err(ClientError::Invalid(
                "there are no root certificates on this system, so no server can be verified; name a \
                 file with the certificate of the server's authority"
                    .to_owned(),
            ));
        }
        // The process may use another provider elsewhere.
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|error| ClientError::Invalid(format!("encryption cannot be set up: {error}")))?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    }
}

fn refusal(found: &CertificateError) -> String {
    let (what, way_out) = match found {
        CertificateError::UnknownIssuer => (
            "no trusted authority has signed it".to_owned(),
            "name a file with the certificate of the authority that signed it",
        ),
        CertificateError::NotValidForNameContext { expected, presented } => (
            format!("it is not for {}, but for {}", expected.to_str(), presented.join(", ")),
            "use one of its names in the address, or give the server a certificate for this one",
        ),
        other => (
            rustls::Error::InvalidCertificate(other.clone()).to_string(),
            "the server needs a certificate that is valid",
        ),
    };
    format!("the certificate of the server is refused: {what}; {way_out}")
}

impl fmt::Debug for RootCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootCertificates").field("roots", &self.roots.len()).finish()
    }
}
