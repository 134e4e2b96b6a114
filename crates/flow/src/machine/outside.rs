//! Calls that leave the machine, and their Results.

use super::scope::invalid;
use super::state::{CallRecord, Control, Record, TaskId, Window};
use super::{Effect, Machine, StateError};
use crate::json::MAX_DEPTH;
pub use crate::providers::Provider;
use crate::result::{Failure, Outcome, depth};
use serde_json::Value;

/// A call that leaves the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// Its number, unique in the flow.
    pub call: u64,
    /// What tells it from every other call: the same when it is dispatched again after a crash.
    pub key: String,
    /// Who is called.
    pub provider: Provider,
    /// A job as Open Job Spec writes it, or a request to a service.
    pub request: Value,
}

/// What has become of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Its number.
    pub call: u64,
    /// Its Result.
    pub outcome: Outcome,
    /// What the provider tells besides: an object.
    pub metadata: Value,
}

impl Machine<'_> {
    /// Dispatches a call whose arguments are known.
    pub(super) fn send(
        &mut self,
        id: TaskId,
        call: &mut CallRecord,
        provider: Provider,
        with: &Value,
    ) -> Result<(), Failure> {
        let arguments = provider.arguments();
        let with = super::arguments::only(with, &arguments.iter().map(|argument| argument.name).collect::<Vec<_>>())?;
        for argument in arguments {
            let at = || format!("/{}", argument.name);
            match with.get(argument.name) {
                Some(value) if !(argument.fits)(value) => {
                    return Err(invalid(&at(), format!("{} is expected", argument.allowed), value));
                }
                None if argument.required => {
                    return Err(invalid(&at(), format!("{} is required", argument.allowed), &Value::Null));
                }
                _ => {}
            }
        }
        let request = provider.request(with, &call.delivered);
        let number = self.state.next_call;
        self.state.next_call += 1;
        self.state.outside.insert(number, id);
        call.outside = Some(number);
        let key = format!("{}.{number}", self.state.id);
        self.outgoing.push(Effect::Dispatch(Box::new(Dispatch { call: number, key, provider, request })));
        Ok(())
    }

    /// Accepts the Result of a call that was dispatched.
    pub(super) fn accept(&mut self, answer: Answer) -> Result<(), StateError> {
        let Answer { call: number, outcome, metadata } = answer;
        let Some(id) = self.state.outside.remove(&number) else { return Ok(()) };
        let outcome = match outcome {
            Outcome::Success(value) if depth(&value) > MAX_DEPTH => {
                let message = format!("the value has more than {MAX_DEPTH} arrays and objects inside of each other");
                Outcome::Failure(Failure::error("System.UnrepresentableValue", message))
            }
            Outcome::Failure(failure) => Outcome::Failure(failure.bounded()),
            success => success,
        };
        let mut task = self.state.tasks.remove(&id).ok_or(StateError::Damaged)?;
        let Some(Record::Call(call)) = task.stack.last_mut() else { return Err(StateError::Damaged) };
        call.outside = None;
        call.window = Window::Provider { metadata };
        self.note_answered(&task, number, &outcome);
        task.control = Control::Rise(outcome);
        self.state.tasks.insert(id, task);
        self.ready.insert(id);
        Ok(())
    }

    /// The Result of a call is not wanted any more. One that has not left yet never does.
    pub(super) fn withdraw(&mut self, call: &CallRecord) {
        let Some(number) = call.outside else { return };
        self.state.outside.remove(&number);
        let before = self.outgoing.len();
        self.outgoing.retain(|effect| !matches!(effect, Effect::Dispatch(dispatch) if dispatch.call == number));
        if self.outgoing.len() == before {
            self.outgoing.push(Effect::Withdraw(number));
        }
    }
}
