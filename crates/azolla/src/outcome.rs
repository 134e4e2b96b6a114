//! Jobs as callers that wait for a task are answered.

use crate::common::{ErrorResult, SuccessResult};
use crate::orchestrator::wait_for_task_response::ResultType;
use crate::orchestrator::{WaitForTaskResponse, WaitForTaskStatus};
use crate::value::value_of;
use crate::{domain_prefix, error};
use redrive_store::{Job, State};

/// What is known of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It has not ended.
    Running,
    /// The domain has no such task.
    NotFound,
    /// It has ended.
    Ended(ResultType),
}

/// What a job says of a task of this domain.
#[must_use]
pub fn answer_of(job: Option<&Job>, domain: &str) -> Answer {
    let Some(job) = job.filter(|job| job.spec.queue.starts_with(&domain_prefix(domain))) else {
        return Answer::NotFound;
    };
    match job.state {
        State::Completed => {
            let json = job.result.as_deref().and_then(|json| std::str::from_utf8(json).ok()).unwrap_or("null");
            Answer::Ended(ResultType::Success(SuccessResult { result: Some(value_of(json)) }))
        }
        State::Discarded => Answer::Ended(ResultType::Error(last_error(job))),
        State::Cancelled => Answer::Ended(ResultType::Error(made("TaskCancelled", "the task was cancelled"))),
        _ => Answer::Running,
    }
}

/// The last failure; a job that expired may have none.
fn last_error(job: &Job) -> ErrorResult {
    let last = job.failures.last().filter(|last| last.generation == job.generation);
    last.map_or_else(|| made("TaskExpired", "the task expired before it ran"), |last| error::answered(&last.error))
}

fn made(type_name: &str, message: &str) -> ErrorResult {
    let data = error::data_of(None);
    ErrorResult { r#type: type_name.to_owned(), message: message.to_owned(), data, retriable: false }
}

impl From<WaitForTaskStatus> for WaitForTaskResponse {
    fn from(status: WaitForTaskStatus) -> Self {
        Self { status_code: status.into(), result_type: None }
    }
}

impl From<Answer> for WaitForTaskResponse {
    /// A task that has not ended is answered as one for which the wait is over.
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Running => WaitForTaskStatus::Timeout.into(),
            Answer::NotFound => WaitForTaskStatus::TaskNotFound.into(),
            Answer::Ended(result) => Self { result_type: Some(result), ..WaitForTaskStatus::Completed.into() },
        }
    }
}
