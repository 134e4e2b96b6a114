//! Registered nodes and graphs, each as a run that is only there to be read and replaced.

use crate::node::Node;
use crate::template::Template;
use redrive_engine::{Context, Engine, Input, Program, ProgramStep, Submission};
use redrive_policy::Moment;
use redrive_store::MessageBody;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kind of the runs that stand for registered nodes.
pub const NODE: &str = "exosphere.node";
/// The kind of the runs that stand for graphs.
pub const GRAPH: &str = "exosphere.graph";
/// The signal that a definition becomes what its body says.
pub const REPLACE: &str = "replace";

/// The key of the run that stands for a node; of the empty name, what all of a namespace begin with.
#[must_use]
pub fn node_key(namespace: &str, name: &str) -> Arc<str> {
    format!("{NODE}:{namespace}/{name}").into()
}

/// The key of the run that stands for a graph; of the empty name, what all of a namespace begin with.
#[must_use]
pub fn graph_key(namespace: &str, name: &str) -> Arc<str> {
    format!("{GRAPH}:{namespace}/{name}").into()
}

/// A graph as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GraphDefinition {
    /// The graph.
    pub template: Template,
    /// Its secrets, by name, encrypted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// In what it does not fit the nodes that were registered when it was put.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

impl GraphDefinition {
    /// Whether it can be triggered.
    #[must_use]
    pub const fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Reads what is stored.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the stored graph is damaged: {error}"))
    }
}

impl Node {
    /// Reads what is stored.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the stored node is damaged: {error}"))
    }
}

/// The program of registered nodes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nodes;

/// The program of graphs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Graphs;

impl Program for Nodes {
    fn kind(&self) -> &'static str {
        NODE
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        Ok(replaced(context, input))
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("a registered node enqueues no jobs".to_owned())
    }
}

impl Program for Graphs {
    fn kind(&self) -> &'static str {
        GRAPH
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        Ok(replaced(context, input))
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("a graph enqueues no jobs; its runs do".to_owned())
    }
}

/// A definition stays as it is until it is replaced.
fn replaced(context: &Context<'_>, input: &Input<'_>) -> ProgramStep {
    let state = match input {
        Input::Message(MessageBody::Signal(signal)) if &*signal.name == REPLACE => signal.body.to_vec(),
        _ => context.state.to_vec(),
    };
    ProgramStep { state, effects: Vec::new() }
}
