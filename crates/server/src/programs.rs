//! The programs of a server: what its runs can be.

use crate::Limits;
use crate::access::KeysProgram;
use redrive_engine::Program;
use redrive_exosphere::{Graphs, Leases, Nodes, Runs};
use redrive_flow::runs::{Definitions, Flows};
use std::sync::Arc;

/// All programs, for the engine of a server with these limits, and these leases of states of graphs.
#[must_use]
pub fn programs(limits: &Limits, leases: Leases) -> Vec<Arc<dyn Program>> {
    let graphs: [Arc<dyn Program>; 3] =
        [Arc::new(Nodes), Arc::new(Graphs), Arc::new(Runs::new(limits.of_jobs(), leases))];
    let flows: [Arc<dyn Program>; 2] = [Arc::new(Definitions), Arc::new(Flows::new(limits.of_jobs()))];
    let keys: [Arc<dyn Program>; 1] = [Arc::new(KeysProgram)];
    let documents = redrive_ojs::runs::programs(limits.of_jobs());
    documents.into_iter().chain(graphs).chain(flows).chain(keys).collect()
}
