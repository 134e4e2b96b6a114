//! Names that callers choose: job types, queues, workers, and the ids of jobs.

use crate::Limits;
use crate::json::Members;
use redrive_policy::Problem;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Which names a queue can have, for messages.
pub const QUEUE_ALLOWED: &str =
    "lower-case letters, digits, dots and hyphens, with a letter or digit first, such as \"email\" or \"reports.eu-1\"";
const TYPE_ALLOWED: &str = "words of lower-case letters, digits, _ and -, with a letter first, joined by dots, such as \
     \"email.send\"";

/// Whether a text can be the name of a job type: words joined by dots; each starts with a letter. Hyphens are allowed
/// because the cases of the suite use them.
#[must_use]
pub fn is_type(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    text.split('.').all(|word| word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(inside))
}

/// Whether a text can be the name of a queue: lower-case letters, digits, dots and hyphens, with a letter or digit
/// first.
#[must_use]
pub fn is_queue(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(plain) && text.bytes().all(|byte| plain(byte) || byte == b'.' || byte == b'-')
}

/// Any text as a word of the name of a queue. Queues have lower-case names: a capital letter becomes a hyphen and the
/// small letter, and every byte that is no letter or digit a hyphen, a zero and its two hexadecimal digits. Different
/// texts give different words.
#[must_use]
pub fn queue_word(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => word.push(byte.into()),
            b'A'..=b'Z' => word.extend(['-', byte.to_ascii_lowercase().into()]),
            // Writing into a text cannot fail.
            other => drop(write!(word, "-0{other:02x}")),
        }
    }
    word
}

impl<'a> Members<'a> {
    /// The type of a job.
    pub fn type_name(&self, key: &str, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Cow<'a, str>> {
        self.name(key, TYPE_ALLOWED, is_type, limits, problems)
    }

    /// The name of a queue.
    pub fn queue_name(&self, key: &str, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Cow<'a, str>> {
        self.name(key, QUEUE_ALLOWED, is_queue, limits, problems)
    }

    /// The name of a worker: any text.
    pub fn worker_name(&self, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Cow<'a, str>> {
        self.name("worker_id", "a string", |_| true, limits, problems)
    }

    /// The operator who asks for a change, for the record: any text.
    pub fn operator_name(&self, limits: &Limits, problems: &mut Vec<Problem>) -> Option<Cow<'a, str>> {
        self.name("by", "a string", |_| true, limits, problems)
    }

    fn name(
        &self,
        key: &str,
        allowed: &str,
        fits: impl Fn(&str) -> bool,
        limits: &Limits,
        problems: &mut Vec<Problem>,
    ) -> Option<Cow<'a, str>> {
        let most = limits.name_bytes;
        let name = self.text(key, problems)?;
        let fits = fits(&name) && name.len() <= most;
        if !fits {
            self.wrong(key, &format!("{allowed}; at most {most} bytes"), problems);
        }
        fits.then_some(name)
    }

    /// The id of a job.
    #[cfg(feature = "store")]
    pub fn job_id(&self, key: &str, problems: &mut Vec<Problem>) -> Option<redrive_store::JobId> {
        let text = self.text(key, problems)?;
        let id = text.parse().ok();
        if id.is_none() {
            self.wrong(key, "a UUID of version 7 in lower case, with hyphens", problems);
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_words_joined_by_dots() {
        for good in ["a", "email.send", "dlq.test.manual-retry", "x_1.y2"] {
            assert!(is_type(good), "{good}");
        }
        for bad in ["", "Email.Send", "1email.send", "email send", "email@send!", ".a", "a.", "a..b", "a.-b", "a.1"] {
            assert!(!is_type(bad), "{bad}");
        }
    }

    #[test]
    fn queues_are_plain() {
        for good in ["default", "0-q", "a.b-c"] {
            assert!(is_queue(good), "{good}");
        }
        for bad in ["", "Default", "my_queue!", "-invalid", "my queue", ".a", "ä"] {
            assert!(!is_queue(bad), "{bad}");
        }
    }
}
