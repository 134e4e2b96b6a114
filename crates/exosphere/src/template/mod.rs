//! Templates of graphs.

mod check;
mod placeholder;
mod read;
mod registered;
mod trigger;

pub use check::check;
pub(crate) use placeholder::{Part, parts};
pub use read::read_template;
pub use registered::registered_errors;
pub(crate) use trigger::schedule;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A graph as its owner has put it, without the values of its secrets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Its nodes.
    pub nodes: Vec<TemplateNode>,
    /// The retry policy as it was written; empty for the defaults.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub retry_policy: Map<String, Value>,
    /// What its runs store.
    #[serde(default)]
    pub store: Store,
    /// The cron expressions that trigger it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemplateNode {
    /// The registered node that it runs.
    pub node_name: String,
    /// The namespace of that node.
    pub namespace: String,
    /// Its name in the graph.
    pub identifier: String,
    /// What it is given: texts with placeholders.
    pub inputs: Map<String, Value>,
    /// The nodes that come after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next_nodes: Vec<String>,
    /// The node whose branches it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unites: Option<Unites>,
}

/// What a node waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unites {
    /// The node below which all states have to end.
    pub identifier: String,
    /// How they have to end.
    pub strategy: Strategy,
}

/// How the states that are united have to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// All of them succeed.
    #[default]
    #[serde(rename = "ALL_SUCCESS")]
    AllSuccess,
    /// All of them end, in whatever way.
    #[serde(rename = "ALL_DONE")]
    AllDone,
}

/// What the runs of a graph store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// Keys that every trigger has to bring.
    #[serde(default)]
    pub required_keys: Vec<String>,
    /// Values of keys that a trigger does not bring.
    #[serde(default)]
    pub default_values: BTreeMap<String, String>,
}

impl Template {
    /// The position of a node.
    #[must_use]
    pub fn position(&self, identifier: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.identifier == identifier)
    }

    /// The node that no other leads to. A template that was checked has one.
    #[must_use]
    pub fn root(&self) -> Option<usize> {
        let leads_to = |node: &TemplateNode| {
            node.unites.is_some() || self.nodes.iter().any(|other| other.next_nodes.contains(&node.identifier))
        };
        self.nodes.iter().position(|node| !leads_to(node))
    }
}
