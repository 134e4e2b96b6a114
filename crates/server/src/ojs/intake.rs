//! A job as a caller enqueues it, with the policy that applies to it.

use crate::api_error::ApiError;
use crate::app::App;
use redrive_engine::{Effective, JobPolicy, PolicyDocument, PolicyText, Submission};
use redrive_ojs::json::Members;
use redrive_ojs::{Invalid, JobRequest, PolicyOrigin, policy_document};
use redrive_policy::{Moment, Problems};
use std::sync::Arc;

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
    let request = JobRequest::read(top, key, &app.limits.of_jobs(), now);
    let policy = app.engine.effective(request.retry().map(policy_text), &request.kind, &request.queue);
    let (request, effective) = request.checked(policy)?;
    Ok(Submission {
        id: request.id,
        body: Arc::from(request.body(&origin(&effective))),
        kind: Arc::from(&*request.kind),
        queue: Arc::from(&*request.queue),
        priority: request.priority,
        start: request.start,
        expires: request.expires,
        timeout: request.timeout,
        lease: request.lease,
        policy: JobPolicy::Effective(effective),
        idempotency_key: request.idempotency_key.as_deref().map(Arc::from),
    })
}

/// A policy that a job or a worker brings, for the engine.
pub(super) fn policy_text(text: &str) -> PolicyText<'_> {
    PolicyText { text, read: written }
}

fn written(text: &str) -> Result<PolicyDocument, Problems> {
    policy_document(text).map(|(dialect, value)| PolicyDocument { dialect, value })
}

/// Where the policy of a job came from.
pub(super) fn origin(effective: &Effective) -> PolicyOrigin {
    PolicyOrigin::new(effective.layer, effective.written.dialect, &effective.capped_by)
}
