//! A job's row: the same columns while it lives and after it has ended.

use super::kept::Kept;
use super::text;
use super::trouble::Trouble;
use super::value::{Param, signed};
use crate::{Job, State};
use redrive_policy::{History, Moment};
use uuid::Uuid;

/// The columns of a row, each with its type, in the order in which they are read and written.
pub(super) const COLUMNS: [(&str, &str); 25] = [
    ("id", "uuid"),
    ("created_us", "bigint"),
    ("available_us", "bigint"),
    ("started_us", "bigint"),
    ("finished_us", "bigint"),
    ("due_us", "bigint"),
    ("expires_us", "bigint"),
    ("alive_us", "bigint"),
    ("until_us", "bigint"),
    ("deadline_us", "bigint"),
    ("span_ms", "double precision"),
    ("nonce", "bigint"),
    ("last_delay_ms", "double precision"),
    ("queue", "integer"),
    ("priority", "integer"),
    ("attempt", "integer"),
    ("leases", "integer"),
    ("revivals", "integer"),
    ("releases", "integer"),
    ("failed", "integer"),
    ("state", "smallint"),
    ("dead", "boolean"),
    ("worker", "text"),
    ("history", "text"),
    ("result", "bytea"),
];

/// The columns that stay as they are while a job lives.
pub(super) const FIXED: [&str; 5] = ["id", "created_us", "expires_us", "queue", "priority"];

/// Rows by column, as `unnest` takes them.
#[derive(Default)]
pub(super) struct Rows<'j> {
    ids: Vec<Uuid>,
    moments: [Vec<Option<i64>>; 9],
    span_ms: Vec<Option<f64>>,
    nonce: Vec<Option<i64>>,
    last_delay_ms: Vec<Option<f64>>,
    counts: [Vec<i32>; 7],
    state: Vec<i16>,
    dead: Vec<bool>,
    worker: Vec<Option<std::borrow::Cow<'j, str>>>,
    history: Vec<Option<String>>,
    result: Vec<Option<&'j [u8]>>,
}

impl<'j> Rows<'j> {
    /// The rows of jobs, each with the number of its queue.
    pub(super) fn of(jobs: impl Iterator<Item = (&'j Kept, i32)>) -> Result<Self, Trouble> {
        let mut rows = Self::default();
        for (kept, queue) in jobs {
            rows.push(kept, queue)?;
        }
        Ok(rows)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn push(&mut self, kept: &'j Kept, queue: i32) -> Result<(), Trouble> {
        let job = &kept.job;
        let lease = job.lease.as_ref();
        self.ids.push(Uuid::from_bytes(job.id.to_bytes()));
        let times = &job.times;
        let moments = [
            Some(times.created),
            times.available,
            times.started,
            times.finished,
            job.due,
            job.spec.expires,
            lease.map(|lease| lease.alive),
            lease.map(|lease| lease.until),
            lease.and_then(|lease| lease.deadline),
        ];
        for (column, moment) in self.moments.iter_mut().zip(moments) {
            column.push(moment.map(Moment::micros));
        }
        self.span_ms.push(lease.map(|lease| lease.span.ms()));
        // The number of a token is the count of leases, both while it is held and after it was settled.
        let token = lease.map(|lease| lease.token).or(job.settled);
        self.nonce.push(token.map(|token| token.nonce.cast_signed()));
        self.last_delay_ms.push(job.last_delay.map(redrive_policy::Span::ms));
        let counts = [job.attempt, job.leases, job.revivals, job.releases, kept.failed].map(signed);
        let counts = [queue, job.spec.priority].into_iter().chain(counts);
        for (column, count) in self.counts.iter_mut().zip(counts) {
            column.push(count);
        }
        self.state.push(state_number(job.state));
        self.dead.push(job.dead);
        self.worker.push(lease.map(|lease| text::kept(&lease.worker)));
        self.history.push(history(job)?);
        self.result.push(job.result.as_deref());
        Ok(())
    }

    /// One parameter for each column.
    pub(super) fn into_params(self) -> Vec<Param<'j>> {
        let mut params: Vec<Param<'j>> = vec![Box::new(self.ids)];
        params.extend(self.moments.into_iter().map(|column| Box::new(column) as Param<'j>));
        params.extend([Box::new(self.span_ms) as Param<'j>, Box::new(self.nonce), Box::new(self.last_delay_ms)]);
        params.extend(self.counts.into_iter().map(|column| Box::new(column) as Param<'j>));
        params.extend([
            Box::new(self.state) as Param<'j>,
            Box::new(self.dead),
            Box::new(self.worker),
            Box::new(self.history),
            Box::new(self.result),
        ]);
        params
    }
}

/// What the policy remembers; absent where that is nothing but the time of creation.
fn history(job: &Job) -> Result<Option<String>, Trouble> {
    if job.history == History::new(job.times.created) {
        return Ok(None);
    }
    let text = serde_json::to_string(&job.history);
    text.map(Some).map_err(|error| Trouble::Broken(format!("a history cannot be written as JSON: {error}")))
}

/// States are kept as their place in [`State::ALL`].
pub(super) fn state_number(state: State) -> i16 {
    state as i16
}
