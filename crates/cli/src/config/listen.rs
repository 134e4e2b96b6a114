//! Addresses to listen on, and what holds at that of Azolla's protocol.

use super::build::Reader;
use redrive_server::{ApiKeys, AzollaSettings};
use std::net::{SocketAddr, ToSocketAddrs};

impl Reader<'_> {
    /// An address. Only a server with keys may be reached from other machines.
    pub(super) fn listen(&mut self, key: &str, keys: &ApiKeys) -> Option<SocketAddr> {
        let text = self.text(key);
        let address = text.as_str().to_socket_addrs().ok().and_then(|mut found| found.next());
        let Some(address) = address else {
            let message = format!("found \"{text}\"; allowed is an address with a port, such as \"127.0.0.1:8080\"");
            self.wrong(key, &message);
            return None;
        };
        if !address.ip().is_loopback() && keys.is_empty() {
            let message = format!(
                "found \"{text}\", which other machines can reach; allowed without a key are loopback addresses: \
                 set api_key_file (or REDRIVE_API_KEY), or listen on 127.0.0.1"
            );
            self.wrong(key, &message);
        }
        Some(address)
    }

    pub(super) fn azolla(&mut self) -> AzollaSettings {
        AzollaSettings {
            lease: self.duration("azolla.lease"),
            reconnect: self.duration("azolla.reconnect"),
            timeout: self.duration("azolla.timeout"),
            concurrency: self.number("azolla.concurrency"),
            dead_letters: self.flag("azolla.dead_letters"),
        }
    }
}
