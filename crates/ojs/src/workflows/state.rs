//! What is stored of a workflow: one JSON object, in which everything that a node does not have is left out.

use redrive_policy::Moment;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The nodes of a workflow and how far they are. The first node is the workflow itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkflowState {
    /// What its owner calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) nodes: Vec<Node>,
    /// When it was cancelled, in microseconds of the wall clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cancelled_us: Option<i64>,
}

/// One part of a workflow.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    #[serde(rename = "k")]
    pub(crate) kind: Kind,
    #[serde(rename = "s", default, skip_serializing_if = "Status::is_waiting")]
    pub(crate) status: Status,
    /// The node that it is a part of; of the workflow itself, its own.
    #[serde(rename = "in", default, skip_serializing_if = "is_zero")]
    pub(crate) parent: u32,
    /// Its parts, in order; of a batch, the callbacks are the last of them.
    #[serde(rename = "of", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<u32>,
    /// The nodes of the same graph that must have completed before it starts.
    #[serde(rename = "after", default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) after: Vec<u32>,
    /// The name that the caller gave to it within the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// When it is a callback of a batch.
    #[serde(rename = "on", default, skip_serializing_if = "Option::is_none")]
    pub(crate) callback: Option<Callback>,
    /// The type of the job.
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    pub(crate) job_type: String,
    /// The job as the caller wrote it, until it is enqueued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<Box<RawValue>>,
    /// When its job was enqueued, in microseconds of the wall clock.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    pub(crate) enqueued_us: Option<i64>,
    /// What it returned, where another job is given it.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Box<RawValue>>,
    /// Of a chain: how many of its first parts have results that are not stored here any more.
    #[serde(rename = "o", default, skip_serializing_if = "is_zero")]
    pub(crate) forgotten: u32,
    /// What went wrong.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<Box<NodeError>>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// One job.
    Job,
    /// Its parts run one after the other.
    Chain,
    /// Its parts run at the same time.
    Group,
    /// As a group, and jobs that are enqueued when all have ended.
    Batch,
    /// Its parts run when those that they depend on have completed.
    Graph,
}

/// How far a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// It has not started.
    #[default]
    #[serde(rename = "w")]
    Waiting,
    /// Its job is enqueued, or a part of it has started.
    #[serde(rename = "p")]
    Started,
    #[serde(rename = "c")]
    Completed,
    #[serde(rename = "f")]
    Failed,
    /// It was cancelled, or will never start.
    #[serde(rename = "x")]
    Cancelled,
}

impl Status {
    const fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting)
    }

    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// When a callback of a batch is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Callback {
    /// When all jobs have ended.
    #[serde(rename = "on_complete")]
    Complete,
    /// When all jobs have completed.
    #[serde(rename = "on_success")]
    Success,
    /// When all jobs have ended, and not all of them have completed.
    #[serde(rename = "on_failure")]
    Failure,
}

impl Callback {
    pub(crate) const ALL: [Self; 3] = [Self::Complete, Self::Success, Self::Failure];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Complete => "on_complete",
            Self::Success => "on_success",
            Self::Failure => "on_failure",
        }
    }
}

/// What went wrong with a job, as far as a workflow tells it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodeError {
    /// The attempt that failed; absent where the job failed without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<u32>,
    pub(crate) code: String,
    pub(crate) message: String,
}

/// Why `skip_serializing_if` needs a reference: serde calls it with one.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl WorkflowState {
    /// Reads what is stored.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let state: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("the state of the workflow is damaged: {error}"))?;
        let known = |index: &u32| (*index as usize) < state.nodes.len();
        let whole = |node: &Node| known(&node.parent) && node.parts.iter().chain(&node.after).all(known);
        if state.nodes.is_empty() || !state.nodes.iter().all(whole) {
            return Err("the state of the workflow is damaged: a node that it refers to is missing".to_owned());
        }
        Ok(state)
    }

    /// What is stored.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn node(&self, index: u32) -> &Node {
        &self.nodes[index as usize]
    }

    pub(crate) fn node_mut(&mut self, index: u32) -> &mut Node {
        &mut self.nodes[index as usize]
    }

    pub(crate) fn cancelled_at(&self) -> Option<Moment> {
        self.cancelled_us.map(Moment::from_micros)
    }

    /// How many nodes are jobs and have this status; callbacks do not count.
    pub(crate) fn count(&self, counts: impl Fn(Status) -> bool) -> usize {
        let jobs = self.nodes.iter().filter(|node| node.kind == Kind::Job && node.callback.is_none());
        jobs.filter(|node| counts(node.status)).count()
    }

    /// The jobs that have to end before a node starts.
    pub(crate) fn before(&self, index: u32) -> Vec<u32> {
        if index == 0 {
            return Vec::new();
        }
        let node = self.node(index);
        let around = self.node(node.parent);
        let parts: Vec<u32> = match around.kind {
            Kind::Chain => around.parts.iter().copied().take_while(|part| *part != index).last().into_iter().collect(),
            Kind::Graph => node.after.clone(),
            Kind::Batch if node.callback.is_some() => self.jobs_of_batch(node.parent),
            Kind::Batch | Kind::Group | Kind::Job => Vec::new(),
        };
        if parts.is_empty() {
            return self.before(node.parent);
        }
        parts.into_iter().flat_map(|part| self.last_jobs(part)).collect()
    }

    /// The jobs of a batch, without its callbacks.
    pub(crate) fn jobs_of_batch(&self, batch: u32) -> Vec<u32> {
        self.node(batch).parts.iter().copied().filter(|part| self.node(*part).callback.is_none()).collect()
    }

    /// The jobs with whose end a node ends.
    fn last_jobs(&self, index: u32) -> Vec<u32> {
        let node = self.node(index);
        let last: Vec<u32> = match node.kind {
            Kind::Job => return vec![index],
            Kind::Chain => node.parts.last().copied().into_iter().collect(),
            Kind::Group => node.parts.clone(),
            Kind::Batch => node.parts.iter().copied().filter(|part| self.node(*part).callback.is_some()).collect(),
            Kind::Graph => {
                let is_last = |part: &u32| !node.parts.iter().any(|other| self.node(*other).after.contains(part));
                node.parts.iter().copied().filter(is_last).collect()
            }
        };
        last.into_iter().flat_map(|part| self.last_jobs(part)).collect()
    }
}
