//! Middleware entries: the phases that every one of them has.

use super::Machine;
use super::arguments;
use super::retry::Decision;
use super::scope::Site;
use super::state::{CleanupRecord, Control, Own, Owner, Place, Record, Task};
use crate::model::{Entry, Middleware, Phase};
use crate::result::{Failure, Outcome};
use redrive_policy::Moment;
use serde_json::{Value, json};

impl<'d> Machine<'d> {
    /// The definition of the innermost entry.
    pub(super) fn entry_of(&self, task: &Task) -> Option<&'d Entry> {
        self.definition.entries.get(task.entry()?.entry)
    }

    /// Whether the action of a phase runs.
    pub(super) fn gate(&self, task: &Task, site: Site<'_>, phase: &Phase) -> Result<bool, Failure> {
        phase.when.as_ref().map_or(Ok(true), |when| self.holds(task, site, when))
    }

    /// The arguments of a phase.
    pub(super) fn with(&self, task: &Task, site: Site<'_>, phase: &Phase) -> Result<Value, Failure> {
        self.shaped(task, site, phase.with.as_ref(), &json!({}))
    }

    /// The way down. An entry whose onEntry fails is not established, and its onAlways does not run.
    pub(super) fn on_entry(&mut self, task: &mut Task) -> Option<()> {
        let spec = self.entry_of(task)?;
        match self.enter(task, spec) {
            Ok(Entered::Inside) => task.control = Control::Start,
            Ok(Entered::Emits(outcome)) => return self.always(task, outcome, None),
            Err(failure) => {
                task.stack.pop();
                task.control = Control::Rise(failure.into());
            }
        }
        Some(())
    }

    fn enter(&mut self, task: &mut Task, spec: &Entry) -> Result<Entered, Failure> {
        let (now, phase) = (self.now, &spec.on_entry);
        let site = Site::Phase { entered_at: now, result: None };
        let gate = self.gate(task, site, phase)?;
        if gate {
            let with = self.with(task, site, phase)?;
            let own = &mut task.entry_mut().ok_or_else(damaged)?.own;
            match own {
                Own::Retry(retry) => {
                    arguments::policies(&with)?;
                    retry.policies = Some(with);
                }
                Own::Timeout { deadline } => *deadline = Some(now.after(arguments::duration(&with)?)),
                Own::Loop { admitted, .. } => {
                    arguments::nothing(&with)?;
                    *admitted = true;
                }
                Own::Finally => arguments::nothing(&with)?,
            }
        }
        let input = task.entry().map_or(Value::Null, |entry| entry.input.clone());
        let delivered = self.shaped(task, site, phase.shape.as_ref(), &input)?;
        self.assign(task, site, phase)?;
        let vars = task.frame().map(|frame| frame.vars.clone()).unwrap_or_default();
        self.note_retry_entered(task);
        let entry = task.entry_mut().ok_or_else(damaged)?;
        entry.established = true;
        entry.delivered = delivered.clone();
        Ok(match &mut entry.own {
            Own::Loop { admitted: false, .. } => Entered::Emits(Outcome::Success(delivered)),
            Own::Timeout { deadline: Some(deadline) } if *deadline <= now => {
                Entered::Emits(super::unwind::exceeded(*deadline).into())
            }
            Own::Retry(retry) if retry.policies.is_some() => {
                retry.snapshot = vars;
                Entered::Inside
            }
            _ => Entered::Inside,
        })
    }

    fn assign(&self, task: &mut Task, site: Site<'_>, phase: &Phase) -> Result<(), Failure> {
        let values = self.values(task, site, &phase.assign)?;
        if let Some(frame) = task.frame_mut() {
            frame.vars.extend(values);
        }
        Ok(())
    }

    /// A success rises to the entry. A Loop decides whether it goes on.
    pub(super) fn on_success(&mut self, task: &mut Task, value: Value) -> Option<()> {
        let spec = self.entry_of(task)?;
        let outcome = Outcome::Success(value);
        self.note_attempt_succeeded(task);
        match self.succeed(task, spec, &outcome) {
            Ok((carried, true)) => {
                let entry = task.entry_mut()?;
                entry.delivered = carried;
                if let Own::Loop { iteration, .. } = &mut entry.own {
                    *iteration += 1;
                }
                self.note_loop_again(task);
                task.control = Control::Start;
                Some(())
            }
            Ok((emitted, false)) => self.always(task, Outcome::Success(emitted), None),
            Err(failure) => self.always(task, failure.into(), None),
        }
    }

    /// What the phase emits, and whether the inner scope runs again with it.
    fn succeed(&self, task: &mut Task, spec: &Entry, outcome: &Outcome) -> Result<(Value, bool), Failure> {
        let phase = &spec.on_success;
        let site = Site::Phase { entered_at: self.now, result: Some(outcome) };
        let gate = self.gate(task, site, phase)?;
        if gate {
            arguments::nothing(&self.with(task, site, phase)?)?;
        }
        let Outcome::Success(value) = outcome else { return Err(damaged()) };
        let emitted = self.shaped(task, site, phase.shape.as_ref(), value)?;
        self.assign(task, site, phase)?;
        Ok((emitted, gate && spec.kind == Middleware::Loop))
    }

    /// A failure rises to the entry. A Retry decides whether the inner scope runs again.
    pub(super) fn on_failure(&mut self, task: &mut Task, failure: Failure) -> Option<()> {
        let spec = self.entry_of(task)?;
        match self.decide_on(task, spec, &failure) {
            Ok(Decision::Consumed(control)) => {
                task.control = control;
                Some(())
            }
            Ok(Decision::Passes) => {
                let emitted = self.emit(task, spec, failure);
                self.always(task, emitted, None)
            }
            Ok(Decision::Exhausted(exhausted)) => {
                let emitted = self.emit(task, spec, exhausted);
                self.always(task, emitted, None)
            }
            Err(faults) => {
                let (fault, superseded) = *faults;
                self.always(task, fault.superseding(superseded).into(), None)
            }
        }
    }

    /// A failure leaves the entry: the author's envelope is applied to it.
    fn emit(&self, task: &mut Task, spec: &Entry, failure: Failure) -> Outcome {
        let outcome = Outcome::Failure(failure.clone());
        let site = Site::Phase { entered_at: self.now, result: Some(&outcome) };
        let shaped = if spec.envelope.is_empty() {
            Ok(failure.clone())
        } else {
            self.construct(task, site, &spec.envelope, Some(&failure), Some(failure.clone()))
        };
        let run = shaped.and_then(|shaped| self.assign(task, site, &spec.on_failure).map(|()| shaped));
        match run {
            Ok(shaped) => shaped.into(),
            Err(fault) => fault.superseding(failure).into(),
        }
    }

    /// The phase that runs whatever happened. `unwinding` is the interruption that it is part of.
    pub(super) fn always(&mut self, task: &mut Task, outcome: Outcome, unwinding: Option<Owner>) -> Option<()> {
        let spec = self.entry_of(task)?;
        let (now, phase) = (self.now, &spec.on_always);
        let site = Site::Phase { entered_at: now, result: Some(&outcome) };
        let finally = matches!(spec.kind, Middleware::Finally { .. });
        let gate = match self.gate(task, site, phase) {
            Ok(gate) => gate,
            Err(fault) => return self.leave_entry(task, superseded(fault, outcome), unwinding),
        };
        if gate && finally {
            self.note_cleanup_started(task);
            task.stack.push(Record::Cleanup(CleanupRecord { result: outcome, entered_at: now, unwinding }));
            task.control = Control::Start;
            return Some(());
        }
        if gate && let Err(fault) = self.with(task, site, phase).and_then(|with| arguments::nothing(&with)) {
            return self.leave_entry(task, superseded(fault, outcome), unwinding);
        }
        self.end_always(task, outcome, now, unwinding)
    }

    fn end_always(
        &mut self,
        task: &mut Task,
        outcome: Outcome,
        entered_at: Moment,
        unwinding: Option<Owner>,
    ) -> Option<()> {
        let spec = self.entry_of(task)?;
        let site = Site::Phase { entered_at, result: Some(&outcome) };
        let run = self.assign(task, site, &spec.on_always);
        let outcome = match run {
            Ok(()) => outcome,
            Err(fault) => superseded(fault, outcome),
        };
        self.leave_entry(task, outcome, unwinding)
    }

    fn leave_entry(&mut self, task: &mut Task, outcome: Outcome, unwinding: Option<Owner>) -> Option<()> {
        self.note_retry_ended(task, unwinding.is_some(), &outcome);
        task.stack.pop();
        task.control = match (outcome, unwinding) {
            (Outcome::Failure(failure), Some(owner)) => Control::Unwind { failure, owner },
            (outcome, _) => Control::Rise(outcome),
        };
        Some(())
    }

    /// The cleanup of a Finally: its call, in a stack of its own.
    pub(super) fn start_cleanup(&mut self, task: &mut Task) -> Option<()> {
        let entry = match task.stack.as_slice() {
            [.., Record::Entry(entry), Record::Cleanup(_)] => entry,
            _ => return None,
        };
        let (place, input) = (Place::Cleanup(entry.entry), entry.input.clone());
        self.descend(task, place, 0, input)
    }

    /// The cleanup has ended. Its Result is discarded, unless it failed.
    pub(super) fn end_cleanup(&mut self, task: &mut Task, cleanup: Outcome) -> Option<()> {
        let Some(Record::Cleanup(record)) = task.stack.pop() else { return None };
        let CleanupRecord { result, entered_at, unwinding } = record;
        self.note_cleanup_ended(task, &cleanup);
        match cleanup {
            Outcome::Success(_) => self.end_always(task, result, entered_at, unwinding),
            Outcome::Failure(failure) => self.leave_entry(task, superseded(failure, result), unwinding),
        }
    }
}

/// How the way down through an entry ends.
enum Entered {
    Inside,
    /// Without a run of the inner scope.
    Emits(Outcome),
}

/// A failure in place of the Result in flight: a failure stays in the chain, a success is lost.
fn superseded(fault: Failure, outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Success(_) => fault.into(),
        Outcome::Failure(failure) => fault.superseding(failure).into(),
    }
}

/// Never met: the innermost record is an entry wherever its phases run.
fn damaged() -> Failure {
    Failure::error("System.ExpressionEvaluationError", "the state is damaged")
}
