//! A job as its row: the columns that the database looks at, and the bytes that hold the rest.

use super::kept::Kept;
use super::trouble::Trouble;
use crate::codec::{Decoder, Encode, Malformed, row, verdict};
use crate::{FailedRun, Job, JobId, Lease, Spec, State};
use redrive_policy::Moment;
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

/// A job, from what is kept of it.
pub(super) fn decode(
    id: JobId,
    revision: i64,
    spec: Arc<Spec>,
    row: &[u8],
    failures: Option<&[u8]>,
) -> Result<Kept, Trouble> {
    let broken = |Malformed(why)| Trouble::Broken(format!("the job {id} cannot be read: {why}"));
    let mut from = Decoder::new(row);
    let created = from.moment().map_err(broken)?;
    let row = row::decode(&mut from, created).map_err(broken)?;
    let failures = decode_failures(failures.unwrap_or_default()).map_err(broken)?;
    let job = row.into_job(id, spec, created, failures);
    Ok(Kept { ended: job.state.is_terminal(), job, revision, changed: false, new_failure: false })
}

fn decode_failures(bytes: &[u8]) -> Result<Vec<FailedRun>, Malformed> {
    let mut from = Decoder::new(bytes);
    let mut failures = Vec::new();
    while !from.is_empty() {
        failures.push(verdict::decode(&mut from)?);
    }
    Ok(failures)
}

/// When a waiting job is due, or a run overdue.
pub(super) fn due(job: &Job) -> Option<Moment> {
    let ends = |lease: &Lease| lease.deadline.map_or(lease.until, |deadline| deadline.min(lease.until));
    job.lease.as_ref().map(ends).or(job.due)
}

/// States are kept as their place in [`State::ALL`].
pub(super) const fn state_number(state: State) -> i16 {
    state as i16
}
