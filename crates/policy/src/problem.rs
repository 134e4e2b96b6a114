//! What is wrong with a policy.

use serde::Serialize;
#[cfg(feature = "dialects")]
use serde_json::Value;
use std::fmt;

/// One problem: where, what was found, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// A JSON Pointer to the field; empty for the whole document.
    pub path: String,
    /// The problem in one sentence: the value found, what is allowed, and the way out.
    pub message: String,
}

impl Problem {
    /// A value that is not allowed where it stands.
    #[must_use]
    pub fn new(path: impl Into<String>, found: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Self { path: path.into(), message: format!("found {found}; allowed is {allowed}") }
    }

    /// A problem with a message of its own.
    #[must_use]
    pub fn with_message(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// Every problem of a policy, in the order of its fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let path = if problem.path.is_empty() { "(whole document)" } else { &problem.path };
            let lead = if index == 0 { "" } else { "\n" };
            write!(f, "{lead}{path}: {}", problem.message)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// A value as it is shown in a message: its JSON, shortened where it is long.
#[cfg(feature = "dialects")]
#[must_use]
pub(crate) fn shown(value: &Value) -> String {
    const LONGEST: usize = 60;
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object with {} fields", fields.len()),
        scalar => {
            let text = scalar.to_string();
            if text.chars().count() <= LONGEST {
                return text;
            }
            let start: String = text.chars().take(LONGEST).collect();
            format!("{start}…")
        }
    }
}

/// The path of a member, with its key escaped as RFC 6901 wants it.
#[cfg(feature = "dialects")]
#[must_use]
pub(crate) fn member(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}
