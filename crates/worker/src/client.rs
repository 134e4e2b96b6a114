//! For those who hand in jobs.

use crate::transport::Transport;
use crate::{ClientError, NewJob};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The way to whoever keeps the jobs: a server, or a folder of this program. It is cheap to clone.
#[derive(Clone)]
pub struct Client {
    transport: Arc<dyn Transport>,
}

impl Client {
    /// A server of Open Job Spec, such as `http://127.0.0.1:8080`. Nothing is sent yet.
    ///
    /// # Errors
    /// The address is none.
    #[cfg(feature = "http")]
    pub fn http(url: &str) -> Result<Self, ClientError> {
        Ok(Self::over(crate::transport::http::Http::new(url, None)?))
    }

    /// The same with an API key, which travels as a bearer token.
    ///
    /// # Errors
    /// The address is none, or the key cannot travel in a header.
    #[cfg(feature = "http")]
    pub fn http_with_key(url: &str, key: &str) -> Result<Self, ClientError> {
        Ok(Self::over(crate::transport::http::Http::new(url, Some(key))?))
    }

    pub(crate) fn over(transport: impl Transport) -> Self {
        Self { transport: Arc::new(transport) }
    }

    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }

    /// Hands in a job. Once this answers, the job is safe.
    ///
    /// # Errors
    /// The server refuses it, or cannot be reached.
    pub async fn enqueue(&self, job: NewJob) -> Result<JobInfo, ClientError> {
        let kept = self.transport.enqueue(vec![job]).await?.pop();
        let (envelope, _) = kept.ok_or_else(|| ClientError::Garbled("the server kept a job and named none".into()))?;
        Ok(JobInfo { envelope })
    }

    /// Hands in jobs, all or none.
    ///
    /// # Errors
    /// The server refuses one of them, or cannot be reached.
    pub async fn enqueue_all(&self, jobs: Vec<NewJob>) -> Result<Vec<JobInfo>, ClientError> {
        let kept = self.transport.enqueue(jobs).await?;
        Ok(kept.into_iter().map(|(envelope, _)| JobInfo { envelope }).collect())
    }

    /// What is known about a job.
    ///
    /// # Errors
    /// There is no such job, or the server cannot be reached.
    pub async fn job(&self, id: &str) -> Result<JobInfo, ClientError> {
        Ok(JobInfo { envelope: self.transport.job(id).await? })
    }

    /// Calls a job off. A handler that runs it is told at its next sign of life.
    ///
    /// # Errors
    /// There is no such job, it has ended, or the server cannot be reached.
    pub async fn cancel(&self, id: &str) -> Result<JobInfo, ClientError> {
        Ok(JobInfo { envelope: self.transport.cancel(id).await? })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// What is known about a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobInfo {
    envelope: Value,
}

impl JobInfo {
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
