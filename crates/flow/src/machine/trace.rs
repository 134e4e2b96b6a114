//! Steps that tell of themselves: what the machine notes for histories.

use super::notes::{Brief, Decided, Decision, Note, Notes, What};
use super::outside::Provider;
use super::state::{CallRecord, EntryRecord, GraphRecord, Own, Record, Retry, Task, TaskId};
use super::{Draws, Effect, Machine, Message, State, StateError};
use crate::model::{Definition, StepId};
use crate::result::{Failure, Outcome};
use redrive_policy::lab::explain::because;
use redrive_policy::lab::replay::Step;
use redrive_policy::{Moment, Policy, Span, Verdict};

/// A step with what it tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// The next state.
    pub state: State,
    /// What is to be done.
    pub effects: Vec<Effect>,
    /// What happened.
    pub notes: Notes,
}

impl Definition {
    /// As [`Definition::step`], for runs that are stored: the random number of each gap follows from `seed` and from
    /// the gap, so that it is the same in however many steps the run goes on; and the step tells what happened.
    ///
    /// # Errors
    /// The state is not one that can go on with this definition.
    pub fn trace(
        &self,
        state: State,
        message: Message,
        now: Moment,
        seed: u64,
        transitions: usize,
    ) -> Result<Traced, StateError> {
        self.advance(state, message, now, (Draws::OfRun(seed), Notes::on()), transitions)
    }
}

/// The Retry that is the innermost record, where it is armed.
fn armed(task: &Task) -> Option<&Retry> {
    match task.entry() {
        Some(EntryRecord { own: Own::Retry(retry), .. }) if retry.policies.is_some() => Some(retry),
        _ => None,
    }
}

