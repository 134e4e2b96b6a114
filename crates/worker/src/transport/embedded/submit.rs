//! Handing in jobs.

use super::kept::same_args;
use super::time::rfc3339;
use crate::{ClientError, NewJob};
use redrive_engine::{Effective, PolicyDocument, Submission};
use redrive_policy::Moment;
use redrive_policy::dialect::Dialect;
use redrive_store::{Blob, Job, Start};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The longest name of a type or a queue, and the longest key, in bytes; as a server has it.
const NAME_BYTES: usize = 255;
/// The shortest lease of a job; as a server has it.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// A job as the engine takes it.
///
/// # Errors
/// A name that a server would refuse too: a folder may be served later.
pub(super) fn submission(job: NewJob, now: Moment) -> Result<Submission, ClientError> {
    let queue = job.queue.unwrap_or_else(|| "default".to_owned());
    check("type", &job.kind, is_type(&job.kind), "words of a-z, 0-9, _ and -, a letter first, joined by dots")?;
    check("queue", &queue, is_queue(&queue), "a-z, 0-9, dots and hyphens, with a letter or digit first")?;
    if let Some(key) = &job.idempotency_key {
        check("idempotency key", key, !key.is_empty(), "at least one character")?;
    }
    if let Some(priority) = job.priority.filter(|priority| !(-100..=100).contains(priority)) {
        return Err(ClientError::Invalid(format!("the priority {priority} is not allowed; allowed is -100 to 100")));
    }
    if let Some(lease) = job.lease.filter(|lease| *lease < SHORTEST_LEASE) {
        let message = format!("a lease of {lease:?} is too short; allowed is {SHORTEST_LEASE:?} or more");
        return Err(ClientError::Invalid(message));
    }
    let id = job.id.map(|id| id.parse()).transpose().map_err(ClientError::Invalid)?;
    Ok(Submission {
        id,
        kind: job.kind.into(),
        queue: queue.into(),
        priority: job.priority.unwrap_or(0),
        start: job.delay.map_or(Start::Available, |delay| Start::Scheduled(now.after(delay.into()))),
        expires: job.expires_after.map(|time| now.after(time.into())),
        timeout: job.timeout.map(Into::into),
        lease: job.lease.map(Into::into),
        policy: job.retry.map(|retry| PolicyDocument { dialect: retry.dialect, value: retry.document }),
        idempotency_key: job.idempotency_key.map(Into::into),
    })
}

fn check(what: &str, name: &str, fits: bool, allowed: &str) -> Result<(), ClientError> {
    if fits && name.len() <= NAME_BYTES {
        return Ok(());
    }
    Err(ClientError::Invalid(format!("the {what} {name:?} is not allowed; allowed is {allowed}; at most 255 bytes")))
}

fn is_type(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    text.split('.').all(|word| word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(inside))
}

fn is_queue(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(plain) && text.bytes().all(|byte| plain(byte) || byte == b'.' || byte == b'-')
}

/// Whether a kept job has this type, queue and arguments. What a retry has replaced counts as it was.
pub(super) fn is_same(kept: &Job, kind: &str, queue: &str, members: &str) -> bool {
    let mut bodies = kept.revisions.iter().map(|revision| &revision.body).chain([&kept.spec.body]);
    *kept.spec.kind == *kind
        && (*kept.spec.queue == *queue || kept.generation > 0)
        && bodies.any(|body| same_args(body, members.as_bytes()))
}

/// The members of the envelope that the engine keeps and never reads.
pub(super) fn members(job: &NewJob, now: Moment) -> String {
    let mut out = String::with_capacity(job.args.get().len() + 16);
    if job.meta.is_some() || !job.tags.is_empty() {
        let meta = Value::Object(job.meta.clone().unwrap_or_default());
        out.push_str(&format!("\"meta\":{meta},\"tags\":{},", json!(job.tags)));
    }
    out.push_str("\"args\":");
    out.push_str(job.args.get());
    for (key, time) in [("scheduled_at", job.delay), ("expires_at", job.expires_after)] {
        if let Some(time) = time {
            out.push_str(&format!(",\"{key}\":\"{}\"", rfc3339(now.after(time.into()))));
        }
    }
    out
}

/// What the engine keeps of a job: where its policy came from, if that is worth a word, and members.
pub(super) fn body(effective: &Effective, members: &str) -> Blob {
    let mut origin = Map::new();
    if effective.layer != "server" {
        origin.insert("layer".to_owned(), effective.layer.into());
    }
    if effective.written.dialect != Dialect::Ojs {
        origin.insert("dialect".to_owned(), effective.written.dialect.name().into());
    }
    if !effective.capped_by.is_empty() {
        origin.insert("capped_by".to_owned(), json!(effective.capped_by));
    }
    if origin.is_empty() {
        return Arc::from(members.as_bytes());
    }
    Arc::from(format!("{}\0{members}", Value::Object(origin)).into_bytes())
}
