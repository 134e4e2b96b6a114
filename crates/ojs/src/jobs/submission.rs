//! A job as a caller enqueues it, as the engine takes it: with the policy that applies to it.

use super::{JobRequest, PolicyOrigin, policy_document};
use crate::json::Members;
use crate::{Invalid, Limits, TraceContext};
use redrive_engine::{Effective, Engine, JobPolicy, PolicyDocument, PolicyText, Submission};
use redrive_policy::{Moment, Problems};
use std::sync::Arc;

/// Reads a job that is enqueued at `now`. `key` is an idempotency key that came beside it.
///
/// # Errors
/// Everything that is wrong with it.
pub fn submission<'a>(
    engine: &Engine,
    top: &Members<'a>,
    key: Option<&'a str>,
    limits: &Limits,
    now: Moment,
) -> Result<Submission, Invalid> {
    submission_in(None, engine, top, key, limits, now)
}

/// The same of a job in a trace, unless it names one itself.
///
/// # Errors
/// As [`submission`].
pub fn submission_in<'a>(
    trace: Option<TraceContext<'_>>,
    engine: &Engine,
    top: &Members<'a>,
    key: Option<&'a str>,
    limits: &Limits,
    now: Moment,
) -> Result<Submission, Invalid> {
    let request = JobRequest::read(top, key, limits, now).in_trace(trace);
    let policy = engine.effective(request.retry().map(policy_text), &request.kind, &request.queue);
    let (request, effective) = request.checked(policy)?;
    Ok(Submission {
        id: request.id,
        body: Arc::from(request.body(&PolicyOrigin::from(&*effective))),
        kind: Arc::from(&*request.kind),
        queue: Arc::from(&*request.queue),
        priority: request.priority,
        start: request.start,
        expires: request.expires,
        timeout: request.timeout,
        lease: request.lease,
        policy: JobPolicy::Effective(effective),
        idempotency_key: request.idempotency_key.as_deref().map(Arc::from),
        unique: request.unique.map(Arc::new),
        limit: request.limit,
    })
}

/// A policy that a job or a worker brings, for the engine.
#[must_use]
pub fn policy_text(text: &str) -> PolicyText<'_> {
    PolicyText { text, read: written }
}

fn written(text: &str) -> Result<PolicyDocument, Problems> {
    policy_document(text).map(|(dialect, value)| PolicyDocument { dialect, value })
}

impl From<&Effective> for PolicyOrigin {
    fn from(effective: &Effective) -> Self {
        Self::new(effective.layer, effective.written.dialect, &effective.capped_by)
    }
}
