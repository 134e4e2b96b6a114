//! Refusals of the engine as statuses of gRPC.

use redrive_engine::EngineError;
use tonic::Status;

/// The status of a command that was not carried out.
pub(super) fn status_of(error: &EngineError) -> Status {
    match error {
        EngineError::Invalid(_) | EngineError::InvalidPolicy(_) => Status::invalid_argument(error.to_string()),
        EngineError::QueueFull(_) => Status::resource_exhausted(error.to_string()),
        EngineError::Duplicate(_) | EngineError::NotUnique(..) => Status::already_exists(error.to_string()),
        EngineError::Refused(..) | EngineError::NoSuchQueue(_) | EngineError::QueueHasJobs(_) => {
            Status::failed_precondition(error.to_string())
        }
        EngineError::NoSuchProgram(_)
        | EngineError::RunKeyTaken(_)
        | EngineError::RefusedRun(..)
        | EngineError::RunTooLarge { .. } => Status::internal(error.to_string()),
        EngineError::Store(store) => {
            tracing::error!("a call over gRPC failed: {store}");
            Status::unavailable("the store does not answer; ask again later")
        }
    }
}

/// The status of a call that the end of the server interrupts.
pub(super) fn stopping() -> Status {
    Status::unavailable("the server stops; ask again")
}
