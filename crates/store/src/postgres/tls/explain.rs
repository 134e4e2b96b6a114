//! Why a connection could not be encrypted, and the way out.

use super::{Mode, Tls};
use rustls::CertificateError;
use std::error::Error;

/// What the client says of a server that declines to encrypt. It has no type of its own.
const DECLINED: &str = "server does not support TLS";

/// Why the certificate or the lack of encryption ended the connection; nothing where it was something else,
/// which may be over later.
pub(in super::super) fn explained(error: &tokio_postgres::Error, tls: &Tls) -> Option<String> {
    let cause = error.source()?;
    if cause.to_string() == DECLINED {
        return Some(declined(tls));
    }
    // The handshake fails with an I/O error around the reason.
    let reason = cause.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(found) = reason else { return None };
    Some(unverified(found, tls))
}

fn declined(tls: &Tls) -> String {
    let why = match tls.mode {
        Mode::Prefer => "and the password of the address would travel in the clear",
        Mode::Disable | Mode::VerifyCa | Mode::VerifyFull => "which sslmode demands",
    };
    format!(
        "PostgreSQL offers no encryption at {}, {why}: turn on ssl at the server, or go without by sslmode=disable \
         where the network is trusted",
        tls.hosts
    )
}

fn unverified(found: &CertificateError, tls: &Tls) -> String {
    let roots = tls.roots.as_deref().unwrap_or("the system's roots");
    let (what, way_out) = match found {
        CertificateError::UnknownIssuer => (
            format!("found no authority in {roots} that has signed it"),
            "sslrootcert=/path.pem names the certificate of the authority that signed it",
        ),
        CertificateError::NotValidForNameContext { expected, presented } => (
            format!("it is not for {}, but for {}", expected.to_str(), presented.join(", ")),
            "the address has to use one of its names (hostaddr=… may say where that is), \
             or sslmode=verify-ca, which compares no names",
        ),
        other => (
            rustls::Error::InvalidCertificate(other.clone()).to_string(),
            "the server needs a certificate that is valid",
        ),
    };
    format!("the certificate of PostgreSQL at {} is refused: {what}; {way_out}", tls.hosts)
}
