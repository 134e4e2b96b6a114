//! What runs learn of the wall clock.

use super::draft::Draft;
use crate::{Engine, EngineError};
use redrive_store::{Advanced, Run, RunFilter, RunRefusal};
use std::collections::HashMap;

/// How many runs are told in a single step of the store.
const RUNS: usize = 100;

impl Engine {
    /// Tells all runs whose timers stand for times of the wall clock that it was set. A run that another node advances
    /// meanwhile needs no telling: its program has seen the new time.
    pub(crate) async fn tell_clock_stepped(&self) -> Result<(), EngineError> {
        for program in self.runs.programs.values().filter(|program| program.follows_wall_clock()) {
            let mut filter = RunFilter { program: Some(program.kind().into()), ended: Some(false), after: None };
            loop {
                let (runs, now) = (self.store.runs(filter.clone(), RUNS).await?, self.clock.now());
                let Some(last) = runs.last() else { break };
                filter.after = Some(last.id);
                // Those that have not started yet have no timer, and later versions belong to other nodes.
                let started = |run: &Run| run.revision > 0 && run.version <= program.version();
                let runs: Vec<Run> = runs.into_iter().filter(started).collect();
                let step = |run: &Run, duplicates: &HashMap<u64, String>| {
                    Draft::new(self, program, run.clone(), duplicates, now).clock_stepped()
                };
                let none = HashMap::new();
                let answers = self.store.advance(runs.iter().map(|run| step(run, &none)).collect(), now).await?;
                let mut written: Vec<Advanced> = Vec::with_capacity(answers.len());
                for (run, mut answer) in runs.iter().zip(answers) {
                    if let Err(RunRefusal::Duplicate(child, duplicate)) = answer {
                        answer = self.advance_without((child, duplicate), |known| step(run, known), now).await?;
                    }
                    written.extend(answer.ok());
                }
                self.publish(written.iter().flat_map(|advanced| &advanced.transitions));
                self.runs.wake(written.into_iter().flat_map(|advanced| advanced.pending));
            }
        }
        Ok(())
    }
}
