//! The keys in the settings of a server. Each of them may do everything.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;
use std::hint::black_box;

/// The shortest key that is accepted: 128 bits, if it is random and written in hexadecimal.
pub const SHORTEST_KEY: usize = 32;

/// The header in which Exosphere's SDK sends its key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The keys in the settings of a server.
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

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of the key that a request presents, from 1, if it presents one of these.
    pub(super) fn find(&self, presented: &Presented<'_>) -> Option<usize> {
        let mut found = None;
        for (index, known) in self.0.iter().enumerate() {
            for value in presented.values() {
                if same(known, value) {
                    found = Some(index + 1);
                }
            }
        }
        found
    }
}

/// What a request presents as its key: as a bearer, and as Exosphere's SDK does.
pub(super) struct Presented<'h>([Option<&'h [u8]>; 2]);

impl<'h> Presented<'h> {
    pub(super) fn read(headers: &'h HeaderMap) -> Self {
        let value = |name: HeaderName| headers.get(name).map(HeaderValue::as_bytes);
        let bearer = value(AUTHORIZATION).and_then(|value| value.split_at_checked(7));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
        Self([bearer.map(|(_, key)| key), value(API_KEY)])
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &'h [u8]> {
        self.0.into_iter().flatten()
    }
}

/// Whether two keys are the same, in a time that does not depend on where they differ.
pub(super) fn same(known: &[u8], given: &[u8]) -> bool {
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
        keys.find(&Presented::read(&headers)).is_some()
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
        let finds = |headers: &HeaderMap| keys.find(&Presented::read(headers));
        assert_eq!(finds(&headers), Some(1));
        headers.insert(API_KEY, format!("Bearer {KEY}").parse().unwrap());
        assert_eq!(finds(&headers), None);
        assert_eq!(finds(&HeaderMap::new()), None);
    }

    #[test]
    fn weak_keys_are_refused_and_no_key_is_shown() {
        assert!(ApiKeys::read("short").unwrap_err().contains("5 characters"));
        assert!(ApiKeys::read(&"é".repeat(32)).is_err());
        assert_eq!(format!("{:?}", ApiKeys::read(KEY).unwrap()), "1 keys");
    }
}
