//! Advancing runs.

use super::draft::{Draft, failed};
use crate::{Engine, EngineError};
use redrive_policy::Moment;
use redrive_store::{Advanced, Duplicate, OtherEvent, PendingRun, PendingRuns, RunId, RunRefusal, RunStep, Stepped};
use std::collections::HashMap;

/// How many runs are advanced in a single step of the store.
const RUNS: usize = 100;
/// How often a run is advanced in a row because of what its own steps have left for it, before others have their turn.
const TURNS: usize = 100;

/// What became of some steps.
#[derive(Default)]
struct Written {
    /// Those that were written.
    steps: Vec<Advanced>,
    /// The runs that another node has advanced meanwhile.
    raced: Vec<RunId>,
}

impl Engine {
    /// Advances all runs that are pending, unless the server is under maintenance; answers how many steps were
    /// written.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn advance(&self) -> Result<usize, EngineError> {
        if self.is_under_maintenance() {
            return Ok(0);
        }
        let mut steps = 0;
        for _ in 0..TURNS {
            let Written { steps: written, .. } = self.advance_some(None).await?;
            if written.is_empty() {
                break;
            }
            steps += written.len();
        }
        Ok(steps)
    }

    /// Advances the runs that got messages from what this engine did, so that a caller that is answered finds them
    /// advanced. Calls that come meanwhile share the next step. Where the store does not answer, the advancer goes on
    /// with it later: what was asked for has happened.
    pub(crate) async fn advance_woken(&self) {
        let _turn = self.runs.turn.lock().await;
        let woken = self.runs.take_pending();
        if let Err(error) = self.advance_only(woken).await {
            tracing::warn!("cannot advance runs: {error}");
        }
    }

    /// Advances the runs that listen and were told of something.
    pub(super) async fn advance_told(&self) -> Result<(), EngineError> {
        let told = self.runs.take_told();
        self.advance_only(told).await.map(drop)
    }

    /// Advances these runs, and those that get messages from them, until none of them has anything to do. What they had
    /// to do when this was called is done then, by this node or by another.
    pub(crate) async fn advance_only(&self, runs: Vec<RunId>) -> Result<usize, EngineError> {
        let (mut runs, mut steps) = (runs, 0);
        for _ in 0..TURNS {
            if runs.is_empty() {
                break;
            }
            let mut next = Vec::new();
            for some in runs.chunks(RUNS) {
                let Written { steps: written, raced } = self.advance_some(Some(some.to_vec())).await?;
                steps += written.len();
                next.extend(written.into_iter().flat_map(|advanced| advanced.pending));
                next.extend(raced);
            }
            next.sort_unstable();
            next.dedup();
            runs = next;
        }
        self.runs.wake(runs);
        Ok(steps)
    }

    /// Removes runs that ended long enough ago; answers how many.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn prune_runs(&self) -> Result<usize, EngineError> {
        let step = self.settings.sweep_step.max(1);
        Ok(self.store.prune_runs(self.settings.retention.finished, step, self.clock.now()).await?)
    }

    /// When the next run has something to do, by the engine's own clock.
    pub(crate) async fn next_run(&self) -> Result<Option<Moment>, EngineError> {
        Ok(self.store.next_run(self.runs.known()).await?)
    }

    /// One step of each of some runs that are pending: of these, or of any.
    async fn advance_some(&self, only: Option<Vec<RunId>>) -> Result<Written, EngineError> {
        let (now, programs) = (self.clock.now(), self.runs.known());
        let wanted = PendingRuns { programs, only, limit: RUNS, messages: self.runs.limits.messages };
        let pending = self.store.pending_runs(wanted, now).await?;
        if pending.is_empty() {
            return Ok(Written::default());
        }
        let none = HashMap::new();
        let steps: Vec<RunStep> = pending.iter().map(|pending| self.step(pending, &none, now)).collect();
        let events: Vec<Vec<OtherEvent>> = steps.iter().map(|step| step.events.clone()).collect();
        let answers = self.store.advance(steps, now).await?;
        let mut written = Written::default();
        let mut told = Vec::new();
        for ((pending, mut events), mut answer) in pending.iter().zip(events).zip(answers) {
            if let Err(RunRefusal::Duplicate(child, duplicate)) = answer {
                let step = |duplicates: &HashMap<u64, String>| self.step(pending, duplicates, now);
                (answer, events) = self.advance_without((child, duplicate), step, now).await?;
            }
            match answer {
                Ok(advanced) => {
                    self.runs.note_step(&advanced.run);
                    if let Some(observer) = self.observer.get() {
                        let due = pending.run.timer.filter(|timer| *timer <= now);
                        observer.advanced(&pending.run.program, due.map(|timer| now.since(timer)));
                    }
                    written.steps.push(advanced);
                    told.extend(events);
                }
                // Another node was faster. It may have seen the same messages, or not all of them.
                Err(RunRefusal::Changed(_)) => written.raced.push(pending.run.id),
                Err(RunRefusal::NotFound) => {}
                Err(refusal) => written.steps.extend(self.fail(pending, &refusal, now).await?),
            }
        }
        self.publish(written.steps.iter().flat_map(|advanced| &advanced.transitions));
        self.tell(told);
        Ok(written)
    }

    /// What a run makes of its messages and its timer.
    fn step(&self, pending: &PendingRun, duplicates: &HashMap<u64, String>, now: Moment) -> RunStep {
        match self.runs.program(&pending.run.program) {
            Some(program) => Draft::new(self, program, pending.run.clone(), duplicates, now).of(pending),
            // The store answers runs of programs that it was asked for, and no others.
            None => RunStep::of(&pending.run),
        }
    }

    /// Writes the step that a run makes of it that some of its jobs are duplicates. The store names one of them at a
    /// time. Answers what became of it, with the events of the step, or the last refusal where that does not help.
    pub(super) async fn advance_without(
        &self,
        first: (u64, Duplicate),
        step: impl Fn(&HashMap<u64, String>) -> RunStep,
        now: Moment,
    ) -> Result<(Stepped, Vec<OtherEvent>), EngineError> {
        let (child, duplicate) = first;
        let mut duplicates = HashMap::from([(child, duplicate.to_string())]);
        loop {
            let step = step(&duplicates);
            let events = step.events.clone();
            let stepped = self.store.advance(vec![step], now).await?.pop();
            match stepped.unwrap_or(Err(RunRefusal::NotFound)) {
                Err(RunRefusal::Duplicate(child, duplicate)) if !duplicates.contains_key(&child) => {
                    duplicates.insert(child, duplicate.to_string());
                }
                stepped => return Ok((stepped, events)),
            }
        }
    }

    /// Ends a run whose step can never be written.
    async fn fail(
        &self,
        pending: &PendingRun,
        refusal: &RunRefusal,
        now: Moment,
    ) -> Result<Option<Advanced>, EngineError> {
        let consumed = pending.messages.iter().map(|message| message.number).collect();
        let step = failed(&pending.run, consumed, &refusal.to_string());
        let answer = self.store.advance(vec![step], now).await?.pop();
        Ok(answer.and_then(Result::ok))
    }
}
