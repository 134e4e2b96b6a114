//! Secrets that callers store, encrypted with a key that the store does not have.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

/// How many bytes a key has.
const KEY_BYTES: usize = 32;

/// The keys for secrets. The first encrypts; all of them decrypt, so that a new one can take the place of an old one.
#[derive(Clone, Default)]
pub struct SecretKeys(Arc<[LessSafeKey]>);

/// Keys are never shown.
impl fmt::Debug for SecretKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys for secrets", self.0.len())
    }
}

impl SecretKeys {
    /// Reads keys from text: one on each line that is not empty, as 64 hexadecimal digits.
    ///
    /// # Errors
    /// A line that is no key, or no key at all.
    pub fn read(text: &str) -> Result<Self, String> {
        const MAKE: &str = "`openssl rand -hex 32` makes one";
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let key = |line: &str| {
            let bytes = unhex(line).filter(|bytes| bytes.len() == KEY_BYTES);
            let key = bytes.and_then(|bytes| UnboundKey::new(&AES_256_GCM, &bytes).ok());
            // The line itself may be a key with an error in it.
            let wrong =
                || format!("found a line of {} characters; allowed are 64 hexadecimal digits: {MAKE}", line.len());
            key.map(LessSafeKey::new).ok_or_else(wrong)
        };
        let keys: Vec<LessSafeKey> = lines.map(key).collect::<Result<_, String>>()?;
        if keys.is_empty() {
            return Err(format!("found no key; one on each line is needed: {MAKE}"));
        }
        Ok(Self(keys.into()))
    }

    /// Whether nothing can be encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Encrypts a text for a place: it can be read for this place only. `None` without a key.
    pub(crate) fn seal(&self, place: &str, text: &str) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = text.as_bytes().to_vec();
        let aad = Aad::from(place.as_bytes());
        self.0.first()?.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut sealed).ok()?;
        Some(hex(&nonce) + &hex(&sealed))
    }

    /// Decrypts what was encrypted for a place; `None` where no key fits.
    pub(crate) fn open(&self, place: &str, sealed: &str) -> Option<String> {
        let bytes = unhex(sealed)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        self.0.iter().find_map(|key| {
            let (nonce, mut sealed) = (Nonce::try_assume_unique_for_key(nonce).ok()?, sealed.to_vec());
            let text = key.open_in_place(nonce, Aad::from(place.as_bytes()), &mut sealed).ok()?;
            String::from_utf8(text.to_vec()).ok()
        })
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing into a text cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encrypted_is_read_with_its_key_and_for_its_place_only() {
        let (old, new) = ("ab".repeat(32), "0C".repeat(32));
        let before = SecretKeys::read(&old).unwrap();
        let sealed = before.seal("ns/g/token", "hunter2").unwrap();
        assert!(!sealed.contains("hunter2") && !sealed.contains(&hex(b"hunter2")));
        assert_ne!(before.seal("ns/g/token", "hunter2").unwrap(), sealed, "no two are alike");
        assert_eq!(before.open("ns/g/token", &sealed).as_deref(), Some("hunter2"));
        let both = SecretKeys::read(&format!("{new}\n\n{old}\n")).unwrap();
        assert_eq!(both.open("ns/g/token", &sealed).as_deref(), Some("hunter2"));
        assert_eq!(before.open("ns/g/token", &both.seal("ns/g/token", "x").unwrap()), None);
        assert_eq!(before.open("other/g/token", &sealed), None);
        let mut changed = sealed.clone();
        changed.replace_range(30..31, if sealed[30..31] == *"0" { "1" } else { "0" });
        for damaged in ["", "ab", "xyz", &sealed[..sealed.len() - 2], &*changed] {
            assert_eq!(before.open("ns/g/token", damaged), None, "{damaged}");
        }
        let empty = before.seal("p", "").unwrap();
        assert_eq!(before.open("p", &empty).as_deref(), Some(""));
        assert_eq!(SecretKeys::default().seal("p", ""), None);
        assert_eq!(format!("{both:?}"), "2 keys for secrets");
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_repeated() {
        for wrong in ["", "\n", "abc", &"ab".repeat(31), &"xy".repeat(32), &"é".repeat(32)] {
            let refused = SecretKeys::read(wrong).unwrap_err();
            assert!(wrong.trim().is_empty() || !refused.contains(wrong), "{refused}");
        }
    }
}
