//! Calls: their fields, their target, and the arm that consumes its Result.

use super::Machine;
use super::arguments;
use super::scope::{Site, invalid};
use super::state::{CallRecord, Control, FrameRecord, Record, Slot, Task, TaskId, Vars, Window};
use crate::model::Target;
use crate::result::{Failure, Outcome};
use serde_json::{Value, json};

impl Machine<'_> {
    pub(super) fn start_call(&mut self, id: TaskId, task: &mut Task) -> Option<()> {
        let Some(Record::Call(mut call)) = task.stack.pop() else { return None };
        call.entered_at = self.now;
        match self.dispatch(id, task, &mut call) {
            Ok((frame, control)) => {
                task.stack.push(Record::Call(call));
                task.stack.extend(frame.map(Record::Frame));
                task.control = control;
            }
            // A fault of the fields is the Result of the call. There was no target, so no arm runs.
            Err(failure) => match call.index {
                Some(index) => {
                    let (parent, _) = task.parent?;
                    self.deliver(parent, index, Slot::Ended(failure.into()));
                }
                None => task.control = Control::Rise(failure.into()),
            },
        }
        Some(())
    }

    fn dispatch(
        &mut self,
        id: TaskId,
        task: &Task,
        call: &mut CallRecord,
    ) -> Result<(Option<FrameRecord>, Control), Failure> {
        let definition = self.definition;
        let spec = &definition.calls[call.call];
        let input = self.shaped(task, Site::Call(call), spec.input.as_ref(), &call.input)?;
        let with = self.shaped(task, Site::Call(call), spec.with.as_ref(), &json!({}))?;
        if !with.is_object() {
            return Err(invalid("", "arguments are an object", &with));
        }
        call.delivered = input.clone();
        call.dispatched_at = Some(self.now);
        match spec.target {
            Target::Mock => {
                let (answer, delay, metadata) = arguments::mock(&with, &input)?;
                call.window = Window::Provider { metadata };
                if delay.is_zero() {
                    return Ok((None, Control::Rise(answer)));
                }
                call.answer = Some(answer);
                Ok((None, Control::Until(self.now.after(delay))))
            }
            Target::Outside(provider) => {
                self.send(id, call, provider, &with)?;
                self.note_dispatched(task, call, provider);
                Ok((None, Control::Outside))
            }
            Target::Flow(flow) => {
                let (vars, arguments) = (Vars::new(), Some(with));
                let frame = FrameRecord { flow, input, arguments, entered_at: self.now, vars, failure: None };
                Ok((Some(frame), Control::Start))
            }
        }
    }

    /// The target has answered, and its Result is accepted.
    pub(super) fn settle_call(&mut self, task: &mut Task, outcome: Outcome) -> Option<()> {
        let Some(Record::Call(mut call)) = task.stack.pop() else { return None };
        call.accepted_at = Some(self.now);
        if let (Some(index), Some((parent, _))) = (call.index, task.parent) {
            // The arms of a Gather run when all of its dispatches have resolved.
            self.deliver(parent, index, Slot::Settled(Box::new(call), outcome));
            return Some(());
        }
        task.control = Control::Rise(self.arm(task, &call, outcome));
        Some(())
    }

    /// Runs the arm that consumes a Result, and returns that of the call.
    pub(super) fn arm(&self, task: &mut Task, call: &CallRecord, outcome: Outcome) -> Outcome {
        let spec = &self.definition.calls[call.call];
        let assign = if outcome.is_success() { &spec.on_success } else { &spec.on_failure };
        let site = Site::Arm(call, &outcome);
        let value = match &outcome {
            Outcome::Success(value) => self.shaped(task, site, spec.value.as_ref(), value).map(Some),
            Outcome::Failure(_) => Ok(None),
        };
        let run = value.and_then(|value| Ok((value, self.values(task, site, assign)?)));
        match (run, outcome) {
            (Ok((value, values)), outcome) => {
                if let Some(frame) = task.frame_mut() {
                    frame.vars.extend(values);
                }
                value.map_or(outcome, Outcome::Success)
            }
            (Err(fault), Outcome::Success(_)) => fault.into(),
            (Err(fault), Outcome::Failure(failure)) => fault.superseding(failure).into(),
        }
    }

    /// The delay of the mock provider is over.
    pub(super) fn answer(&mut self, task: &mut Task) -> Option<()> {
        let Some(Record::Call(call)) = task.stack.last_mut() else { return None };
        let answer = call.answer.take().unwrap_or(Outcome::Success(Value::Null));
        task.control = Control::Rise(answer);
        Some(())
    }
}
