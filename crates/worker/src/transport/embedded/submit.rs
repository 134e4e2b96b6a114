//! Enqueueing jobs: the document for a server, read by the same code as on a server.

use super::super::document::document;
use crate::{ClientError, NewJob};
use redrive_engine::{Engine, Submission};
use redrive_ojs::json::Members;
use redrive_ojs::{Invalid, Limits};
use redrive_policy::{Moment, Problem};

/// The longest document of one job, in bytes: the longest request that a server accepts.
pub(super) const MAX_BYTES: usize = 1 << 20;

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
    if invalid.is_empty() { Ok(read) } else { Err(refused(invalid)) }
}

fn submission(engine: &Engine, text: &str, now: Moment) -> Result<Submission, Invalid> {
    let members = Members::parse(text);
    let members =
        members.map_err(|error| Invalid::request(Problem::with_message("", format!("not a job: {error}"))))?;
    redrive_ojs::submission(engine, &members, None, &Limits::default(), now)
}

pub(super) fn refused(invalid: Invalid) -> ClientError {
    let (status, code) = if invalid.is_policy_alone() { (422, "validation_error") } else { (400, "invalid_request") };
    ClientError::refused(status, code, invalid.message())
}
