//! Maintenance mode: nothing is claimed, nothing becomes available, no schedule is due; jobs can still be enqueued, and
//! runs that workers have go on.
//!
//! It is stored as a run with a key of its own, so that it survives a restart and holds on every node: each looks for
//! it once a second.

use crate::{Context, Effect, Engine, EngineError, Input, Program, ProgramStep, RunRequest, Submission};
use redrive_policy::Moment;
use redrive_store::{Blob, MessageBody, Signal};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError, RwLock};

/// The kind of the run.
pub(crate) const KIND: &str = "redrive.maintenance";
/// Its key. Schedules have keys that begin otherwise.
const KEY: &str = "redrive:maintenance";
/// The signals to it.
const CHANGE: &str = "change";
const END: &str = "end";

/// That the server is under maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// Why, in the words of the operator.
    pub reason: Option<String>,
    /// Since when, by the wall clock.
    pub since: Moment,
    /// When it is expected to end. It does not end by itself.
    pub expected_end: Option<Moment>,
}

impl Maintenance {
    fn write(&self) -> Vec<u8> {
        let micros = |at: Moment| at.micros();
        let (since, end) = (micros(self.since), self.expected_end.map(micros));
        json!({ "reason": self.reason, "since_us": since, "end_us": end }).to_string().into_bytes()
    }

    /// What cannot be read is maintenance all the same: an operator has asked for it.
    fn read(state: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(state).unwrap_or_default();
        let moment = |key: &str| value[key].as_i64().map(Moment::from_micros);
        Self {
            reason: value["reason"].as_str().map(str::to_owned),
            since: moment("since_us").unwrap_or_default(),
            expected_end: moment("end_us"),
        }
    }
}

/// What this engine knows of it.
#[derive(Debug, Default)]
pub(crate) struct Known(RwLock<Option<Maintenance>>);

/// The program of its run, which waits until it is told to end.
pub(crate) struct MaintenanceProgram;

impl Program for MaintenanceProgram {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn version(&self) -> u32 {
        1
    }

    fn step(&self, context: &Context<'_>, input: &Input<'_>) -> Result<ProgramStep, String> {
        let same = || ProgramStep { state: context.state.to_vec(), effects: Vec::new() };
        Ok(match input {
            Input::Message(MessageBody::Signal(signal)) if &*signal.name == CHANGE => {
                ProgramStep { state: signal.body.to_vec(), effects: Vec::new() }
            }
            Input::Message(MessageBody::Signal(signal)) if &*signal.name == END => {
                ProgramStep { effects: vec![Effect::Finish { succeeded: true, result: Vec::new() }], ..same() }
            }
            _ => same(),
        })
    }

    fn submission(&self, _: &Engine, _: &[u8], _: Moment) -> Result<Submission, String> {
        Err("maintenance has no jobs".to_owned())
    }
}

impl Engine {
    /// Whether the server is under maintenance, as far as this node knows.
    #[must_use]
    pub fn maintenance(&self) -> Option<Maintenance> {
        self.maintenance.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_under_maintenance(&self) -> bool {
        self.maintenance.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Begins maintenance, or changes what is said about it; other nodes follow within a second. Answers how it stands.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn begin_maintenance(
        &self,
        reason: Option<String>,
        expected_end: Option<Moment>,
    ) -> Result<Maintenance, EngineError> {
        self.recall_maintenance().await?;
        let since = self.maintenance().map_or_else(|| self.now(), |known| known.since);
        let maintenance = Maintenance { reason, since, expected_end };
        let state = Blob::from(maintenance.write());
        let request = RunRequest { id: None, program: KIND, state: Arc::clone(&state), key: Some(KEY.into()) };
        match self.start_run(request).await {
            Err(EngineError::RunKeyTaken(id)) => {
                self.signal_run(id, Signal { name: CHANGE.into(), body: state }).await?;
            }
            answer => drop(answer?),
        }
        self.note_maintenance(Some(maintenance.clone()));
        Ok(maintenance)
    }

    /// Ends maintenance, if there is any.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn end_maintenance(&self) -> Result<(), EngineError> {
        if let Some(run) = self.store.run_of_key(KEY.into()).await? {
            self.signal_run(run.id, Signal { name: END.into(), body: Blob::default() }).await?;
        }
        self.recall_maintenance().await
    }

    /// Learns from the store whether there is maintenance.
    ///
    /// # Errors
    /// The store did not answer.
    pub async fn recall_maintenance(&self) -> Result<(), EngineError> {
        let run = self.store.run_of_key(KEY.into()).await?;
        self.note_maintenance(run.map(|run| Maintenance::read(&run.state)));
        Ok(())
    }

    fn note_maintenance(&self, now: Option<Maintenance>) {
        let mut known = self.maintenance.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_over = known.is_some() && now.is_none();
        *known = now;
        drop(known);
        if is_over {
            self.notified_anything();
        }
    }
}
