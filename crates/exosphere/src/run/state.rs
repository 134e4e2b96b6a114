//! What is stored of a run of a graph: one JSON object, in which everything that a row does not have is left out.

use crate::template::Template;
use redrive_engine::{Child, Engine};
use redrive_policy::Moment;
use redrive_store::{JobId, Run};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The states of a run, and the template as it was when the run was triggered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunState {
    /// The namespace of the graph.
    pub namespace: String,
    /// The name of the graph.
    pub graph: String,
    /// The graph.
    pub template: Template,
    /// What the trigger has stored.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub store: BTreeMap<String, String>,
    /// The inputs of the first state.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
    /// After how many milliseconds the first state may run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub start_delay: u64,
    /// The states.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// States that have executed, and whose next states have not been created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) backlog: Vec<u32>,
}

/// A state.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The position of its node in the template.
    #[serde(rename = "n")]
    pub node: u32,
    /// The state that it comes after.
    #[serde(rename = "up", default, skip_serializing_if = "Option::is_none")]
    pub up: Option<u32>,
    /// How far it is.
    #[serde(rename = "s")]
    pub status: Status,
    /// When it was created, in microseconds of the wall clock.
    #[serde(rename = "u")]
    pub created_us: i64,
    /// The state whose job had this as a further output, and which of its outputs it is.
    #[serde(rename = "of", default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<(u32, u32)>,
    /// The outputs that other nodes read.
    #[serde(rename = "o", default, skip_serializing_if = "Map::is_empty")]
    pub outputs: Map<String, Value>,
    /// What went wrong.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How many retries it has taken; known when it has ended.
    #[serde(rename = "r", default, skip_serializing_if = "is_none")]
    pub retries: u32,
    /// The name that the caller gave to a manual retry, and what tells the calls from each other.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub manual: Option<(String, String)>,
    /// How many states below it have not ended, apart from those that unite it.
    #[serde(rename = "p", default, skip_serializing_if = "is_none")]
    pub(super) pending: u32,
    /// How many states below it have ended without success, apart from those that unite it.
    #[serde(rename = "f", default, skip_serializing_if = "is_none")]
    pub(super) failed: u32,
    /// The nodes that have united it.
    #[serde(rename = "j", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) joined: Vec<u32>,
}

/// How far a state is, as its run knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Its job has not ended.
    #[serde(rename = "q")]
    Started,
    /// It has outputs, and its next states have not been created.
    #[serde(rename = "x")]
    Executed,
    /// It has outputs, and its next states have been created.
    #[serde(rename = "s")]
    Success,
    /// It failed, and is not retried.
    #[serde(rename = "e")]
    Errored,
    /// It ended its branch.
    #[serde(rename = "p")]
    Pruned,
    /// It has outputs from which its next states cannot be created.
    #[serde(rename = "n")]
    NextCreatedError,
    /// Another state is there in its place, because an operator asked for it.
    #[serde(rename = "r")]
    Retried,
}

impl Status {
    /// Whether it goes on.
    #[must_use]
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::Started | Self::Executed)
    }

    /// Whether it has ended without success.
    #[must_use]
    pub const fn has_failed(self) -> bool {
        matches!(self, Self::Errored | Self::Pruned | Self::NextCreatedError)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_none(number: &u32) -> bool {
    *number == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Row {
    /// A state of a node that comes after another.
    pub(super) fn new(node: u32, up: Option<u32>, status: Status, now: Moment) -> Self {
        Self {
            node,
            up,
            status,
            created_us: now.micros(),
            copy_of: None,
            outputs: Map::new(),
            error: None,
            retries: 0,
            manual: None,
            pending: 0,
            failed: 0,
            joined: Vec::new(),
        }
    }
}

impl RunState {
    /// Reads what is stored.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let damaged = |why: &str| format!("the state of the run of a graph is damaged: {why}");
        let state: Self = serde_json::from_slice(bytes).map_err(|error| damaged(&error.to_string()))?;
        let (nodes, rows) = (state.template.nodes.len(), state.rows.len());
        let whole = |(index, row): (usize, &Row)| {
            let before = |other: u32| (other as usize) < index;
            (row.node as usize) < nodes && row.up.is_none_or(before) && row.copy_of.is_none_or(|(of, _)| before(of))
        };
        let known = |row: &u32| (*row as usize) < rows;
        if !state.rows.iter().enumerate().all(whole) || !state.backlog.iter().all(known) {
            return Err(damaged("a state that it refers to is missing"));
        }
        Ok(state)
    }

    /// What is stored.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        // Writing into memory cannot fail, and every key is a text.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// A state.
    #[must_use]
    pub fn row(&self, index: u32) -> &Row {
        &self.rows[index as usize]
    }

    pub(super) fn row_mut(&mut self, index: u32) -> &mut Row {
        &mut self.rows[index as usize]
    }

    /// The states that a state comes after, the nearest first.
    pub fn above(&self, index: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(self.row(index).up, |above| self.row(*above).up)
    }

    /// The row whose job stands for a state: its own, or that of which it is a further output.
    #[must_use]
    pub fn row_of_job(&self, index: u32) -> u32 {
        self.row(index).copy_of.map_or(index, |(of, _)| of)
    }

    /// The job of a state, or of the state of which it is a further output.
    #[must_use]
    pub fn job_id(&self, run: &Run, index: u32) -> JobId {
        Engine::child_job(run, self.child(self.row_of_job(index)))
    }

    /// The job of a state, as its run names it.
    pub(super) fn child(&self, index: u32) -> Child {
        Child { number: index.into(), at: Moment::from_micros(self.row(index).created_us) }
    }

    /// Whether a state has, or had, a job of its own.
    #[must_use]
    pub fn has_job(&self, index: u32) -> bool {
        self.row(index).copy_of.is_none()
    }
}
