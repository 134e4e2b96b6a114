//! Whether a job that is enqueued again under its idempotency key asks for the same work.

use super::body;
use redrive_store::{Job, JobId};
use serde_json::Value;

/// Whether a stored job has this type, queue and arguments. What a redrive has replaced in it counts as it was: the
/// request that made the job is still the same.
#[must_use]
pub fn is_same(stored: &Job, kind: &str, queue: &str, args: &str) -> bool {
    let mut bodies = stored.revisions.iter().map(|revision| &revision.body).chain([&stored.spec.body]);
    *stored.spec.kind == *kind
        && (*stored.spec.queue == *queue || stored.generation > 0)
        && bodies.any(|body| same_args(body::args(body), args))
}

/// What is said of an idempotency key whose job does other work.
#[must_use]
pub fn key_reused(id: JobId) -> String {
    format!(
        "the idempotency key is that of job {id}, which has another type, queue or arguments; nothing is enqueued: \
         use another key for another job"
    )
}

/// Compares the arguments as text first: a request that is sent again is the same byte for byte.
fn same_args(stored: &str, new: &str) -> bool {
    let read = |args: &str| serde_json::from_str::<Value>(args).ok();
    stored == new || read(stored).is_some_and(|args| Some(args) == read(new))
}
