//! Workers as operators see them.

use crate::ClientError;
use crate::transport::{Ask, Transport};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// How many are read in one request.
const STEP: usize = 500;

/// The workers that have called lately, and those that hold jobs.
///
/// ```
/// use redrive_worker::{Client, ClientError};
///
/// # #[cfg(not(feature = "embedded"))]
/// # fn main() {}
/// # #[cfg(feature = "embedded")]
/// # #[tokio::main]
/// # async fn main() -> Result<(), ClientError> {
/// # let folder = std::env::temp_dir().join(format!("redrive-doc-workers-{}", std::process::id()));
/// let client = Client::open(&folder).await?;
/// for worker in client.workers().list().await? {
///     println!("{} is {} and runs {} jobs", worker.id(), worker.state(), worker.active_jobs());
/// }
/// assert!(client.workers().get("mailer-1").await.is_err(), "it has not called");
/// # client.close().await?;
/// # let _ = std::fs::remove_dir_all(&folder);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Workers {
    transport: Arc<dyn Transport>,
}

impl Workers {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport }
    }

    /// All of them, by name.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn list(&self) -> Result<Vec<WorkerInfo>, ClientError> {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let mut page = self.transport.ask(Ask::ListWorkers { after, limit: STEP }).await?;
            if let Value::Array(workers) = page["items"].take() {
                found.extend(workers.into_iter().map(WorkerInfo));
            }
            after = page["pagination"]["next_cursor"].as_str().map(str::to_owned);
            if after.is_none() {
                return Ok(found);
            }
        }
    }

    /// One worker, with the jobs that it runs.
    ///
    /// # Errors
    /// No worker of this name is known, or the server cannot be reached.
    pub async fn get(&self, id: &str) -> Result<WorkerInfo, ClientError> {
        Ok(WorkerInfo(self.transport.ask(Ask::Worker(id)).await?))
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Workers")
    }
}

/// What is known of a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerInfo(Value);

impl WorkerInfo {
    /// Its name.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0["id"].as_str().unwrap_or_default()
    }

    /// What it does, or is told to do: `running`, `quiet`, `drain` or `terminate`.
    #[must_use]
    pub fn state(&self) -> &str {
        self.0["state"].as_str().unwrap_or_default()
    }

    /// Whether it was not heard of for so long that it may be gone.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        self.0["stale"] == true
    }

    /// The queues that it fetches from.
    pub fn queues(&self) -> impl Iterator<Item = &str> {
        self.0["queues"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// How many jobs it runs.
    #[must_use]
    pub fn active_jobs(&self) -> u64 {
        self.0["active_jobs"].as_u64().unwrap_or(0)
    }

    /// When it was last heard of, in RFC 3339.
    #[must_use]
    pub fn last_seen_at(&self) -> &str {
        self.0["last_seen_at"].as_str().unwrap_or_default()
    }

    /// The ids of the jobs that it runs; only [`Workers::get`] has them, at most 1,000.
    pub fn job_ids(&self) -> impl Iterator<Item = &str> {
        self.0["jobs"].as_array().into_iter().flatten().filter_map(|job| job["job_id"].as_str())
    }

    /// Everything that the server reports.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}
