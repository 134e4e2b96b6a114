//! The programs of a server: what its runs can be.

use crate::Limits;
use redrive_engine::Program;
use redrive_ojs::cron::Cron;
use redrive_ojs::workflows::Workflows;
use std::sync::Arc;

/// All programs, for the engine of a server with these limits.
#[must_use]
pub fn programs(limits: &Limits) -> Vec<Arc<dyn Program>> {
    vec![Arc::new(Workflows::new(limits.of_jobs())), Arc::new(Cron::new(limits.of_jobs()))]
}
