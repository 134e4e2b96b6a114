//! Addresses to listen on, and what holds at that of Azolla's protocol.

use super::build::Reader;
use redrive_server::{ApiKeys, AzollaSettings};
use std::net::{SocketAddr, ToSocketAddrs};

impl Reader<'_> {
    /// An address. Only a server with keys may be reached from other machines.
    pub(super) fn listen(&mut self, key: &str) -> Option<SocketAddr> {
        let text = self.text(key);
        let address = text.as_str().to_socket_addrs().ok().and_then(|mut found| found.next());
        let Some(address) = address else {
            let message = format!("found \"{text}\"; allowed is an address with a port, such as \"127.0.0.1:8080\"");
            self.wrong(key, &message);
            return None;
        };
        Some(address)
    }

    /// Whether everyone may call. That, and a key, are not wanted at the same time.
    pub(super) fn anyone_may_call(&mut self, keys: &ApiKeys) -> bool {
        let anyone = self.flag("anyone_may_call");
        if anyone && !keys.is_empty() {
            self.wrong("anyone_may_call", "found together with a key, which nobody would need; keep one of them");
        }
        anyone
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
