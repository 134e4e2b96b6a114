//! Enqueueing jobs: the document for a server, read by the same code as on a server.

use super::super::document::document;
use crate::{ClientError, NewJob};
use redrive_engine::{Effective, Engine, JobPolicy, PolicyDocument, PolicyText, Submission};
use redrive_ojs::json::Members;
use redrive_ojs::{Invalid, JobRequest, Limits, PolicyOrigin, policy_document};
use redrive_policy::{Moment, Problem, Problems};
use std::sync::Arc;

/// The longest document of one job, in bytes: the longest request that a server accepts.
const MAX_BYTES: usize = 1 << 20;

/// Jobs as the engine takes them.
///
/// # Errors
/// What a server would refuse: a folder may be served later.
pub(super) fn submissions(engine: &Engine, jobs: &[NewJob]) -> Result<Vec<Submission>, ClientError> {
    let now = engine.now();
    let mut invalid = Invalid::default();
    let mut read = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let text = serde_json::to_string(&document(job)).map_err(ClientError::unwritable)?;
        if text.len() > MAX_BYTES {
            let message = format!("found a job of {} bytes; allowed are {MAX_BYTES} bytes", text.len());
            return Err(ClientError::refused(413, "payload_too_large", message));
        }
        match submission(engine, &text, now) {
            Ok(submission) => read.push(submission),
            Err(other) if jobs.len() == 1 => invalid = other,
            Err(other) => invalid.add(&format!("/jobs/{index}"), other),
        }
    }
    if invalid.is_empty() { Ok(read) } else { Err(refusal(invalid)) }
}

fn submission(engine: &Engine, text: &str, now: Moment) -> Result<Submission, Invalid> {
    let members = Members::parse(text);
    let members =
        members.map_err(|error| Invalid::request(Problem::with_message("", format!("not a job: {error}"))))?;
    let request = JobRequest::read(&members, None, &Limits::default(), now);
    let own = request.retry().map(|text| PolicyText { text, read: written });
    let policy = engine.effective(own, &request.kind, &request.queue);
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

fn written(text: &str) -> Result<PolicyDocument, Problems> {
    policy_document(text).map(|(dialect, value)| PolicyDocument { dialect, value })
}

fn origin(effective: &Effective) -> PolicyOrigin {
    PolicyOrigin::new(effective.layer, effective.written.dialect, &effective.capped_by)
}

fn refusal(invalid: Invalid) -> ClientError {
    let (status, code) = if invalid.is_policy_alone() { (422, "validation_error") } else { (400, "invalid_request") };
    ClientError::refused(status, code, invalid.message())
}
