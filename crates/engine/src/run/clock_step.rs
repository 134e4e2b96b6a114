//! What runs learn of the wall clock.

use super::CLOCK_STEPPED;
use crate::{Engine, EngineError};
use redrive_store::{Blob, RunFilter, RunRefusal, Signal};

/// How many runs are told at a time.
const RUNS: usize = 100;

impl Engine {
    /// Tells all runs whose timers stand for times of the wall clock that it was set. A step is not waited for where
    /// another node takes it.
    pub(crate) async fn tell_clock_stepped(&self) -> Result<(), EngineError> {
        for program in self.runs.programs.values().filter(|program| program.follows_wall_clock()) {
            let mut filter = RunFilter { program: Some(program.kind().into()), ended: Some(false), after: None };
            loop {
                let runs = self.store.runs(filter.clone(), RUNS).await?;
                let Some(last) = runs.last() else { break };
                filter.after = Some(last.id);
                let mut told = Vec::with_capacity(runs.len());
                for run in &runs {
                    let signal = Signal { name: CLOCK_STEPPED.into(), body: Blob::from(&b"{}"[..]) };
                    match self.store.signal(run.id, signal, self.clock.now()).await? {
                        Ok(_) => told.push(run.id),
                        // It has ended since, or has a full inbox, and sets its timer when it reads that.
                        Err(RunRefusal::NotFound | RunRefusal::InboxFull(_)) => {}
                        Err(refusal) => return Err(EngineError::RefusedRun(run.id, refusal)),
                    }
                }
                self.advance_only(told).await?;
            }
        }
        Ok(())
    }
}
