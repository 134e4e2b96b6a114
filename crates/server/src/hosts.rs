//! The names under which a server is called.

use axum::extract::Request;
use axum::http::header::HOST;
use std::net::IpAddr;

/// The names under which a server may be called, beside those of loopback.
///
/// A page in a browser can let its own name lead to 127.0.0.1 and then read what a server without keys
/// answers: for the browser it is the page's own server. What it cannot change is the name that the
/// request carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// The address that the server listens on, as it was said.
    listen: Option<String>,
    /// What the operator names.
    named: Vec<String>,
}

impl Hosts {
    /// Reads a list with commas; `listen` is the address that the server listens on, with its port.
    ///
    /// # Errors
    /// An entry that is no name of a host and no address.
    pub fn read(list: &str, listen: &str) -> Result<Self, String> {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let named = entries.map(|entry| match host_of(entry) {
            Some((host, None)) => Ok(host),
            _ => Err(format!("found \"{entry}\"; allowed are names and addresses without a port, with commas between")),
        });
        Ok(Self { listen: host_of(listen).map(|(host, _)| host), named: named.collect::<Result<_, _>>()? })
    }

    /// Whether the operator names any.
    pub(crate) const fn are_named(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether a request is meant for this server.
    ///
    /// # Errors
    /// The name that it carries and that is not one of the server's. A request without a name is no
    /// page's: every browser sends one.
    pub(crate) fn admit(&self, request: &Request) -> Result<(), String> {
        let stated = request.headers().get_all(HOST).iter().map(|host| String::from_utf8_lossy(host.as_bytes()));
        let target = request.uri().authority().map(|authority| authority.as_str().into());
        match stated.chain(target).find(|name| !self.know(name)) {
            Some(stranger) => Err(stranger.into_owned()),
            None => Ok(()),
        }
    }

    fn know(&self, authority: &str) -> bool {
        let Some((host, _)) = host_of(authority) else { return false };
        let is_loopback = host.parse().map_or(host == "localhost", |address: IpAddr| address.is_loopback());
        is_loopback || self.listen.as_ref() == Some(&host) || self.named.contains(&host)
    }
}

/// The host in one spelling, and the port, of a `Host` header.
fn host_of(authority: &str) -> Option<(String, Option<&str>)> {
    let (host, rest) = match authority.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(port),
        None if rest.is_empty() => None,
        _ => return None,
    };
    if let Ok(address) = host.parse::<IpAddr>() {
        return Some((address.to_canonical().to_string(), port));
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    (is_name && !authority.starts_with('[')).then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_by_all_its_names_and_strangers_are_not() {
        let hosts = Hosts::default();
        for known in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:1",
            "127.8.9.1",
            "[::1]:8080",
            "[::1]",
            "localhost:",
        ] {
            assert!(hosts.know(known), "{known}");
        }
        for stranger in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "evil@localhost",
            "localhost@evil.example",
            "localhost:80:80",
            "0.0.0.0",
            "10.0.0.7",
            "[::2]",
            "[localhost]",
            "",
            ":8080",
        ] {
            assert!(!hosts.know(stranger), "{stranger}");
        }
    }

    #[test]
    fn the_operator_names_further_ones_and_the_address_to_listen_on_is_one() {
        let hosts = Hosts::read("jobs.internal, [fd00::7] ,10.0.0.7", "192.168.0.5:8080").unwrap();
        for known in ["Jobs.Internal:443", "[fd00:0::7]:1", "10.0.0.7", "192.168.0.5", "localhost"] {
            assert!(hosts.know(known), "{known}");
        }
        assert!(!hosts.know("internal"));
        for wrong in ["http://jobs", "jobs:8080", "a b", "*"] {
            assert!(Hosts::read(wrong, "127.0.0.1:1").unwrap_err().contains(wrong), "{wrong}");
        }
    }
}
