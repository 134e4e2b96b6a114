//! A job as its row: the columns that the database looks at, and the bytes that hold the rest.

use crate::codec::row::{self, Row};
use crate::codec::{Decoder, Unreadable, revision, verdict};
use crate::standstill::ends;
use crate::{FailedAttempt, Job, JobId, Revision, Spec, State};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

/// How many bytes most rows have at most.
const ROW_BYTES: usize = 192;
/// How many bytes a failed attempt has besides its error, at most about.
const FAILURE_BYTES: usize = 128;

/// What is stored of a job besides its columns, its failures and its spec: the row as all stores write it.
pub(super) fn encode(job: &Job) -> Vec<u8> {
    let mut out = Vec::with_capacity(ROW_BYTES);
    row::encode(job, &mut out);
    out
}

/// The failures of a job, one after the other; nothing where there are none.
pub(super) fn encode_failures(job: &Job) -> Option<Vec<u8>> {
    if job.failures.is_empty() {
        return None;
    }
    let bytes = job.failures.iter().map(|run| FAILURE_BYTES + run.error.len()).sum();
    let mut out = Vec::with_capacity(bytes);
    job.failures.iter().for_each(|run| verdict::encode(run, &mut out));
    Some(out)
}

/// The revisions of a job, one after the other; nothing where there are none.
pub(super) fn encode_revisions(job: &Job) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    job.revisions.iter().for_each(|revision| revision::encode(revision, &mut out));
    (!out.is_empty()).then_some(out)
}

/// The bytes of a job, read.
#[derive(Debug)]
pub(super) struct Decoded {
    created: Moment,
    row: Row,
    failures: Vec<FailedAttempt>,
    revisions: Vec<Revision>,
}

/// Reads the bytes of a job.
pub(super) fn decode(row: &[u8], failures: Option<&[u8]>, revisions: Option<&[u8]>) -> Result<Decoded, Unreadable> {
    let mut from = Decoder::new(row);
    let (created, row) = row::decode(&mut from)?;
    if !from.is_empty() {
        return Err(Unreadable::Malformed("a row goes on behind its end"));
    }
    let (failures, revisions) = (all(failures, verdict::decode)?, all(revisions, revision::decode)?);
    Ok(Decoded { created, row, failures, revisions })
}

impl Decoded {
    /// The job, with its spec.
    pub(super) fn into_job(self, id: JobId, spec: Arc<Spec>) -> Job {
        self.row.into_job(id, spec, self.created, self.failures, self.revisions)
    }
}

/// Reads what is written one after the other, up to the end.
fn all<T>(
    bytes: Option<&[u8]>,
    decode: impl Fn(&mut Decoder<'_>) -> Result<T, Unreadable>,
) -> Result<Vec<T>, Unreadable> {
    let mut from = Decoder::new(bytes.unwrap_or_default());
    let mut items = Vec::new();
    while !from.is_empty() {
        items.push(decode(&mut from)?);
    }
    Ok(items)
}

/// When a run is overdue.
pub(super) fn due(job: &Job) -> Option<Moment> {
    job.lease.as_ref().map(ends)
}

/// The last heartbeat of a run.
pub(super) fn alive(job: &Job) -> Option<Moment> {
    job.lease.as_ref().map(|lease| lease.alive)
}

/// How long each heartbeat extends the lease, in microseconds.
pub(super) fn lease_us(job: &Job) -> Option<i64> {
    job.lease.as_ref().map(|lease| micros(lease.span))
}

/// A span in microseconds.
pub(super) fn micros(span: Span) -> i64 {
    Moment::ORIGIN.after(span).micros()
}

/// States are stored as their index in [`State::ALL`].
pub(super) const fn state_number(state: State) -> i16 {
    state as i16
}
