//! The program of workflows.

use super::machine::{Ended, Machine};
use super::state::{NodeError, WorkflowState};
use crate::json::Members;
use crate::{Limits, submission};
use redrive_engine::{Context, Engine, Input, Program, ProgramStep, Submission};
use redrive_policy::Moment;
use redrive_store::{Blob, ChildEnd, FailedAttempt, MessageBody};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The kind of the runs of workflows.
pub const WORKFLOW: &str = "ojs.workflow";
/// The signal that cancels a workflow.
pub const CANCEL: &str = "cancel";

/// The program of workflows.
#[derive(Clone, Copy, Debug)]
pub struct Workflows {
    limits: Limits,
}

impl Workflows {
    /// The program, with the limits of the jobs of this server.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self { limits }
    }
}

impl Program for Workflows {
    fn kind(&self) -> &'static str {
        WORKFLOW
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        Ok(self.steps(context, std::slice::from_ref(input))?.1)
    }

    /// The state is read and written once, however many jobs have ended.
    fn steps(&self, context: &Context<'_>, inputs: &[Input<'_>]) -> Result<(usize, ProgramStep), String> {
        let mut machine = Machine::new(WorkflowState::read(context.state)?, context);
        inputs.iter().for_each(|input| take(&mut machine, input));
        let Machine { state, effects, .. } = machine;
        Ok((inputs.len(), ProgramStep { state: state.write(), effects }))
    }

    fn submission(&self, engine: &Engine, document: &[u8], now: Moment) -> Result<Submission, String> {
        let text = std::str::from_utf8(document).map_err(|error| format!("the job is not text: {error}"))?;
        let members = Members::parse(text).map_err(|error| format!("the job is not an object: {error}"))?;
        submission(engine, &members, None, &self.limits, now).map_err(crate::Invalid::message)
    }
}

fn take(machine: &mut Machine<'_>, input: &Input<'_>) {
    match input {
        Input::Started => machine.begin(),
        Input::Message(MessageBody::JobEnded { child, end, .. }) => {
            if let Ok(index) = u32::try_from(*child) {
                machine.job_ended(index, ended(end));
            }
        }
        Input::Message(MessageBody::JobRedriven { child, .. }) => {
            if let Ok(index) = u32::try_from(*child) {
                machine.job_redriven(index);
            }
        }
        Input::Message(MessageBody::Signal(signal)) if &*signal.name == CANCEL => machine.cancel(),
        Input::JobRefused { child, why } => {
            if let Ok(index) = u32::try_from(*child) {
                machine.job_ended(index, Ended::Failed(failure("invalid_request", why, None)));
            }
        }
        Input::TimerDue
        | Input::Message(MessageBody::Signal(_) | MessageBody::RunEnded { .. } | MessageBody::Event { .. }) => {}
    }
}

fn ended(end: &ChildEnd) -> Ended {
    match end {
        ChildEnd::Completed { result } => Ended::Completed(result.as_ref().and_then(raw)),
        ChildEnd::Failed { failure, .. } => Ended::Failed(of_attempt(failure)),
        ChildEnd::Expired { last_failure, .. } => {
            let attempt = last_failure.as_ref().map(|failure| failure.attempt);
            Ended::Failed(failure("expired", "the job expired before an attempt succeeded", attempt))
        }
        ChildEnd::Cancelled { .. } => Ended::Cancelled,
    }
}

/// A result as it was returned, which is JSON text.
fn raw(result: &Blob) -> Option<Box<RawValue>> {
    RawValue::from_string(String::from_utf8(result.to_vec()).ok()?).ok()
}

fn of_attempt(failed: &FailedAttempt) -> NodeError {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Stored {
        code: Option<String>,
        r#type: Option<String>,
        message: Option<String>,
    }
    let stored: Stored = serde_json::from_slice(&failed.error).unwrap_or_default();
    let code = stored.code.or(stored.r#type).unwrap_or_else(|| "handler_error".to_owned());
    failure(&code, stored.message.as_deref().unwrap_or_default(), Some(failed.attempt))
}

fn failure(code: &str, message: &str, attempt: Option<u32>) -> NodeError {
    NodeError { attempt, code: code.to_owned(), message: message.to_owned() }
}
