//! Whether the way to the database is encrypted, and whom it leads to.
//!
//! The words are libpq's. Two of them promise more here: `require` verifies whom it speaks to, and `prefer`
//! sends no password in the clear to another machine.

mod explain;
mod verifier;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;
use verifier::Unnamed;

pub(super) use explain::explained;

/// PostgreSQL 17 asks for it where a connection begins with TLS; older ones do not look at it.
const PROTOCOL: &[u8] = b"postgresql";

/// What an address says about encryption, in its own words.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    pub(super) mode: Option<String>,
    pub(super) roots: Option<String>,
    pub(super) certificate: Option<String>,
    pub(super) key: Option<String>,
}

/// How much is made sure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    VerifyCa,
    VerifyFull,
}

/// How a connection is encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    connector: MakeRustlsConnect,
    mode: Mode,
    /// The file of the roots; without one, the roots of the system.
    roots: Option<String>,
    /// Whom it leads to, for people.
    hosts: String,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("mode", &self.mode).field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl Tls {
    /// What these options require; `config` is given its part of them.
    ///
    /// # Errors
    /// The wishes contradict each other, or a file cannot be used.
    pub(super) fn new(wishes: Wishes, config: &mut Config) -> Result<Self, String> {
        let mode = mode(&wishes, config)?;
        let hosts = config.get_hosts().iter().filter_map(name).collect::<Vec<_>>();
        let sockets = config.get_hosts().len() - hosts.len();
        let hosts = hosts.join(", ");
        if sockets == config.get_hosts().len() {
            config.ssl_mode(SslMode::Disable);
            let connector = connector(Mode::Disable, None, &Wishes::default())?;
            return Ok(Self { connector, mode: Mode::Disable, roots: None, hosts });
        }
        let ssl_mode = match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer if config.get_password().is_none() || !leaves_the_machine(config) => SslMode::Prefer,
            Mode::Prefer | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        };
        if sockets > 0 && ssl_mode == SslMode::Require {
            return Err("found sockets and hosts in one address, which is to be encrypted; a socket cannot be: \
                        allowed are hosts only, or sslmode=disable"
                .to_owned());
        }
        config.ssl_mode(ssl_mode);
        let roots = wishes.roots.clone().filter(|roots| roots != "system");
        Ok(Self { connector: connector(mode, roots.as_deref(), &wishes)?, mode, roots, hosts })
    }

    /// Makes encrypted connections of plain ones.
    pub(super) fn connector(&self) -> MakeRustlsConnect {
        self.connector.clone()
    }
}

/// The mode, where the wishes go together.
fn mode(wishes: &Wishes, config: &Config) -> Result<Mode, String> {
    let mode = match (wishes.mode.as_deref(), config.get_ssl_mode()) {
        (Some("disable"), _) | (None, SslMode::Disable) => Mode::Disable,
        (Some("verify-ca"), _) => Mode::VerifyCa,
        (Some("require" | "verify-full"), _) | (None, SslMode::Require) => Mode::VerifyFull,
        // Roots that are named are meant to be used.
        (None, _) if wishes.roots.is_some() => Mode::VerifyFull,
        (Some("prefer") | None, _) => Mode::Prefer,
        (Some(other), _) => {
            return Err(format!(
                "found sslmode={other}; allowed are disable, prefer, require, verify-ca and verify-full"
            ));
        }
    };
    match (mode, wishes) {
        (Mode::Disable | Mode::Prefer, Wishes { roots: Some(roots), .. }) => Err(format!(
            "found sslrootcert={roots} with a sslmode that verifies nothing; \
             allowed are sslmode=verify-full and verify-ca, or no sslrootcert"
        )),
        (_, Wishes { certificate: Some(_), key: None, .. } | Wishes { certificate: None, key: Some(_), .. }) => {
            Err("found one of sslcert and sslkey; allowed are both, or none".to_owned())
        }
        _ => Ok(mode),
    }
}

/// Whether any of the hosts may be another machine.
fn leaves_the_machine(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().any(|address| !address.is_loopback());
    }
    let is_elsewhere =
        |name: &str| name != "localhost" && !name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    config.get_hosts().iter().filter_map(name).any(is_elsewhere)
}

/// The name of a host, which a socket does not have.
fn name(host: &Host) -> Option<&str> {
    match host {
        Host::Tcp(name) => Some(name),
        #[cfg(unix)]
        Host::Unix(_) => None,
    }
}

fn connector(mode: Mode, roots: Option<&str>, wishes: &Wishes) -> Result<MakeRustlsConnect, String> {
    // The process may have another provider for other things.
    let provider = Arc::new(ring::default_provider());
    let verified = verifying(mode, roots, provider)?;
    let mut client = match (&wishes.certificate, &wishes.key) {
        (Some(certificate), Some(key)) => {
            let chain = certificates("sslcert", certificate)?;
            let key = PrivateKeyDer::from_pem_file(key).map_err(|why| unusable("sslkey", key, &why))?;
            let unfit = |why| format!("found sslcert={certificate}, which cannot be used with its sslkey: {why}");
            verified.with_client_auth_cert(chain, key).map_err(unfit)?
        }
        _ => verified.with_no_client_auth(),
    };
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(MakeRustlsConnect::new(client))
}

