//! Workflows: start, look at, list, cancel.

use super::RunsError;
use crate::json::Members;
use crate::workflows::{CANCEL, WORKFLOW, WorkflowLimits, WorkflowRequest, WorkflowState, push_workflow};
use redrive_engine::{Engine, EngineError, RunRequest};
use redrive_store::{Blob, Job, Run, RunFilter, RunId, RunRefusal, Signal};

/// A workflow as it stands.
#[derive(Debug)]
pub struct Workflow {
    run: Run,
    state: WorkflowState,
    jobs: Vec<Job>,
}

impl Workflow {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> RunId {
        self.run.id
    }

    /// Writes its members, without braces.
    pub fn push_members(&self, out: &mut Vec<u8>) {
        push_workflow(out, &self.run, &self.state, &self.jobs);
    }

    /// Writes it as an object.
    pub fn push(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        self.push_members(out);
        out.push(b'}');
    }

    /// Without what only its jobs know: when they started, and how often.
    fn alone(run: Run) -> Result<Self, RunsError> {
        let state = WorkflowState::read(&run.state).map_err(RunsError::Unreadable)?;
        Ok(Self { run, state, jobs: Vec::new() })
    }

    async fn whole(engine: &Engine, run: Run) -> Result<Self, RunsError> {
        let workflow = Self::alone(run)?;
        let jobs = engine.jobs(workflow.state.enqueued(&workflow.run)).await?;
        Ok(Self { jobs, ..workflow })
    }

    fn over(&self) -> Option<&'static str> {
        self.state.over(&self.run)
    }
}

/// Starts a workflow.
///
/// # Errors
/// It is not valid, its id is taken, or the store did not answer.
pub async fn start(engine: &Engine, document: &Members<'_>, limits: WorkflowLimits) -> Result<Workflow, RunsError> {
    let request = WorkflowRequest::read(document, engine, limits, engine.now())?;
    let state = Blob::from(request.state.write());
    match engine.start_run(RunRequest { id: request.id, program: WORKFLOW, state, key: None }).await {
        Err(EngineError::RefusedRun(id, RunRefusal::RunIdTaken(_))) => Err(RunsError::WorkflowExists(id)),
        answer => Workflow::whole(engine, answer?).await,
    }
}

/// One workflow.
///
/// # Errors
/// There is no such workflow, or the store did not answer.
pub async fn show(engine: &Engine, id: &str) -> Result<Workflow, RunsError> {
    let run = find(engine, id).await?;
    Workflow::whole(engine, run).await
}

/// Cancels a workflow: what waits is cancelled, and what a worker has may complete.
///
/// # Errors
/// There is no such workflow, it is over, or the store did not answer.
pub async fn cancel(engine: &Engine, id: &str) -> Result<Workflow, RunsError> {
    let workflow = Workflow::alone(find(engine, id).await?)?;
    if let Some(word) = workflow.over() {
        return Err(RunsError::WorkflowOver(workflow.id(), word));
    }
    let signal = Signal { name: CANCEL.into(), body: Blob::default() };
    let run = engine.signal_run(workflow.id(), signal).await?;
    let workflow = Workflow::whole(engine, run).await?;
    // It may have ended before the signal arrived.
    match workflow.over() {
        Some(word) if word != "cancelled" => Err(RunsError::WorkflowOver(workflow.id(), word)),
        _ => Ok(workflow),
    }
}

/// Workflows without the details of their jobs, the newest first: those that have ended, or those that go on, or both;
/// behind one of them.
///
/// # Errors
/// The store did not answer.
pub async fn list(
    engine: &Engine,
    ended: Option<bool>,
    after: Option<RunId>,
    limit: usize,
) -> Result<Vec<Workflow>, RunsError> {
    let filter = RunFilter { program: Some(WORKFLOW.into()), ended, after, keys: None };
    engine.list_runs(filter, limit).await?.into_iter().map(Workflow::alone).collect()
}

/// The run of a workflow. A run of another program is none.
async fn find(engine: &Engine, text: &str) -> Result<Run, RunsError> {
    let missing = || RunsError::NoSuchWorkflow(text.to_owned());
    let id: RunId = text.parse().map_err(|_| missing())?;
    let run = engine.run(id).await.map_err(|error| match error {
        EngineError::RefusedRun(..) => missing(),
        other => other.into(),
    })?;
    if *run.program == *WORKFLOW { Ok(run) } else { Err(missing()) }
}
