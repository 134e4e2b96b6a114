//! The end of an attempt, as a worker reports it.

use crate::common::task_result::ResultType;
use crate::common::{ErrorResult, TaskResult};
use crate::value::json_of;
use crate::{LONGEST_VALUE, error};
use redrive_engine::{Ending, FailureReport};
use redrive_ojs::Limits;
use redrive_policy::Signal;
use redrive_store::{Blob, JobId};
use uuid::Uuid;

/// How an attempt of a task ended.
#[derive(Clone, Debug)]
pub struct Report {
    /// The task.
    pub id: JobId,
    /// How it ended.
    pub ending: Ending,
}

/// Reads a report.
///
/// # Errors
/// It names no task.
pub fn report_of(result: TaskResult, limits: &Limits) -> Result<Report, String> {
    let id = Uuid::try_parse(&result.task_id)
        .map_err(|_| format!("found the task_id {:?}; allowed is that of a task", result.task_id))?;
    let ending = match result.result_type {
        Some(ResultType::Success(success)) => done(json_of(success.result, limits.nesting)),
        Some(ResultType::Error(error)) => Ending::Failed(failure(&error, limits, Signal::None)),
        None => {
            let message = "the worker reported neither a result nor an error";
            Ending::Failed(failure(&made("UnknownError", message.to_owned()), limits, Signal::Permanent))
        }
    };
    Ok(Report { id: JobId::from_bytes(id.into_bytes()), ending })
}

/// The end of an attempt whose task no worker can get.
#[must_use]
pub fn too_large(found: usize, limits: &Limits) -> Ending {
    let message = format!("the task has {found} bytes; shepherds take at most {}", crate::LONGEST_MESSAGE);
    Ending::Failed(failure(&made("TaskTooLarge", message), limits, Signal::Permanent))
}

fn done(json: String) -> Ending {
    let found = json.len();
    if found <= LONGEST_VALUE {
        return Ending::Done(Some(Blob::from(json.into_bytes())));
    }
    let message = format!("the result has {found} bytes of JSON; clients take at most {LONGEST_VALUE}");
    let limits = Limits::default();
    Ending::Failed(failure(&made("ResultTooLarge", message), &limits, Signal::None))
}

fn made(type_name: &str, message: String) -> ErrorResult {
    ErrorResult { r#type: type_name.to_owned(), message, data: String::new(), retriable: false }
}

/// The worker's own word about retrying is stored and shown; the lists of the policy decide.
fn failure(error: &ErrorResult, limits: &Limits, signal: Signal) -> FailureReport {
    FailureReport {
        types: vec![error.r#type.clone()],
        retryable: Some(error.retriable),
        signal,
        ..FailureReport::new(error::stored(error, limits.error_bytes, limits.nesting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{AnyValue, SuccessResult, any_value};

    fn report(result_type: Option<ResultType>) -> Ending {
        let task_id = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
        let report = report_of(TaskResult { task_id: task_id.clone(), result_type }, &Limits::default()).unwrap();
        assert_eq!(report.id.to_string(), task_id);
        report.ending
    }

    #[test]
    fn section_6_a_result_without_a_type_is_final() {
        let Ending::Failed(failure) = report(None) else { panic!("a failure") };
        assert_eq!((failure.types, failure.signal), (vec!["UnknownError".to_owned()], Signal::Permanent));
    }

    #[test]
    fn a_result_that_no_client_could_take_fails_the_attempt() {
        let of = |length: usize| {
            let value = any_value::Value::StringValue("x".repeat(length));
            report(Some(ResultType::Success(SuccessResult { result: Some(AnyValue { value: Some(value) }) })))
        };
        assert!(matches!(of(LONGEST_VALUE - 2), Ending::Done(Some(_))));
        let Ending::Failed(failure) = of(LONGEST_VALUE - 1) else { panic!("a failure") };
        assert_eq!(failure.types, ["ResultTooLarge"]);
    }

    #[test]
    fn a_report_without_a_task_is_refused() {
        let result = TaskResult { task_id: "7".to_owned(), result_type: None };
        assert!(report_of(result, &Limits::default()).unwrap_err().contains("\"7\""));
    }
}
