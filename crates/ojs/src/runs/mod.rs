//! What callers do with schedules and workflows: the same over HTTP and in-process. Each function is one operation on
//! an engine, with the request as it was sent and the answer as it is returned.

pub mod schedules;
pub mod workflows;

use crate::cron::Cron;
use crate::webhooks::Webhooks;
use crate::workflows::Workflows;
use crate::{Invalid, Limits};
use redrive_engine::{EngineError, Program};
use redrive_store::RunId;
use std::fmt;
use std::sync::Arc;

/// All programs of Open Job Spec, for an engine whose jobs have these limits.
#[must_use]
pub fn programs(limits: Limits) -> Vec<Arc<dyn Program>> {
    vec![Arc::new(Workflows::new(limits)), Arc::new(Cron::new(limits)), Arc::new(Webhooks::default())]
}

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq)]
pub enum RunsError {
    /// The request is not valid.
    Invalid(Invalid),
    /// There is no schedule of this name; perhaps the other one is meant.
    NoSuchSchedule(String, Option<String>),
    /// A schedule has this name already.
    ScheduleExists(String),
    /// A workflow, or another run, has this id already.
    WorkflowExists(RunId),
    /// There is no workflow of this id, as the caller wrote it.
    NoSuchWorkflow(String),
    /// The workflow is in this state, and cannot be cancelled any more.
    WorkflowOver(RunId, &'static str),
    /// What is stored cannot be read.
    Unreadable(String),
    /// The engine refused it, or the store did not answer.
    Engine(EngineError),
}

impl fmt::Display for RunsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(invalid) => f.write_str(&invalid.clone().message()),
            Self::NoSuchSchedule(name, None) => write!(f, "there is no schedule \"{name}\""),
            Self::NoSuchSchedule(name, Some(near)) => {
                write!(f, "there is no schedule \"{name}\"; did you mean \"{near}\"?")
            }
            Self::ScheduleExists(name) => write!(f, "a schedule \"{name}\" exists already"),
            Self::WorkflowExists(id) => write!(f, "a workflow {id} exists already; an id is used once"),
            Self::NoSuchWorkflow(id) => write!(f, "there is no workflow \"{id}\""),
            Self::WorkflowOver(id, state) => {
                write!(f, "the workflow {id} is {state} already, and what is {state} cannot be cancelled")
            }
            Self::Unreadable(why) => f.write_str(why),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunsError {}

impl From<EngineError> for RunsError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<Invalid> for RunsError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}
