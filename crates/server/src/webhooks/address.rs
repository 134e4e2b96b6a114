//! Where events may be sent: what an address may look like, and which machines may be reached.

use hyper::Uri;
use hyper::http::uri::Scheme;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the operator allows, for tests and for closed networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Addresses of this machine and of private networks.
    pub allow_private: bool,
    /// Requests that are not encrypted.
    pub allow_http: bool,
}

/// The longest address in bytes.
pub(super) const LONGEST_URL: usize = 2_048;

/// Reads an address that events are sent to.
///
/// # Errors
/// What is wrong with it, and what is allowed.
pub(crate) fn endpoint(text: &str, settings: WebhookSettings) -> Result<Uri, String> {
    if text.len() > LONGEST_URL {
        return Err(format!("has {} bytes; at most {LONGEST_URL} are allowed", text.len()));
    }
    let uri: Uri = text.parse().map_err(|error| format!("\"{text}\" is not an address: {error}"))?;
    let scheme = uri.scheme().cloned();
    match scheme {
        Some(scheme) if scheme == Scheme::HTTPS => {}
        Some(scheme) if scheme == Scheme::HTTP && settings.allow_http => {}
        Some(scheme) if scheme == Scheme::HTTP => {
            return Err("begins with http://; only https:// is allowed (webhooks.allow_http)".to_owned());
        }
        _ => return Err(format!("\"{text}\" is not an address; allowed is https://HOST/PATH")),
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err("has a user name or a password; leave it out: deliveries are signed".to_owned());
    }
    let host = host_of(&uri);
    if host.is_empty() {
        return Err(format!("\"{text}\" has no host"));
    }
    let port = port_of(&uri);
    if port != 80 && port != 443 && port < 1_024 {
        return Err(format!("has the port {port}; allowed are 80, 443, and those from 1024 on"));
    }
    if let Ok(address) = host.parse::<IpAddr>()
        && !may_reach(address, settings)
    {
        return Err(not_allowed(address));
    }
    Ok(uri)
}

/// The host of an address, without the brackets of IPv6.
pub(crate) fn host_of(uri: &Uri) -> &str {
    uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
}

/// The port of an address.
pub(crate) fn port_of(uri: &Uri) -> u16 {
    let default = if uri.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    uri.port_u16().unwrap_or(default)
}

pub(crate) fn may_reach(address: IpAddr, settings: WebhookSettings) -> bool {
    is_public(address) || (settings.allow_private && !address.is_multicast() && !address.is_unspecified())
}

pub(crate) fn not_allowed(address: IpAddr) -> String {
    format!("{address} is not an address of the public internet; others are not allowed (webhooks.allow_private)")
}

/// Whether an address is one of the public internet.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, private, loopback; shared by providers; link-local.
        (0 | 10 | 127, ..) | (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => true,
        // Assignments of protocols, relays, documentation, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast.
        (224.., ..) => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, .., g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        // IPv4 in the clothes of IPv6: mapped, compatible, translated, and tunnelled by 6to4.
        [0, 0, 0, 0, 0, 0xffff, ..] => embedded(g, h),
        [0, 0, 0, 0, 0, 0, ..] => false,
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => embedded(g, h),
        [0x2002, high, low, ..] => embedded(high, low),
        // Assignments of protocols, with Teredo; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Everything else that is public begins with these three bits.
        _ => a & 0xe000 == 0x2000 && (a, b) != (0x2001, 0xdb8),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_public_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.1.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::808:808",
            "2002:101:101::",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "::7f00:1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "100::1",
            "4000::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn endpoints_are_checked_before_anything_is_sent() {
        let strict = WebhookSettings::default();
        let open = WebhookSettings { allow_private: true, allow_http: true };
        for good in ["https://example.org", "https://example.org:8443/hooks?x=1", "https://[2606:4700::1111]/"] {
            assert!(endpoint(good, strict).is_ok(), "{good}");
        }
        let long = format!("https://example.org/{}", "a".repeat(LONGEST_URL));
        for bad in [
            "http://example.org",
            "ftp://example.org",
            "example.org",
            "/hooks",
            "https://",
            "https://a:b@example.org",
            "https://a@example.org",
            "https://example.org:22",
            "https://example.org:0",
            "https://127.0.0.1",
            "https://[::1]",
            "https://[::ffff:10.0.0.1]",
            "https://169.254.169.254/latest",
            &long,
        ] {
            assert!(endpoint(bad, strict).is_err(), "{bad}");
        }
        for (text, allowed) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://10.0.0.1", true),
            ("http://0.0.0.0", false),
            ("http://224.0.0.1", false),
            ("http://a:b@example.org", false),
        ] {
            assert_eq!(endpoint(text, open).is_ok(), allowed, "{text}");
        }
    }
}
