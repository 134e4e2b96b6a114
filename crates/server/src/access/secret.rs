//! The secret of a stored key: what a caller presents, and the hash that the store has of it.

use super::configured::same;
use crate::secrets::{hex, unhex};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// What every stored key begins with, so that scanners of source code find it.
pub(super) const PREFIX: &str = "rdk_";
/// How many random bytes the id of a secret has, by which it is looked up, and the secret itself.
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// A secret that was just made. Only its hash is stored.
pub(crate) struct NewSecret {
    /// What the caller is shown, once.
    pub(crate) text: String,
    pub(crate) id: String,
    pub(crate) hash: SecretHash,
}

impl NewSecret {
    /// `None` where the system has no randomness.
    pub(crate) fn make() -> Option<Self> {
        let mut bytes = [0; ID_BYTES + SECRET_BYTES];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let (id, secret) = bytes.split_at(ID_BYTES);
        let id = hex(id);
        let text = format!("{PREFIX}{id}_{}", hex(secret));
        let hash = SecretHash::of(text.as_bytes());
        Some(Self { text, id, hash })
    }
}

/// The id in what a caller presents, if it may be a stored key at all.
pub(super) fn id_of(presented: &[u8]) -> Option<&str> {
    const LENGTH: usize = PREFIX.len() + 2 * ID_BYTES + 1 + 2 * SECRET_BYTES;
    let text = std::str::from_utf8(presented).ok().filter(|text| text.len() == LENGTH)?;
    text.strip_prefix(PREFIX)?.get(..2 * ID_BYTES)
}

/// The hash of a secret. Secrets are random and long, so that there is no list of likely ones to try: a slow hash would
/// only slow down requests.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretHash([u8; 32]);

impl SecretHash {
    fn of(secret: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, secret).as_ref());
        Self(hash)
    }

    /// Whether it is that of what a caller presents, in a time that does not depend on where they differ.
    pub(super) fn is_of(&self, presented: &[u8]) -> bool {
        same(&self.0, &Self::of(presented).0)
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hash)")
    }
}

impl Serialize for SecretHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for SecretHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = unhex(&text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| de::Error::custom("a hash of 64 hexadecimal digits is needed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_by_its_hash_and_by_nothing_near_it() {
        let secret = NewSecret::make().unwrap();
        assert_eq!(id_of(secret.text.as_bytes()), Some(&*secret.id));
        assert!(secret.hash.is_of(secret.text.as_bytes()));
        for index in 0..secret.text.len() {
            let mut near = secret.text.clone().into_bytes();
            near[index] ^= 1;
            assert!(!secret.hash.is_of(&near), "byte {index}");
        }
        for wrong in ["", "rdk_", &secret.text[1..], &format!("{}0", secret.text), &"é".repeat(42)] {
            assert_eq!(id_of(wrong.as_bytes()), None, "{wrong}");
        }
        assert_ne!(NewSecret::make().unwrap().text, secret.text);
        assert_eq!(format!("{:?}", secret.hash), "(hash)");
        let stored = serde_json::to_string(&secret.hash).unwrap();
        assert!(!stored.contains(&secret.text[21..]));
        assert_eq!(serde_json::from_str::<SecretHash>(&stored).unwrap(), secret.hash);
        assert!(serde_json::from_str::<SecretHash>("\"abc\"").is_err());
    }
}
