//! Keys as they are stored. Times are elapsed time: a clock that is set neither revives a key nor ends one.

use super::scope::{Scope, Scopes};
use super::secret::{PREFIX, SecretHash};
use redrive_policy::Moment;
use serde::{Deserialize, Serialize};

/// The longest name of a key.
pub(crate) const LONGEST_NAME: usize = 64;

/// Whether a text can be the name of a key.
pub(crate) fn is_key_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(plain)
}

/// A key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredKey {
    pub(crate) name: String,
    pub(crate) scopes: Scopes,
    /// The queues that it is for; none for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) queues: Vec<QueuePattern>,
    pub(crate) created_us: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_us: Option<i64>,
    /// The newest first. One that a rotation has replaced may be valid for some time more.
    pub(crate) secrets: Vec<StoredSecret>,
}

/// One secret of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredSecret {
    pub(crate) id: String,
    pub(crate) hash: SecretHash,
    pub(crate) made_us: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until_us: Option<i64>,
}

impl StoredKey {
    /// Whether it can be used at a time.
    pub(crate) fn is_valid(&self, now: Moment) -> bool {
        self.expires_us.is_none_or(|end| now.micros() < end)
    }

    /// Whether it may do everything.
    pub(crate) fn is_for_everything(&self) -> bool {
        self.scopes.contain(Scope::Admin) && self.queues.is_empty()
    }
}

impl StoredSecret {
    /// What it begins with, by which a key that was found somewhere can be told.
    pub(crate) fn beginning(&self) -> String {
        format!("{PREFIX}{}", self.id)
    }

    pub(super) fn is_valid(&self, now: Moment) -> bool {
        self.until_us.is_none_or(|end| now.micros() < end)
    }
}

/// The name of a queue, or what names begin with, followed by `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct QueuePattern(pub(crate) String);

impl QueuePattern {
    pub(crate) fn fits(&self, queue: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => queue.starts_with(beginning),
            None => self.0 == queue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_or_what_names_begin_with() {
        let fits = |pattern: &str, queue: &str| QueuePattern(pattern.to_owned()).fits(queue);
        assert!(fits("mail", "mail") && fits("mail.*", "mail.bulk") && fits("*", "anything") && fits("mail*", "mail"));
        assert!(!fits("mail", "mail.bulk") && !fits("mail.*", "mail") && !fits("mail", "Mail") && !fits("m*l", "mail"));
    }
}
