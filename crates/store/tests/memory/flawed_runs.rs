//! The verbs of runs, with one flaw each.

use crate::flawed::{Flaw, Flawed};
use redrive_policy::{Moment, Span};
use redrive_store::{
    ChildEnd, Interest, MessageBody, NewRun, PendingRun, PendingRuns, Run, RunFilter, RunId, RunRefusal, RunStep,
    Signal, StartRefusal, Stepped, Store, StoreError, StoreFuture,
};
use std::sync::Arc;

impl Flawed {
    pub(crate) fn start_flawed(
        &self,
        mut runs: Vec<NewRun>,
        now: Moment,
    ) -> StoreFuture<'_, Result<Vec<Run>, StartRefusal>> {
        Box::pin(async move {
            if self.has(Flaw::IgnoresKeysOfRuns) {
                runs.iter_mut().for_each(|run| run.key = None);
            }
            if !self.has(Flaw::StartsRunsOneByOne) {
                return self.memory.start_runs(runs, now).await;
            }
            let mut started = Vec::new();
            for (index, run) in runs.into_iter().enumerate() {
                match self.memory.start_runs(vec![run], now).await? {
                    Ok(run) => started.extend(run),
                    Err(StartRefusal::IdTaken(_)) => return Ok(Err(StartRefusal::IdTaken(index))),
                    Err(StartRefusal::KeyTaken(_, id)) => return Ok(Err(StartRefusal::KeyTaken(index, id))),
                }
            }
            Ok(Ok(started))
        })
    }

    pub(crate) fn pending_flawed(&self, mut pending: PendingRuns, now: Moment) -> StoreFuture<'_, Vec<PendingRun>> {
        Box::pin(async move {
            let now = Moment::from_micros(now.micros() + 1_000 * i64::from(self.has(Flaw::CallsRunsEarly)));
            let most = pending.messages;
            if self.has(Flaw::ReadsRunsOfNewerVersions) {
                pending.programs.iter_mut().for_each(|(_, version)| *version = u32::MAX);
            }
            if self.has(Flaw::ReadsRunsThatWereNotNamed) {
                pending.only = None;
            }
            if self.has(Flaw::ReadsTheNewestMessages) {
                pending.messages = usize::MAX;
            }
            let mut found = self.memory.pending_runs(pending, now).await?;
            if self.has(Flaw::PassesOverNewRuns) {
                found.retain(|pending| pending.run.revision > 0);
            }
            if self.has(Flaw::ReadsNewestRunsFirst) {
                found.sort_by_key(|pending| std::cmp::Reverse(pending.run.id));
            }
            for pending in &mut found {
                let surplus = pending.messages.len().saturating_sub(most);
                pending.messages.drain(..surplus);
                pending.messages.retain(|message| !self.loses(&message.body));
                pending.run = self.shown_run(pending.run.clone());
            }
            Ok(found)
        })
    }

    /// Whether a message is never written.
    fn loses(&self, body: &MessageBody) -> bool {
        match body {
            MessageBody::JobEnded { end: ChildEnd::Expired { .. }, .. } => self.has(Flaw::TellsNoRunOfExpiries),
            MessageBody::JobEnded { end: ChildEnd::Cancelled { .. }, .. } => self.has(Flaw::TellsNoRunOfCancellations),
            MessageBody::JobRedriven { .. } => self.has(Flaw::TellsNoRunOfRedrives),
            MessageBody::RunEnded { .. } => self.has(Flaw::TellsNoRunOfItsRuns),
            _ => false,
        }
    }

    pub(crate) fn advance_flawed(&self, steps: Vec<RunStep>, now: Moment) -> StoreFuture<'_, Vec<Stepped>> {
        Box::pin(async move {
            let mut answers: Vec<Stepped> = Vec::new();
            for step in steps {
                let refused = answers.iter().find_map(|answer| answer.as_ref().err()).cloned();
                match refused.filter(|_| self.has(Flaw::RefusesTheRestOfABatch)) {
                    Some(refusal) => answers.push(Err(refusal)),
                    None => answers.push(self.step_flawed(step, now).await?),
                }
            }
            Ok(answers)
        })
    }

    async fn step_flawed(&self, mut step: RunStep, now: Moment) -> Result<Stepped, StoreError> {
        if let (true, Some(run)) = (self.has(Flaw::IgnoresRevisions), self.memory.run(step.id).await?) {
            step.revision = run.revision;
        }
        match self.flaw {
            Flaw::ForgetsToConsume => step.consumed.clear(),
            Flaw::ConsumesEverything => step.consumed = (0..10_000).collect(),
            Flaw::ForgetsTheSignalsOfAStep => step.signals.clear(),
            Flaw::ForgetsTheRunsOfAStep => step.runs.clear(),
            Flaw::ForgetsTimers => step.timer = None,
            Flaw::ForgetsWhoListens => step.interest = None,
            Flaw::ForgetsTheEventsOfAStep => step.events.clear(),
            Flaw::TellsEverything => {
                let all =
                    |interest: &Arc<Interest>| Arc::new(Interest { types: vec!["*".into()], ..(**interest).clone() });
                step.interest = step.interest.as_ref().map(all);
            }
            _ => {}
        }
        let foreign = step.cancelled.clone();
        let without_jobs = RunStep { jobs: Vec::new(), runs: Vec::new(), ..step.clone() };
        let answers = self.memory.advance(vec![step], now).await?;
        let mut answer = answers.into_iter().next().ok_or_else(|| StoreError::Broken("no answer".to_owned()))?;
        if let (true, Err(RunRefusal::JobIdTaken(_) | RunRefusal::RunIdTaken(_))) =
            (self.has(Flaw::WritesPartOfARefusedStep), &answer)
        {
            self.memory.advance(vec![without_jobs], now).await?;
        }
        if let Ok(advanced) = &mut answer {
            for id in foreign.into_iter().filter(|_| self.has(Flaw::CancelsForeignJobs)) {
                advanced.transitions.extend(self.memory.cancel(id, now).await?);
            }
            if self.has(Flaw::ForgetsWhatIsPending) {
                advanced.pending.clear();
            }
            if self.has(Flaw::ForgetsTheJobsOfAStep) {
                advanced.transitions.clear();
            }
            advanced.run = self.shown_run(advanced.run.clone());
        }
        Ok(answer)
    }

    pub(crate) fn signal_flawed(
        &self,
        id: RunId,
        signal: Signal,
        now: Moment,
    ) -> StoreFuture<'_, Result<Run, RunRefusal>> {
        Box::pin(async move {
            match self.memory.signal(id, signal, now).await? {
                Err(RunRefusal::InboxFull(_)) if self.has(Flaw::TakesSignalsWithoutLimit) => {
                    let run = self.memory.run(id).await?;
                    Ok(run.ok_or(RunRefusal::NotFound))
                }
                answer => Ok(answer.map(|run| self.shown_run(run))),
            }
        })
    }

    pub(crate) fn shown_run(&self, mut run: Run) -> Run {
        if self.has(Flaw::CountsNoChildren) {
            run.children = 0;
        }
        if self.has(Flaw::KeepsTheFirstStateOfRuns) && run.revision > 0 {
            run.state = Arc::from(*b"");
        }
        if let (true, Some(end)) = (self.has(Flaw::EndsRunsAtTheirLastStep), &mut run.end) {
            end.at = run.advanced;
        }
        run
    }

    pub(crate) fn runs_flawed(&self, mut filter: RunFilter, limit: usize) -> StoreFuture<'_, Vec<Run>> {
        Box::pin(async move {
            if self.has(Flaw::ListsRunsOfAllPrograms) {
                filter.program = None;
            }
            if self.has(Flaw::ListsEndedRunsToo) {
                filter.ended = None;
            }
            if self.has(Flaw::BeginsEveryListOfRunsAnew) {
                filter.after = None;
            }
            if let (true, Some(keys)) = (self.has(Flaw::ListsKeysFromTheirBeginning), &mut filter.keys) {
                keys.after = None;
            }
            let mut runs = self.memory.runs(filter, limit).await?;
            if self.has(Flaw::ListsRunsOldestFirst) {
                runs.reverse();
            }
            Ok(runs.into_iter().map(|run| self.shown_run(run)).collect())
        })
    }

    pub(crate) fn next_run_flawed(&self, mut programs: Vec<(Arc<str>, u32)>) -> StoreFuture<'_, Option<Moment>> {
        if self.has(Flaw::WakesForNewerVersions) {
            programs.iter_mut().for_each(|(_, version)| *version = u32::MAX);
        }
        self.memory.next_run(programs)
    }

    pub(crate) fn prune_runs_flawed(&self, age: Span, limit: usize, now: Moment) -> StoreFuture<'_, usize> {
        let age = if self.has(Flaw::PrunesRunsEarly) { Span::ZERO } else { age };
        let limit = if self.has(Flaw::PrunesRunsWithoutLimit) { usize::MAX } else { limit };
        self.memory.prune_runs(age, limit, now)
    }

    /// What a restart loses of runs.
    pub(crate) async fn lose_of_runs(&self) -> Result<(), StoreError> {
        for run in self.memory.runs(RunFilter::default(), usize::MAX).await? {
            let step = RunStep::of(&run);
            if self.has(Flaw::LosesTimersAtRestart) && run.timer.is_some() {
                self.memory.advance(vec![RunStep { timer: None, ..step.clone() }], run.advanced).await?;
            }
            if self.has(Flaw::LosesMessagesAtRestart) {
                self.memory.advance(vec![RunStep { consumed: (0..10_000).collect(), ..step }], run.advanced).await?;
            }
        }
        Ok(())
    }
}
