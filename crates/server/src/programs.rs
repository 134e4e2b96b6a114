//! The programs of a server: what its runs can be.

use crate::Limits;
use redrive_engine::Program;
use std::sync::Arc;

/// All programs, for the engine of a server with these limits.
#[must_use]
pub fn programs(limits: &Limits) -> Vec<Arc<dyn Program>> {
    redrive_ojs::runs::programs(limits.of_jobs())
}
