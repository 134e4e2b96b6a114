//! Names in paths.

use crate::api_error::ApiError;
use crate::limits::Limits;
use redrive_ojs::{QUEUE_ALLOWED, is_queue, is_type};
use redrive_policy::Problem;
use redrive_store::JobId;

/// Checks the name of a queue in a path.
pub(crate) fn queue_in_path(name: &str, limits: &Limits) -> Result<(), ApiError> {
    if is_queue(name) && name.len() <= limits.name_bytes {
        return Ok(());
    }
    let allowed = format!("{QUEUE_ALLOWED}, at most {} bytes", limits.name_bytes);
    Err(ApiError::invalid(vec![Problem::new("/queue", format!("{name:?}"), allowed)]))
}

/// Checks the type of a job in a path.
pub(crate) fn type_in_path(name: &str, limits: &Limits) -> Result<(), ApiError> {
    if is_type(name) && name.len() <= limits.name_bytes {
        return Ok(());
    }
    let allowed = format!("a type such as email.send, at most {} bytes", limits.name_bytes);
    Err(ApiError::invalid(vec![Problem::new("/type", format!("{name:?}"), allowed)]))
}

/// The id of a job in a path. What is no id names no job.
pub(crate) fn id_in_path(text: &str) -> Result<JobId, ApiError> {
    text.parse().map_err(|_| ApiError::no_such_job(format_args!("{text:?}; ids are UUIDs of version 7 in lower case")))
}
