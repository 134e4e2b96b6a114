//! What runs learn of the wall clock.

use super::draft::Draft;
use crate::{Engine, EngineError};
use redrive_store::{Advanced, OtherEvent, RunFilter};

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
                let runs = runs.into_iter().filter(|run| run.revision > 0 && run.version <= program.version());
                let steps: Vec<_> = runs.map(|run| Draft::new(self, program, run, now).clock_stepped()).collect();
                let events: Vec<Vec<OtherEvent>> = steps.iter().map(|step| step.events.clone()).collect();
                let answers = self.store.advance(steps, now).await?;
                let told =
                    answers.iter().zip(events).filter(|(answer, _)| answer.is_ok()).flat_map(|(_, events)| events);
                let told: Vec<OtherEvent> = told.collect();
                let written: Vec<Advanced> = answers.into_iter().flatten().collect();
                self.publish(written.iter().flat_map(|advanced| &advanced.transitions));
                self.tell(told);
                self.runs.wake(written.into_iter().flat_map(|advanced| advanced.pending));
            }
        }
        Ok(())
    }
}
