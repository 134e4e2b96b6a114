//! What is known about a job.

use crate::ClientError;
use serde::de::DeserializeOwned;
use serde_json::Value;
#[cfg(feature = "http")]
use serde_json::value::RawValue;
use std::sync::OnceLock;

/// What is known about a job.
#[derive(Clone, Debug)]
pub struct JobInfo {
    data: JobData,
    /// Parsed on first use: a caller that enqueues a thousand jobs rarely needs it.
    envelope: OnceLock<Value>,
}

/// What is known about a job, in the form in which it arrived.
#[derive(Clone, Debug)]
pub(crate) enum JobData {
    #[cfg(feature = "http")]
    Value(Value),
    #[cfg(feature = "http")]
    Text(Box<RawValue>),
    #[cfg(feature = "embedded")]
    Stored(Box<crate::transport::embedded::Stored>),
}

impl JobData {
    fn read(&self) -> Value {
        match self {
            #[cfg(feature = "http")]
            Self::Value(value) => value.clone(),
            #[cfg(feature = "http")]
            Self::Text(text) => serde_json::from_str(text.get()).unwrap_or_default(),
            #[cfg(feature = "embedded")]
            Self::Stored(stored) => stored.envelope(),
        }
    }
}

impl JobInfo {
    pub(crate) const fn new(data: JobData) -> Self {
        Self { data, envelope: OnceLock::new() }
    }

    /// Its id.
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

    /// Whether it has ended, and runs again only after a redrive.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), "completed" | "cancelled" | "discarded")
    }

    /// How many runs have started.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.envelope()["attempt"].as_u64().unwrap_or(0)
    }

    /// What the handler returned, read into a type; `()` if it returned nothing.
    ///
    /// # Errors
    /// It is of another type.
    pub fn result<R: DeserializeOwned>(&self) -> Result<R, ClientError> {
        let result = self.envelope().get("result").cloned().unwrap_or_default();
        serde_json::from_value(result).map_err(|error| {
            ClientError::Garbled(format!("the result of {} is not what is expected: {error}", self.id()))
        })
    }

    /// The failed attempts, oldest first, as the server reports them.
    #[must_use]
    pub fn errors(&self) -> &[Value] {
        self.envelope()["errors"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Everything that the server reports.
    #[must_use]
    pub fn envelope(&self) -> &Value {
        self.envelope.get_or_init(|| self.data.read())
    }

    fn text(&self, key: &str) -> &str {
        self.envelope()[key].as_str().unwrap_or_default()
    }
}
