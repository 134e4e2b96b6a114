//! What is known about a job.

use crate::ClientError;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is known about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobInfo {
    envelope: Value,
}

impl JobInfo {
    pub(crate) const fn new(envelope: Value) -> Self {
        Self { envelope }
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        self.text("id")
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("type")
    }

    /// Its state, such as `available`, `retryable` or `completed`.
    #[must_use]
    pub fn state(&self) -> &str {
        self.text("state")
    }

    /// Whether it will not run again by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), "completed" | "cancelled" | "discarded")
    }

    /// How many runs have started.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.envelope["attempt"].as_u64().unwrap_or(0)
    }

    /// What the handler returned, read into a type; `()` where it returned nothing.
    ///
    /// # Errors
    /// It is something else.
    pub fn result<R: DeserializeOwned>(&self) -> Result<R, ClientError> {
        let result = self.envelope.get("result").cloned().unwrap_or_default();
        serde_json::from_value(result).map_err(|error| {
            ClientError::Garbled(format!("the result of {} is not what is expected: {error}", self.id()))
        })
    }

    /// The failed runs, oldest first, as the server tells them.
    #[must_use]
    pub fn errors(&self) -> &[Value] {
        self.envelope["errors"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Everything that the server tells.
    #[must_use]
    pub const fn envelope(&self) -> &Value {
        &self.envelope
    }

    fn text(&self, key: &str) -> &str {
        self.envelope[key].as_str().unwrap_or_default()
    }
}
