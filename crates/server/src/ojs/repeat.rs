//! Jobs that are enqueued again under the same idempotency key.

use crate::api_error::{ApiError, Code};
use redrive_engine::Submission;
use redrive_ojs::json::{member, push_u64};
use redrive_ojs::{body, is_same, key_reused};
use redrive_store::{Blob, Enqueued, Job};
use serde_json::json;
use std::sync::Arc;

/// The key of one job of a batch that has a key as a whole.
pub(super) fn key_in_batch(key: &str, index: usize) -> String {
    format!("{key}#{index}")
}

/// The work that a request asks for.
pub(super) struct Work {
    kind: Arc<str>,
    queue: Arc<str>,
    body: Blob,
}

impl Work {
    pub(super) fn of(job: &Submission) -> Self {
        let Submission { kind, queue, body, .. } = job;
        Self { kind: Arc::clone(kind), queue: Arc::clone(queue), body: Arc::clone(body) }
    }

    /// Whether a stored job does this work.
    pub(super) fn is_that_of(&self, stored: &Job) -> bool {
        is_same(stored, &self.kind, &self.queue, body::args(&self.body))
    }
}

/// The key is that of a job with other work.
pub(super) fn other_job(job: &Job) -> ApiError {
    let id = job.id.to_string();
    let message = key_reused(job.id);
    ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "idempotency_key_reused", "job_id": id }))
}

/// Refuses a batch in which a key is that of a job with other work.
pub(super) fn check_batch(works: &[Work], enqueued: &[Enqueued]) -> Result<(), ApiError> {
    let mut others = Vec::new();
    for (index, (work, answer)) in works.iter().zip(enqueued).enumerate() {
        if let Enqueued::Existing(job) = answer
            && !work.is_that_of(job)
        {
            others.push(json!({ "index": index, "job_id": job.id.to_string() }));
        }
    }
    let Some(first) = others.first() else { return Ok(()) };
    let created = enqueued.iter().filter(|answer| answer.is_new()).count();
    let message = format!(
        "/jobs/{}: the idempotency key is that of job {}, which has another type, queue or arguments; {} of the batch \
         are in conflict, and {created} are enqueued: use another key for another job",
        first["index"],
        first["job_id"],
        others.len()
    );
    Err(ApiError::new(Code::Conflict, message)
        .with_details(json!({ "reason": "idempotency_key_reused", "conflicts": others, "enqueued": created })))
}

/// Writes the positions of some jobs of a batch; nothing where there are none.
pub(super) fn push_places(out: &mut Vec<u8>, name: &str, enqueued: &[Enqueued], which: fn(&Enqueued) -> bool) {
    let places = enqueued.iter().enumerate().filter(|(_, answer)| which(answer));
    for (count, (index, _)) in places.enumerate() {
        if count == 0 {
            member(out, name);
            out.extend_from_slice(b"[]");
        }
        out.pop();
        if count > 0 {
            out.push(b',');
        }
        push_u64(out, index as u64);
        out.push(b']');
    }
}