type Verified = rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert>;

fn verifying(mode: Mode, roots: Option<&str>, provider: Arc<CryptoProvider>) -> Result<Verified, String> {
    let algorithms = provider.signature_verification_algorithms;
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(|why| format!("encryption cannot be set up: {why}"))?;
    let unnamed = |roots| Arc::new(Unnamed { roots, algorithms });
    Ok(match mode {
        Mode::Disable | Mode::Prefer => builder.dangerous().with_custom_certificate_verifier(unnamed(None)),
        Mode::VerifyCa => builder.dangerous().with_custom_certificate_verifier(unnamed(Some(trusted(roots)?))),
        Mode::VerifyFull => builder.with_root_certificates(trusted(roots)?),
    })
}

/// The roots of a file, or those of the system.
fn trusted(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut trusted = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        trusted.add_parsable_certificates(found.certs);
        if trusted.is_empty() {
            return Err("found no root certificates on this system; \
                        sslrootcert=/path.pem names a file with those of the database's authority"
                .to_owned());
        }
        return Ok(trusted);
    };
    for certificate in certificates("sslrootcert", file)? {
        trusted.add(certificate).map_err(|why| unusable("sslrootcert", file, &why))?;
    }
    Ok(trusted)
}

/// All certificates of a file, at least one.
fn certificates(parameter: &str, file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|why| unusable(parameter, file, &why))?;
    if read.is_empty() { Err(unusable(parameter, file, &"no certificate in it")) } else { Ok(read) }
}

fn unusable(parameter: &str, file: &str, why: &dyn fmt::Display) -> String {
    format!("found {parameter}={file}, which cannot be used: {why}; allowed is the path of a readable PEM file")
}

#[cfg(test)]
mod tests {
    use crate::postgres::Options;
    use tokio_postgres::config::SslMode;

    /// What the client is asked to do, and what it can do.
    fn encryption(address: &str) -> Result<SslMode, String> {
        Options::read(address).map(|options| options.config.get_ssl_mode())
    }

    #[test]
    fn no_password_leaves_the_machine_in_the_clear_unless_that_is_said() {
        for (address, mode) in [
            ("postgres://u:hush@db.internal/d", SslMode::Require),
            ("postgres://u:hush@db.internal/d?sslmode=prefer", SslMode::Require),
            ("postgres://u:hush@localhost,10.0.0.1/d", SslMode::Require),
            ("postgres://u:hush@localhost/d?hostaddr=10.0.0.1", SslMode::Require),
            ("postgres://u:hush@localhost/d", SslMode::Prefer),
            ("postgres://u:hush@127.0.0.1,[::1]/d", SslMode::Prefer),
            ("postgres://u@db.internal/d", SslMode::Prefer),
            ("postgres://u:hush@db.internal/d?sslmode=disable", SslMode::Disable),
        ] {
            assert_eq!(encryption(address), Ok(mode), "{address}");
        }
    }

    #[test]
    fn a_socket_is_never_encrypted() {
        for parameters in ["", "?sslmode=prefer", "?sslmode=require", "?sslmode=verify-full&sslrootcert=system"] {
            assert_eq!(encryption(&format!("postgres://u:hush@%2Frun/d{parameters}")), Ok(SslMode::Disable));
        }
        assert_eq!(encryption("postgres://u@%2Frun,db/d"), Ok(SslMode::Prefer));
        let both = encryption("postgres://u:hush@%2Frun,db/d");
        assert!(both.clone().is_err_and(|why| why.contains("sockets and hosts")), "{both:?}");
    }

    #[test]
    fn wishes_that_contradict_each_other_are_refused_with_what_is_allowed() {
        for (parameters, said) in [
            ("sslmode=allow", "found sslmode=allow; allowed are disable, prefer, require, verify-ca and verify-full"),
            ("sslmode=prefer&sslrootcert=system", "found sslrootcert=system with a sslmode that verifies nothing"),
            ("sslmode=disable&sslrootcert=%2Fa.pem", "found sslrootcert=/a.pem with"),
            ("sslrootcert=%2Fnowhere%2Fa.pem", "found sslrootcert=/nowhere/a.pem, which cannot be used"),
            ("sslmode=prefer&sslcert=a", "found one of sslcert and sslkey"),
        ] {
            let Err(why) = encryption(&format!("postgres://u:hush@h/d?{parameters}")) else {
                panic!("{parameters} is not allowed")
            };
            assert!(why.contains(said) && !why.contains("hush"), "{why}");
        }
    }

    #[test]
    fn a_file_without_a_certificate_vouches_for_nobody() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let answer = encryption(&format!("postgres://u@h/d?sslrootcert={manifest}"));
        assert!(answer.clone().is_err_and(|why| why.contains("no certificate in it")), "{answer:?}");
    }
}
