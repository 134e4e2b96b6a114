//! The programs of a server: what its runs can be.

use crate::Limits;
use crate::access::KeysProgram;
use redrive_engine::Program;
use redrive_exosphere::{Graphs, Nodes, Runs};
use std::sync::Arc;

/// All programs, for the engine of a server with these limits.
#[must_use]
pub fn programs(limits: &Limits) -> Vec<Arc<dyn Program>> {
    let others: [Arc<dyn Program>; 4] =
        [Arc::new(Nodes), Arc::new(Graphs), Arc::new(Runs::new(limits.of_jobs(), None)), Arc::new(KeysProgram)];
    redrive_ojs::runs::programs(limits.of_jobs()).into_iter().chain(others).collect()
}