impl Machine<'_> {
    fn note(&mut self, task: &Task, what: impl FnOnce(&Self) -> Option<What>) {
        if !self.notes.are_wanted() {
            return;
        }
        let Some(what) = what(self) else { return };
        let (flow, step) = self.whereabouts(task);
        let flow = self.definition.flows.get(flow);
        let step = flow.and_then(|flow| Some(flow.steps.get(step?)?.name.clone()));
        let flow = flow.map_or_else(String::new, |flow| flow.path.clone());
        self.notes.add(Note { at: self.now, flow, step, what });
    }

    fn path(&self, entry: &EntryRecord) -> String {
        self.definition.entries.get(entry.entry).map_or_else(String::new, |entry| entry.path.clone())
    }

    /// A step begins; its record is not on the stack yet.
    pub(super) fn note_step_started(&mut self, task: &Task, step: StepId, execution: u64) {
        if !self.notes.are_wanted() {
            return;
        }
        let (flow, _) = self.whereabouts(task);
        let Some(flow) = self.definition.flows.get(flow) else { return };
        let Some(step) = flow.steps.get(step) else { return };
        let what = What::StepStarted { execution, action: step.action.name() };
        self.notes.add(Note { at: self.now, flow: flow.path.clone(), step: Some(step.name.clone()), what });
    }

    pub(super) fn note_step_ended(&mut self, task: &Task, failure: Option<&Failure>) {
        let result = || match failure {
            None => Brief { kind: "success".to_owned(), code: None, message: None },
            Some(failure) => Brief::of(&Outcome::Failure(failure.clone())),
        };
        self.note(task, |_| task.graph().map(|graph| What::StepEnded { execution: graph.id, result: result() }));
    }

    pub(super) fn note_dispatched(&mut self, task: &Task, call: &CallRecord, provider: Provider) {
        self.note(task, |_| call.outside.map(|call| What::CallDispatched { call, provider }));
    }

    pub(super) fn note_answered(&mut self, task: &Task, call: u64, outcome: &Outcome) {
        self.note(task, |_| Some(What::CallAnswered { call, result: Brief::of(outcome) }));
    }

    pub(super) fn note_retry_entered(&mut self, task: &Task) {
        self.note(task, |machine| {
            let (retry, entry) = (armed(task)?.number, task.entry()?);
            Some(What::RetryEntered { retry, path: machine.path(entry) })
        });
    }

    pub(super) fn note_attempt(&mut self, task: &Task) {
        self.note(task, |_| {
            armed(task).map(|retry| What::AttemptStarted { retry: retry.number, attempt: retry.attempt })
        });
    }

    pub(super) fn note_attempt_succeeded(&mut self, task: &Task) {
        let result = Brief { kind: "success".to_owned(), code: None, message: None };
        self.note(task, |_| {
            let Retry { number: retry, attempt, .. } = *armed(task)?;
            Some(What::AttemptEnded { retry, attempt, result, decided: None })
        });
    }

    /// The condition of onFailure does not hold.
    pub(super) fn note_gated(&mut self, task: &Task, failure: &Failure) {
        let explanation = "The condition of onFailure does not hold; the failure passes through.".to_owned();
        self.note_decided(task, failure, Decided { policy: None, decision: Decision::Passed, explanation });
    }

    pub(super) fn note_verdict(&mut self, task: &Task, failure: &Failure, verdict: &Verdict, decision: Decision) {
        if !self.notes.are_wanted() {
            return;
        }
        let captured = armed(task).and_then(|retry| retry.policies.as_ref());
        let Some(Ok(policy)) = captured.map(super::arguments::policies) else { return };
        let explanation = explained(&policy, failure, verdict);
        self.note_decided(task, failure, Decided { policy: verdict.rule, decision, explanation });
    }

    fn note_decided(&mut self, task: &Task, failure: &Failure, decided: Decided) {
        self.note(task, |_| {
            let Retry { number: retry, attempt, .. } = *armed(task)?;
            let result = Brief::of(&Outcome::Failure(failure.clone()));
            Some(What::AttemptEnded { retry, attempt, result, decided: Some(decided) })
        });
    }

    pub(super) fn note_retry_ended(&mut self, task: &Task, interrupted: bool, outcome: &Outcome) {
        self.note(task, |_| {
            let Retry { number: retry, attempt, .. } = *armed(task)?;
            Some(What::RetryEnded { retry, attempt, interrupted, result: Brief::of(outcome) })
        });
    }

    pub(super) fn note_loop_again(&mut self, task: &Task) {
        self.note(task, |machine| match task.entry()? {
            entry @ EntryRecord { own: Own::Loop { iteration, .. }, .. } => {
                Some(What::LoopAgain { path: machine.path(entry), iteration: *iteration })
            }
            _ => None,
        });
    }

    pub(super) fn note_cleanup_started(&mut self, task: &Task) {
        self.note(task, |machine| task.entry().map(|entry| What::CleanupStarted { path: machine.path(entry) }));
    }

    pub(super) fn note_cleanup_ended(&mut self, task: &Task, outcome: &Outcome) {
        self.note(task, |machine| {
            task.entry().map(|entry| What::CleanupEnded { path: machine.path(entry), result: Brief::of(outcome) })
        });
    }

    /// The bound of the Timeout at this place of a stack is over.
    pub(super) fn note_exceeded(&mut self, id: TaskId, depth: usize) {
        if !self.notes.are_wanted() {
            return;
        }
        let Some(task) = self.state.tasks.remove(&id) else { return };
        self.note(&task, |machine| match task.stack.get(depth) {
            Some(Record::Entry(entry)) => Some(What::TimeoutExceeded { path: machine.path(entry) }),
            _ => None,
        });
        self.state.tasks.insert(id, task);
    }

    /// The innermost record is torn down.
    pub(super) fn note_unwound(&mut self, task: &Task, failure: &Failure) {
        let what = match task.stack.last() {
            Some(Record::Graph(GraphRecord { id, .. })) => {
                What::StepEnded { execution: *id, result: Brief::of(&Outcome::Failure(failure.clone())) }
            }
            Some(Record::Call(call)) => match call.outside {
                Some(call) => What::CallWithdrawn { call },
                None => return,
            },
            _ => return,
        };
        self.note(task, |_| Some(what));
    }
}

/// The sentences of the policy on a verdict.
fn explained(policy: &Policy, failure: &Failure, verdict: &Verdict) -> String {
    let step = Step { verdict: *verdict, bounds: None, elapsed: Span::ZERO };
    because(policy, &super::retry::facts(failure), &step).join(" ")
}
