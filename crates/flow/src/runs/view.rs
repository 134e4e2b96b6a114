//! Runs as callers see them.

use super::Event;
use super::state::FlowState;
use crate::{Definition, Position, Waits};
use redrive_engine::Engine;
use redrive_ojs::time::rfc3339;
use redrive_store::Run;
use serde_json::{Map, Value, json};

/// How much of a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// Everything.
    Whole,
    /// What a list has.
    Listed,
}

/// A run of a flow with its state.
#[derive(Clone, Debug)]
pub struct RunView {
    run: Run,
    state: FlowState,
}

/// The word for how far a run is.
#[must_use]
pub fn state_name(run: &Run, state: &FlowState) -> &'static str {
    match &run.end {
        None if state.cancelled => "cancelling",
        None => "running",
        Some(end) if end.succeeded => "completed",
        Some(_) if state.cancelled && is_cancelled(&result(run)) => "cancelled",
        Some(_) => "failed",
    }
}

fn is_cancelled(result: &Value) -> bool {
    result["code"] == "System.Cancelled" && result["type"] == "cancellation"
}

/// The Result of a run that has ended. One that the engine has ended has a message only.
fn result(run: &Run) -> Value {
    let Some(end) = &run.end else { return Value::Null };
    let stored: Value = serde_json::from_slice(&end.result).unwrap_or_default();
    if stored.get("type").is_some() {
        return stored;
    }
    json!({ "type": "error", "code": "Redrive.RunFailed", "message": stored["message"] })
}

impl RunView {
    /// Reads a run.
    ///
    /// # Errors
    /// Its state cannot be read.
    pub fn read(run: Run) -> Result<Self, String> {
        let state = FlowState::read(&run.state)?;
        Ok(Self { run, state })
    }

    /// The run.
    #[must_use]
    pub const fn run(&self) -> &Run {
        &self.run
    }

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> &FlowState {
        &self.state
    }

    /// The word for how far it is.
    #[must_use]
    pub fn state_name(&self) -> &'static str {
        state_name(&self.run, &self.state)
    }

    /// Its events behind a number, and how many of them are not kept any more.
    pub fn events_after(&self, seq: u64) -> (u64, impl Iterator<Item = &Event>) {
        self.state.events.after(seq)
    }

    /// The run as callers see it.
    #[must_use]
    pub fn to_value(&self, shown: Shown) -> Value {
        let Self { run, state } = self;
        let mut out = Map::new();
        let mut put = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
        put("id", run.id.to_string().into());
        put("definition", state.definition.as_str().into());
        put("version", state.version.into());
        put("state", self.state_name().into());
        if shown == Shown::Whole {
            put("input", state.input.clone());
            put("arguments", state.arguments.clone());
        }
        put("started_at", rfc3339(run.created).into());
        put("ended_at", run.end.as_ref().map_or(Value::Null, |end| rfc3339(end.at).into()));
        put("wakes_at", run.timer.map_or(Value::Null, |at| rfc3339(at).into()));
        put("result", result(run));
        if shown == Shown::Whole {
            put("positions", self.positions().into());
            put("retries", state.retries.shown().into());
            put("retries_omitted", state.retries.omitted().into());
        }
        Value::Object(out)
    }

    fn positions(&self) -> Vec<Value> {
        let Some(machine) = self.state.machine.as_ref().filter(|_| self.run.end.is_none()) else { return Vec::new() };
        // What cannot be read by this version is shown without its positions.
        let Ok(definition) = Definition::read(&self.state.text) else { return Vec::new() };
        definition.positions(machine).iter().map(|position| self.position(position)).collect()
    }

    fn position(&self, position: &Position) -> Value {
        let (waits, until, call) = match position.waits {
            Waits::Retry(at) => ("retry", Some(at), None),
            Waits::Sleep(at) => ("sleep", Some(at), None),
            Waits::Mock(at) => ("mock", Some(at), None),
            Waits::Call(call, provider) => (provider.name(), None, Some(call)),
            Waits::Dispatches => ("dispatches", None, None),
            Waits::Nothing => ("nothing", None, None),
        };
        let job = |call: u64| Engine::child_job(&self.run, self.state.child(call)).to_string();
        json!({
            "flow": position.flow,
            "step": position.step.as_ref().map(|(name, _)| name),
            "action": position.step.as_ref().map(|(_, action)| action),
            "since": position.since.map(rfc3339),
            "waits": waits,
            "until": until.map(rfc3339),
            "job_id": call.map(job),
        })
    }
}
