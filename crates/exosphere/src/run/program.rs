//! The program of runs of graphs.

use super::document::{Document, Leases};
use super::machine::{Ended, Machine};
use super::state::RunState;
use redrive_engine::{Context, Engine, Input, Program, ProgramStep, Submission};
use redrive_ojs::Limits;
use redrive_policy::{Moment, Outcome, Reason};
use redrive_store::{ChildEnd, MessageBody, Signal};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The kind of the runs of graphs.
pub const RUN: &str = "exosphere.run";
/// The signal that a state is to run again, with [`Manual`] as its body.
pub const RETRY: &str = "retry";

/// A manual retry.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manual {
    /// The position of the state.
    pub row: u32,
    /// The name that the caller gave to it; it is used once for each node of a run.
    pub fanout_id: String,
    /// What tells the calls from each other.
    pub call: String,
}

/// The program of runs of graphs.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    limits: Limits,
    leases: Leases,
}

impl Runs {
    /// The program, with the limits of the jobs of this server, and the leases of its states.
    #[must_use]
    pub const fn new(limits: Limits, leases: Leases) -> Self {
        Self { limits, leases }
    }
}

impl Program for Runs {
    fn kind(&self) -> &'static str {
        RUN
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        Ok(self.steps(context, std::slice::from_ref(input))?.1)
    }

    /// The state is read and written once, however many jobs have ended.
    fn steps(&self, context: &Context<'_>, inputs: &[Input<'_>]) -> Result<(usize, ProgramStep), String> {
        let mut machine = Machine::new(RunState::read(context.state)?, context);
        for input in inputs {
            take(&mut machine, input);
            // At once, so that states are numbered alike whether messages come together or one by one.
            machine.expand();
        }
        machine.go_on_later();
        machine.finish();
        let Machine { state, effects, .. } = machine;
        Ok((inputs.len(), ProgramStep { state: state.write(), effects }))
    }

    fn submission(&self, engine: &Engine, document: &[u8], _: Moment) -> Result<Submission, String> {
        Document::read(document)?.submission(engine, &self.limits, &self.leases)
    }
}

fn take(machine: &mut Machine<'_>, input: &Input<'_>) {
    let row = |child: u64| u32::try_from(child).unwrap_or(u32::MAX);
    match input {
        Input::Started => machine.begin(),
        Input::Message(MessageBody::JobEnded { child, end, .. }) => machine.job_ended(row(*child), ended(end)),
        Input::Message(MessageBody::JobRedriven { child, .. }) => machine.job_redriven(row(*child)),
        Input::JobRefused { child, why } => machine.job_ended(row(*child), Ended::Errored((*why).to_owned(), 0)),
        Input::Message(MessageBody::Signal(signal)) => take_signal(machine, signal),
        Input::TimerDue | Input::Message(MessageBody::RunEnded { .. } | MessageBody::Event { .. }) => {}
    }
}

fn take_signal(machine: &mut Machine<'_>, signal: &Signal) {
    if &*signal.name != RETRY {
        return;
    }
    if let Ok(Manual { row, fanout_id, call }) = serde_json::from_slice(&signal.body) {
        machine.retry(row, (fanout_id, call));
    }
}

fn ended(end: &ChildEnd) -> Ended {
    match end {
        ChildEnd::Completed { result } => {
            let Executed { outputs, retries } = Executed::read(result.as_deref().unwrap_or_default());
            Ended::Executed(outputs, retries)
        }
        ChildEnd::Failed { failure, .. } => {
            let retries = failure.attempt.saturating_sub(1);
            match failure.verdict.outcome {
                Outcome::Stop { reason: Reason::Pruned, .. } => Ended::Pruned(retries),
                _ => Ended::Errored(message(&failure.error), retries),
            }
        }
        ChildEnd::Expired { .. } => Ended::Errored("the job expired before a run succeeded".to_owned(), 0),
        ChildEnd::Cancelled { .. } => Ended::Errored("the job was cancelled".to_owned(), 0),
    }
}

/// What a state has returned, as the result of its job.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Executed {
    #[serde(default)]
    pub(crate) outputs: Vec<Map<String, Value>>,
    #[serde(default)]
    pub(crate) retries: u32,
}

impl Executed {
    /// A result that was not reported by a runtime of Exosphere has no outputs.
    pub(crate) fn read(result: &[u8]) -> Self {
        serde_json::from_slice(result).unwrap_or_default()
    }
}

/// The words of an error that is stored.
pub(crate) fn message(error: &[u8]) -> String {
    let stored: Value = serde_json::from_slice(error).unwrap_or_default();
    stored.get("message").and_then(Value::as_str).unwrap_or("the job failed").to_owned()
}
