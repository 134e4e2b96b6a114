//! Registered nodes and graphs, as they are stored: each as a run.

use crate::node::Node;
use crate::template::Template;
use redrive_ojs::cron::Slots;
use redrive_policy::Moment;
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
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The graph.
    pub template: Template,
    /// Its secrets, by name, encrypted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// In what it does not fit the nodes that were registered when it was put.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// When it was put, in microseconds of the wall clock.
    #[serde(default)]
    pub(crate) put_us: i64,
    /// When it triggers itself, by expression.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) due: BTreeMap<String, Slots>,
    /// How many runs it has started itself.
    #[serde(default)]
    pub(crate) started: u64,
}

impl GraphDefinition {
    /// A graph as it is put.
    #[must_use]
    pub fn new(namespace: &str, name: &str, template: Template) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            template,
            secrets: BTreeMap::new(),
            errors: Vec::new(),
            put_us: 0,
            due: BTreeMap::new(),
            started: 0,
        }
    }

    /// When it was put.
    #[must_use]
    pub const fn put_at(&self) -> Moment {
        Moment::from_micros(self.put_us)
    }

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
