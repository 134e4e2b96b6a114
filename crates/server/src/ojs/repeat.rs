//! Jobs that are handed in again under the same idempotency key.

use super::body;
use crate::api_error::{ApiError, Code};
use crate::json::{Members, member, push_u64};
use redrive_store::{Enqueued, Job, Spec};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// The key of one job of a batch that has a key as a whole.
pub(super) fn key_in_batch(key: &str, index: usize) -> String {
    format!("{key}#{index}")
}

/// Whether a new job asks for the same work as a kept one: the same type, queue and arguments. What a
/// retry has replaced in the kept one counts as it was: the request that made the job is still the same.
pub(super) fn is_same(kept: &Job, new: &Spec) -> bool {
    let mut bodies = kept.revisions.iter().map(|revision| &revision.body).chain([&kept.spec.body]);
    kept.spec.kind == new.kind
        && (kept.spec.queue == new.queue || kept.generation > 0)
        && bodies.any(|body| same_args(body, &new.body))
}

/// Compares the arguments as text first: a request that is sent again is the same byte for byte.
fn same_args(kept: &[u8], new: &[u8]) -> bool {
    kept == new || args(kept, |kept| args(new, |new| kept == new || read(kept) == read(new)))
}

/// Hands the text of the arguments of a kept body to `look`.
fn args(kept: &[u8], look: impl FnOnce(&str) -> bool) -> bool {
    let whole = [b"{", body::split(kept).members, b"}"].concat();
    let members = std::str::from_utf8(&whole).ok().and_then(|text| Members::parse(text).ok());
    members.and_then(|members| members.get("args").map(RawValue::get)).is_some_and(look)
}

fn read(args: &str) -> Option<Value> {
    serde_json::from_str(args).ok()
}

/// The key is that of a job with other work.
pub(super) fn other_job(job: &Job) -> ApiError {
    let id = job.id.to_string();
    let message = format!(
        "the idempotency key is that of job {id}, which has another type, queue or arguments; nothing is enqueued: \
         use another key for another job"
    );
    ApiError::new(Code::Conflict, message).with_details(json!({ "reason": "idempotency_key_reused", "job_id": id }))
}

/// Refuses a batch in which a key is that of a job with other work.
pub(super) fn check_batch(specs: &[Arc<Spec>], enqueued: &[Enqueued]) -> Result<(), ApiError> {
    let mut others = Vec::new();
    for (index, (spec, answer)) in specs.iter().zip(enqueued).enumerate() {
        if let Enqueued::Existing(job) = answer
            && !is_same(job, spec)
        {
            others.push(json!({ "index": index, "job_id": job.id.to_string() }));
        }
    }
    let Some(first) = others.first() else { return Ok(()) };
    let kept = enqueued.iter().filter(|answer| matches!(answer, Enqueued::Created(_))).count();
    let message = format!(
        "/jobs/{}: the idempotency key is that of job {}, which has another type, queue or arguments; {} of the batch \
         are in conflict, and {kept} are enqueued: use another key for another job",
        first["index"],
        first["job_id"],
        others.len()
    );
    Err(ApiError::new(Code::Conflict, message)
        .with_details(json!({ "reason": "idempotency_key_reused", "conflicts": others, "enqueued": kept })))
}

/// Writes which jobs of a batch were there before, by their positions; nothing where all are new.
pub(super) fn push_existing(out: &mut Vec<u8>, enqueued: &[Enqueued]) {
    let existing = enqueued.iter().enumerate().filter(|(_, answer)| matches!(answer, Enqueued::Existing(_)));
    for (count, (index, _)) in existing.enumerate() {
        if count == 0 {
            member(out, "existing");
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
