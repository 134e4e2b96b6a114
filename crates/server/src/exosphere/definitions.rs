//! Registered nodes and graphs, as they are stored: one run for each.

use super::reply::damaged;
use crate::api_error::{ApiError, Code};
use redrive_engine::{Engine, EngineError, RunRequest};
use redrive_exosphere::REPLACE;
use redrive_store::{Blob, Run, RunFilter, RunKeys, Signal};
use serde::Serialize;
use std::sync::Arc;

/// How many definitions are read from the store at a time.
const STEP: usize = 100;
/// How often a definition is looked for that others put at the same time.
const LOOKS: usize = 5;

/// Stores a definition in place of the one with its key.
pub(super) async fn put(
    engine: &Engine,
    program: &'static str,
    key: Arc<str>,
    definition: &impl Serialize,
) -> Result<Run, ApiError> {
    let state: Blob = serde_json::to_vec(definition).map_err(|error| damaged(error.to_string()))?.into();
    for _ in 0..LOOKS {
        if let Some(run) = engine.run_of_key(Arc::clone(&key)).await? {
            let signal = Signal { name: REPLACE.into(), body: Arc::clone(&state) };
            return Ok(engine.signal_run(run.id, signal).await?);
        }
        let request = RunRequest { id: None, program, state: Arc::clone(&state), key: Some(Arc::clone(&key)) };
        match engine.start_run(request).await {
            Err(EngineError::RunKeyTaken(_)) => {}
            answer => return Ok(answer?),
        }
    }
    Err(ApiError::new(Code::Conflict, "others change the same definition; send the request again"))
}

/// All definitions whose keys begin like this, by key.
pub(super) async fn all(engine: &Engine, program: &'static str, prefix: Arc<str>) -> Result<Vec<Run>, ApiError> {
    let list = async {
        let (mut runs, mut after) = (Vec::new(), None);
        loop {
            let keys = Some(RunKeys { prefix: Arc::clone(&prefix), after });
            let filter = RunFilter { program: Some(program.into()), keys, ..RunFilter::default() };
            let some = engine.list_runs(filter, STEP).await?;
            let whole = some.len() == STEP;
            after = some.last().and_then(|run| run.key.clone());
            runs.extend(some);
            if !whole {
                return Ok(runs);
            }
        }
    };
    engine.throttled(list).await
}
