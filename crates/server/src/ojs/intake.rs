//! A job as a caller enqueues it, within the limits of this server.

use crate::api_error::ApiError;
use crate::app::App;
use crate::request::Trace;
use redrive_engine::Submission;
use redrive_ojs::json::Members;
use redrive_ojs::{Invalid, submission, submission_in};
use redrive_policy::Moment;

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let policy_alone = invalid.is_policy_alone();
        let problems = invalid.into_problems();
        if policy_alone { Self::invalid_policy(problems) } else { Self::invalid(problems) }
    }
}

/// Reads a job. `key` is an idempotency key that came with the request.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn read(app: &App, top: &Members<'_>, key: Option<&str>, now: Moment) -> Result<Submission, Invalid> {
    submission(&app.engine, top, key, &app.limits.of_jobs(), now)
}

/// The same of a job that came with a request in a trace.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_traced(
    app: &App,
    top: &Members<'_>,
    key: Option<&str>,
    trace: &Trace,
    now: Moment,
) -> Result<Submission, Invalid> {
    submission_in(trace.context(), &app.engine, top, key, &app.limits.of_jobs(), now)
}
