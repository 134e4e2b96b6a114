//! The programs of a server: what its runs can be.

use crate::Limits;
use redrive_engine::Program;
use redrive_exosphere::{Graphs, Leases, Nodes, Runs};
use std::sync::Arc;

/// All programs, for the engine of a server with these limits, and these leases of states of graphs.
#[must_use]
pub fn programs(limits: &Limits, leases: Leases) -> Vec<Arc<dyn Program>> {
    let graphs: [Arc<dyn Program>; 3] =
        [Arc::new(Nodes), Arc::new(Graphs), Arc::new(Runs::new(limits.of_jobs(), leases))];
    redrive_ojs::runs::programs(limits.of_jobs()).into_iter().chain(graphs).collect()
}
