//! Who may call: holders of one of the server's keys.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName};
use std::fmt;
use std::hint::black_box;

/// The shortest key that is accepted: 128 bits, if it is random and written in hexadecimal.
pub const SHORTEST_KEY: usize = 32;

/// The header in which Exosphere's SDK sends its key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The keys of a server. Without any, every client may call.
#[derive(Clone, Default)]
pub struct ApiKeys(Vec<Box<[u8]>>);

/// Keys are never shown.
impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl ApiKeys {
    /// Reads keys from text: one on each line that is not empty, so that an old and a new one can be
    /// valid at the same time.
    ///
    /// # Errors
    /// A key that is too short to be safe, or that cannot stand in a header.
    pub fn read(text: &str) -> Result<Self, String> {
        let keys: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if let Some(short) = keys.iter().find(|key| key.len() < SHORTEST_KEY) {
            let length = short.len();
            return Err(format!(
                "found a key of {length} characters; allowed are {SHORTEST_KEY} and more: `openssl rand -hex 32` makes one"
            ));
        }
        if keys.iter().any(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err("found a key with blanks or characters beyond ASCII, which cannot stand in a header".to_owned());
        }
        Ok(Self(keys.into_iter().map(|key| key.as_bytes().into()).collect()))
    }

    /// Whether no key is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a request may pass.
    pub(crate) fn admit(&self, headers: &HeaderMap) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let value = |name: HeaderName| headers.get(name).map(|value| value.as_bytes()).unwrap_or_default();
        let (scheme, key) = value(AUTHORIZATION).split_at_checked(7).unwrap_or_default();
        let (mut bearer, mut plain) = (false, false);
        for known in &self.0 {
            bearer |= same(known, key);
            plain |= same(known, value(API_KEY));
        }
        plain || bearer && scheme.eq_ignore_ascii_case(b"bearer ")
    }
}

/// Whether two keys are the same, in a time that does not depend on where they differ.
fn same(known: &[u8], given: &[u8]) -> bool {
    let mut difference = known.len() ^ given.len();
    for (index, byte) in known.iter().enumerate() {
        let other = given.get(index).copied().unwrap_or(0);
        difference |= usize::from(black_box(byte ^ other));
    }
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn admits(keys: &ApiKeys, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        keys.admit(&headers)
    }

    #[test]
    fn only_a_bearer_of_a_known_key_is_admitted() {
        let keys = ApiKeys::read(&format!("{KEY}\n\n  {KEY}2 \n")).unwrap();
        assert!(admits(&keys, &format!("Bearer {KEY}")));
        assert!(admits(&keys, &format!("bearer {KEY}2")));
        for wrong in [KEY.to_owned(), format!("Basic {KEY}"), format!("Bearer {KEY}3"), "Bearer ".to_owned()] {
            assert!(!admits(&keys, &wrong), "{wrong}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(API_KEY, KEY.parse().unwrap());
        assert!(keys.admit(&headers));
        headers.insert(API_KEY, format!("Bearer {KEY}").parse().unwrap());
        assert!(!keys.admit(&headers));
        assert!(!keys.admit(&HeaderMap::new()));
        assert!(ApiKeys::default().admit(&HeaderMap::new()));
    }

    #[test]
    fn weak_keys_are_refused_and_no_key_is_shown() {
        assert!(ApiKeys::read("short").unwrap_err().contains("5 characters"));
        assert!(ApiKeys::read(&"é".repeat(32)).is_err());
        assert_eq!(format!("{:?}", ApiKeys::read(KEY).unwrap()), "1 keys");
    }
}
