//! Workflows that were started.

use crate::ClientError;
use crate::delay::until_ended;
use crate::transport::{Ask, Transport};
use crate::workflow::{Workflow, WorkflowKind};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How many are read in one request.
const STEP: usize = 100;

/// The workflows, or those that go on, or those that have ended: `client.workflows().running().list(20)`.
#[derive(Clone)]
pub struct Workflows {
    transport: Arc<dyn Transport>,
    ended: Option<bool>,
}

impl Workflows {
    pub(crate) fn new(transport: Arc<dyn Transport>) -> Self {
        Self { transport, ended: None }
    }

    /// Starts a workflow. When this returns, it is durable, and its first jobs are enqueued.
    ///
    /// # Errors
    /// The server refuses it, with every problem and its place, or cannot be reached.
    pub async fn start<K: WorkflowKind>(&self, workflow: Workflow<K>) -> Result<WorkflowInfo, ClientError> {
        self.ask(Ask::StartWorkflow(workflow.document()?)).await
    }

    /// How far a workflow is.
    ///
    /// # Errors
    /// There is no such workflow, or the server cannot be reached.
    pub async fn get(&self, id: &str) -> Result<WorkflowInfo, ClientError> {
        self.ask(Ask::Workflow(id)).await
    }

    /// Cancels a workflow: what waits is cancelled, and what a worker has may complete.
    ///
    /// # Errors
    /// There is no such workflow, it has ended, or the server cannot be reached.
    pub async fn cancel(&self, id: &str) -> Result<WorkflowInfo, ClientError> {
        self.ask(Ask::CancelWorkflow(id)).await
    }

    /// Waits until a workflow has ended, for at most `within`.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] if it has not ended by then; there is no such workflow, or the server refuses. While
    /// the server is unreachable, the client tries again.
    pub async fn wait(&self, id: &str, within: Duration) -> Result<WorkflowInfo, ClientError> {
        until_ended(within, || self.get(id), WorkflowInfo::has_ended).await
    }

    /// Only those that go on.
    #[must_use]
    pub fn running(mut self) -> Self {
        self.ended = Some(false);
        self
    }

    /// Only those that have ended.
    #[must_use]
    pub fn ended(mut self) -> Self {
        self.ended = Some(true);
        self
    }

    /// The newest of them, at most `limit`.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn list(&self, limit: usize) -> Result<Vec<WorkflowInfo>, ClientError> {
        let (mut found, mut after) = (Vec::new(), None);
        while found.len() < limit {
            let ask = Ask::ListWorkflows { ended: self.ended, after, limit: STEP.min(limit - found.len()) };
            let mut page = self.transport.ask(ask).await?;
            if let Value::Array(entries) = page["workflows"].take() {
                found.extend(entries.into_iter().map(WorkflowInfo));
            }
            after = page["next_after"].as_str().map(str::to_owned);
            if after.is_none() {
                break;
            }
        }
        Ok(found)
    }

    async fn ask(&self, ask: Ask<'_>) -> Result<WorkflowInfo, ClientError> {
        Ok(WorkflowInfo(self.transport.ask(ask).await?))
    }
}

impl fmt::Debug for Workflows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflows").field("ended", &self.ended).finish_non_exhaustive()
    }
}

/// What is known about a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkflowInfo(Value);

impl WorkflowInfo {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        text(&self.0, "id")
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0["name"].as_str()
    }

    /// `running`, `completed`, `failed` or `cancelled`.
    #[must_use]
    pub fn state(&self) -> &str {
        text(&self.0, "state")
    }

    /// Whether it has ended, and goes on only after a redrive of one of its jobs.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), "completed" | "failed" | "cancelled")
    }

    /// Its jobs, in the order in which they were given.
    pub fn steps(&self) -> impl Iterator<Item = StepInfo<'_>> {
        self.0["steps"].as_array().into_iter().flatten().map(StepInfo)
    }

    /// What went wrong, as the server reports it.
    #[must_use]
    pub fn errors(&self) -> &[Value] {
        self.0["errors"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Everything that the server reports.
    #[must_use]
    pub const fn document(&self) -> &Value {
        &self.0
    }
}

/// One job of a workflow.
#[derive(Clone, Copy, Debug)]
pub struct StepInfo<'a>(&'a Value);

impl<'a> StepInfo<'a> {
    /// Its name in a graph.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        self.0["id"].as_str()
    }

    /// The type of the job.
    #[must_use]
    pub fn kind(self) -> &'a str {
        text(self.0, "type")
    }

    /// `waiting`, `pending`, `scheduled`, `active`, `retryable`, `completed`, `failed` or `cancelled`.
    #[must_use]
    pub fn state(self) -> &'a str {
        text(self.0, "state")
    }

    /// The id of the job, once it is enqueued.
    #[must_use]
    pub fn job_id(self) -> Option<&'a str> {
        self.0["job_id"].as_str()
    }

    /// What the handler returned, read into a type; `()` if it returned nothing. Lists of workflows do not have it.
    ///
    /// # Errors
    /// It is of another type.
    pub fn result<R: DeserializeOwned>(self) -> Result<R, ClientError> {
        serde_json::from_value(self.0.get("result").cloned().unwrap_or_default()).map_err(|error| {
            ClientError::Garbled(format!("the result of {} is not what is expected: {error}", self.kind()))
        })
    }

    /// Everything that the server reports.
    #[must_use]
    pub const fn document(self) -> &'a Value {
        self.0
    }
}

fn text<'a>(document: &'a Value, key: &str) -> &'a str {
    document[key].as_str().unwrap_or_default()
}
