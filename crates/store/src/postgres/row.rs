//! A job as its row: the columns that the database looks at, and the bytes that hold the rest.

use super::db_error::DbError;
use super::stored_row::StoredRow;
use crate::codec::{Decoder, Encode, Malformed, revision, row, verdict};
use crate::standstill::ends;
use crate::{Job, JobId, Spec, State};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

/// What is kept of a job besides its columns, its failures and what was said about it: when it was handed
/// in, and the row as all stores write it.
pub(super) fn encode(job: &Job) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    out.moment(job.times.created);
    row::encode(job, &mut out);
    out
}

/// The failures of a job, one after the other; nothing where there are none.
pub(super) fn encode_failures(job: &Job) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    job.failures.iter().for_each(|run| verdict::encode(run, &mut out));
    (!out.is_empty()).then_some(out)
}

/// What revivals of a job replaced, one after the other; nothing where there is none.
pub(super) fn encode_revisions(job: &Job) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    job.revisions.iter().for_each(|revision| revision::encode(revision, &mut out));
    (!out.is_empty()).then_some(out)
}

/// A job, from what is kept of it. `revision` is the number of its last write.
pub(super) fn decode(
    id: JobId,
    revision: i64,
    spec: Arc<Spec>,
    row: &[u8],
    failures: Option<&[u8]>,
    revisions: Option<&[u8]>,
) -> Result<StoredRow, DbError> {
    let broken = |Malformed(why)| DbError::Broken(format!("the job {id} cannot be read: {why}"));
    let mut from = Decoder::new(row);
    let created = from.moment().map_err(broken)?;
    let row = row::decode(&mut from, created).map_err(broken)?;
    let failures = all(failures, verdict::decode).map_err(broken)?;
    let revisions = all(revisions, revision::decode).map_err(broken)?;
    let job = row.into_job(id, spec, created, failures, revisions);
    Ok(StoredRow { ended: job.state.is_terminal(), job, revision, changed: false, new_failure: false })
}

/// Reads what is written one after the other, up to the end.
fn all<T>(
    bytes: Option<&[u8]>,
    decode: impl Fn(&mut Decoder<'_>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let mut from = Decoder::new(bytes.unwrap_or_default());
    let mut items = Vec::new();
    while !from.is_empty() {
        items.push(decode(&mut from)?);
    }
    Ok(items)
}

/// When a waiting job is due, or a run overdue.
pub(super) fn due(job: &Job) -> Option<Moment> {
    job.lease.as_ref().map(ends).or(job.due)
}

/// The last sign of life of a run.
pub(super) fn alive(job: &Job) -> Option<Moment> {
    job.lease.as_ref().map(|lease| lease.alive)
}

/// How long each sign of life of a run lasts, in microseconds.
pub(super) fn lease_us(job: &Job) -> Option<i64> {
    job.lease.as_ref().map(|lease| micros(lease.span))
}

/// A span in microseconds.
pub(super) fn micros(span: Span) -> i64 {
    Moment::ORIGIN.after(span).micros()
}

/// States are kept as their place in [`State::ALL`].
pub(super) const fn state_number(state: State) -> i16 {
    state as i16
}
