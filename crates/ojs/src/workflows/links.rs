//! How the nodes of a graph depend on each other.

use super::state::{Status, WorkflowState};

/// How the nodes of graphs depend on each other, so that the end of a node does not look at all others.
pub(super) struct Links {
    /// The nodes that depend on each node.
    pub(super) after: Vec<Vec<u32>>,
    /// How many nodes that each one depends on have not completed.
    pub(super) missing: Vec<usize>,
}

impl Links {
    pub(super) fn of(state: &WorkflowState) -> Self {
        let mut after = vec![Vec::new(); state.nodes.len()];
        let mut missing = vec![0; state.nodes.len()];
        for (index, node) in state.nodes.iter().enumerate() {
            for before in &node.after {
                after[*before as usize].push(index as u32);
                missing[index] += usize::from(state.node(*before).status != Status::Completed);
            }
        }
        Self { after, missing }
    }
}
