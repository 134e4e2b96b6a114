//! What runs learn of the wall clock.

use super::draft::Draft;
use crate::{Engine, EngineError};
use redrive_store::{Advanced, OtherEvent, Run, RunFilter, RunRefusal, RunStep};
use std::collections::HashMap;

/// How many runs are told in a single step of the store.
const RUNS: usize = 100;

impl Engine {
    /// Tells all runs whose timers stand for times of the wall clock that it was set. A run that another node advances
    /// meanwhile needs no telling: its program has seen the new time.
    pub(crate) async fn tell_clock_stepped(&self) -> Result<(), EngineError> {
        for program in self.runs.programs.values().filter(|program| program.follows_wall_clock()) {
            let mut filter =
                RunFilter { program: Some(program.kind().into()), ended: Some(false), ..RunFilter::default() };
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
                let steps: Vec<RunStep> = runs.iter().map(|run| step(run, &none)).collect();
                let events: Vec<Vec<OtherEvent>> = steps.iter().map(|step| step.events.clone()).collect();
                let answers = self.store.advance(steps, now).await?;
                let mut written: Vec<Advanced> = Vec::with_capacity(answers.len());
                let mut told: Vec<OtherEvent> = Vec::new();
                for ((run, mut events), mut answer) in runs.iter().zip(events).zip(answers) {
                    if let Err(RunRefusal::Duplicate(child, duplicate)) = answer {
                        let first = (child, duplicate);
                        (answer, events) = self.advance_without(first, |known| step(run, known), now).await?;
                    }
                    if let Ok(advanced) = answer {
                        written.push(advanced);
                        told.extend(events);
                    }
                }
                self.publish(written.iter().flat_map(|advanced| &advanced.transitions));
                self.tell(told);
                self.runs.wake(written.into_iter().flat_map(|advanced| advanced.pending));
            }
        }
        Ok(())
    }
}
