//! The records of a frame. Each holds a state and never a change, so that a record may be read twice, or after a newer
//! one, as long as the newest is read in the end.

use crate::codec::row::{self, Row};
use crate::codec::{Decoder, Encode, Malformed, Unreadable, limits, revision, run, verdict};
use crate::limit::GroupRow;
use crate::{FailedAttempt, Group, Job, JobId, Limits, Message, Revision, Run, RunId};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

/// What many jobs have in common, by the number under which their records refer to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SharedSpecRecord<'a> {
    pub(super) number: u64,
    pub(super) kind: &'a str,
    pub(super) queue: &'a str,
    pub(super) priority: i32,
    /// The number of a policy.
    pub(super) policy: u64,
    pub(super) timeout: Option<Span>,
    pub(super) lease: Option<Span>,
    pub(super) limits: Option<Arc<Limits>>,
}

/// The part of a specification that belongs to one job alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SpecRecord<'a> {
    /// The number of the shared specification.
    pub(super) shared_spec: u64,
    pub(super) expires: Option<Moment>,
    pub(super) body: &'a [u8],
}

/// A record that was read.
#[derive(Debug, PartialEq)]
pub(super) enum Record<'a> {
    /// A policy as JSON text.
    Policy {
        number: u64,
        text: &'a [u8],
    },
    SharedSpec(SharedSpecRecord<'a>),
    Queue {
        name: &'a str,
        paused: bool,
        created: Moment,
    },
    /// A queue is removed.
    QueueGone {
        name: &'a str,
    },
    /// A job, and its idempotency key.
    Put {
        id: JobId,
        created: Moment,
        key: Option<&'a str>,
        spec: SpecRecord<'a>,
        row: Row,
    },
    /// The changeable part of a job.
    Row {
        id: JobId,
        row: Row,
    },
    /// A failed attempt of a job.
    Failure {
        id: JobId,
        run: FailedAttempt,
    },
    /// What a redrive of a job replaced.
    Revision {
        id: JobId,
        revision: Revision,
    },
    /// A job has a new specification.
    Respec {
        id: JobId,
        spec: SpecRecord<'a>,
    },
    Delete {
        id: JobId,
    },
    /// A run.
    Run(Run),
    /// A run is removed, and its messages with it.
    RunGone {
        id: RunId,
    },
    /// A message in the inbox of a run.
    Message {
        run: RunId,
        message: Message,
    },
    /// A message was read.
    MessageGone {
        run: RunId,
        number: u64,
    },
    /// The number of the last message that was written to any run.
    LastMessage {
        number: u64,
    },
    /// What is stored of a group of jobs that is limited.
    Group {
        group: Group,
        row: GroupRow,
    },
    /// The time, and how far the wall clock was ahead of it, in microseconds.
    Clock {
        at: Moment,
        ahead_us: i64,
    },
    /// The log goes on in the next segment.
    Sealed,
    /// The store was closed cleanly.
    Closed,
    /// The beginning of a snapshot: the sequence number with which the log goes on.
    Begin {
        next_sequence: u64,
    },
    /// The end of a snapshot: how many jobs it has.
    End {
        jobs: u64,
    },
}

mod tag {
    pub(super) const POLICY: u8 = 1;
    pub(super) const SHARED_SPEC: u8 = 2;
    pub(super) const QUEUE: u8 = 3;
    pub(super) const PUT: u8 = 4;
    pub(super) const ROW: u8 = 5;
    pub(super) const FAILURE: u8 = 6;
    pub(super) const RESPEC: u8 = 7;
    pub(super) const DELETE: u8 = 8;
    pub(super) const SEALED: u8 = 9;
    pub(super) const CLOSED: u8 = 10;
    pub(super) const BEGIN: u8 = 11;
    pub(super) const END: u8 = 12;
    pub(super) const REVISION: u8 = 13;
    pub(super) const CLOCK: u8 = 14;
    pub(super) const QUEUE_GONE: u8 = 15;
    pub(super) const RUN: u8 = 16;
    pub(super) const RUN_GONE: u8 = 17;
    pub(super) const MESSAGE: u8 = 18;
    pub(super) const MESSAGE_GONE: u8 = 19;
    pub(super) const LAST_MESSAGE: u8 = 20;
    pub(super) const GROUP: u8 = 30;
}

pub(super) fn policy(out: &mut Vec<u8>, number: u64, text: &[u8]) {
    out.byte(tag::POLICY);
    out.count(number);
    out.bytes(text);
}

pub(super) fn shared_spec(out: &mut Vec<u8>, shared_spec: &SharedSpecRecord<'_>) {
    out.byte(tag::SHARED_SPEC);
    out.count(shared_spec.number);
    out.text(shared_spec.kind);
    out.text(shared_spec.queue);
    out.raw(&shared_spec.priority.to_le_bytes());
    out.count(shared_spec.policy);
    let parts = [shared_spec.timeout.is_some(), shared_spec.lease.is_some(), shared_spec.limits.is_some()];
    out.byte((0..).zip(parts).map(|(place, part)| u8::from(part) << place).sum());
    for span in [shared_spec.timeout, shared_spec.lease].into_iter().flatten() {
        out.span(span);
    }
    if let Some(limits) = &shared_spec.limits {
        limits::encode(limits, out);
    }
}

pub(super) fn queue(out: &mut Vec<u8>, name: &str, paused: bool, created: Moment) {
    out.byte(tag::QUEUE);
    out.text(name);
    out.byte(paused.into());
    out.moment(created);
}

pub(super) fn queue_gone(out: &mut Vec<u8>, name: &str) {
    out.byte(tag::QUEUE_GONE);
    out.text(name);
}

/// Without the failures and the revisions, each of which is a record of its own.
pub(super) fn put(out: &mut Vec<u8>, job: &Job, shared_spec: u64, key: Option<&str>) {
    out.byte(tag::PUT);
    out.raw(&job.id.to_bytes());
    out.byte(key.is_some().into());
    if let Some(key) = key {
        out.text(key);
    }
    spec(out, &SpecRecord { shared_spec, expires: job.spec.expires, body: &job.spec.body });
    row::encode(job, out);
}

pub(super) fn row(out: &mut Vec<u8>, job: &Job) {
    out.byte(tag::ROW);
    out.raw(&job.id.to_bytes());
    row::encode(job, out);
}

pub(super) fn failure(out: &mut Vec<u8>, id: JobId, run: &FailedAttempt) {
    out.byte(tag::FAILURE);
    out.raw(&id.to_bytes());
    verdict::encode(run, out);
}

pub(super) fn revision(out: &mut Vec<u8>, id: JobId, revision: &Revision) {
    out.byte(tag::REVISION);
    out.raw(&id.to_bytes());
    revision::encode(revision, out);
}

pub(super) fn respec(out: &mut Vec<u8>, id: JobId, record: &SpecRecord<'_>) {
    out.byte(tag::RESPEC);
    out.raw(&id.to_bytes());
    spec(out, record);
}

pub(super) fn delete(out: &mut Vec<u8>, id: JobId) {
    out.byte(tag::DELETE);
    out.raw(&id.to_bytes());
}

pub(super) fn run(out: &mut Vec<u8>, run: &Run) {
    out.byte(tag::RUN);
    out.raw(&run.id.to_bytes());
    run::encode(run, out);
}

pub(super) fn run_gone(out: &mut Vec<u8>, id: RunId) {
    out.byte(tag::RUN_GONE);
    out.raw(&id.to_bytes());
}

pub(super) fn message(out: &mut Vec<u8>, to: RunId, message: &Message) {
    out.byte(tag::MESSAGE);
    out.raw(&to.to_bytes());
    out.count(message.number);
    run::encode_message(message, out);
}

pub(super) fn message_gone(out: &mut Vec<u8>, of: RunId, number: u64) {
    out.byte(tag::MESSAGE_GONE);
    out.raw(&of.to_bytes());
    out.count(number);
}

pub(super) fn last_message(out: &mut Vec<u8>, number: u64) {
    out.byte(tag::LAST_MESSAGE);
    out.count(number);
}

pub(super) fn group(out: &mut Vec<u8>, group: &Group, row: &GroupRow) {
    out.byte(tag::GROUP);
    out.text(&group.to_string());
    limits::encode_group(row, out);
}

pub(super) fn clock(out: &mut Vec<u8>, at: Moment, ahead_us: i64) {
    out.byte(tag::CLOCK);
    out.moment(at);
    out.moment(Moment::from_micros(ahead_us));
}

pub(super) fn sealed(out: &mut Vec<u8>) {
    out.byte(tag::SEALED);
}

/// Whether these are the records of a frame that ends a segment.
pub(super) fn is_seal(records: &[u8]) -> bool {
    records == [tag::SEALED]
}

pub(super) fn closed(out: &mut Vec<u8>) {
    out.byte(tag::CLOSED);
}

pub(super) fn begin(out: &mut Vec<u8>, next_sequence: u64) {
    out.byte(tag::BEGIN);
    out.count(next_sequence);
}

pub(super) fn end(out: &mut Vec<u8>, jobs: u64) {
    out.byte(tag::END);
    out.count(jobs);
}

fn spec(out: &mut Vec<u8>, spec: &SpecRecord<'_>) {
    out.count(spec.shared_spec);
    out.byte(spec.expires.is_some().into());
    if let Some(expires) = spec.expires {
        out.moment(expires);
    }
    out.bytes(spec.body);
}

impl<'a> Record<'a> {
    /// Reads the next record.
    pub(super) fn decode(from: &mut Decoder<'a>) -> Result<Self, Unreadable> {
        match from.byte()? {
            tag::POLICY => Ok(Self::Policy { number: from.count()?, text: from.bytes()? }),
            tag::SHARED_SPEC => decode_shared_spec(from).map(Self::SharedSpec),
            tag::QUEUE => Ok(Self::Queue { name: from.text()?, paused: from.flag()?, created: from.moment()? }),
            tag::QUEUE_GONE => Ok(Self::QueueGone { name: from.text()? }),
            tag::PUT => decode_put(from),
            tag::ROW => Ok(Self::Row { id: decode_id(from)?, row: row::decode(from)?.1 }),
            tag::FAILURE => Ok(Self::Failure { id: decode_id(from)?, run: verdict::decode(from)? }),
            tag::REVISION => Ok(Self::Revision { id: decode_id(from)?, revision: revision::decode(from)? }),
            tag::RESPEC => Ok(Self::Respec { id: decode_id(from)?, spec: decode_spec(from)? }),
            tag::DELETE => Ok(Self::Delete { id: decode_id(from)? }),
            tag::RUN => {
                let id = decode_run_id(from)?;
                run::decode(id, from).map(Self::Run)
            }
            tag::RUN_GONE => Ok(Self::RunGone { id: decode_run_id(from)? }),
            tag::MESSAGE => {
                let (run, number) = (decode_run_id(from)?, from.count()?);
                Ok(Self::Message { run, message: run::decode_message(number, from)? })
            }
            tag::MESSAGE_GONE => Ok(Self::MessageGone { run: decode_run_id(from)?, number: from.count()? }),
            tag::LAST_MESSAGE => Ok(Self::LastMessage { number: from.count()? }),
            tag::GROUP => {
                let group = Group::parse(from.text()?).ok_or(Malformed("a group is of an unknown kind"))?;
                Ok(Self::Group { group, row: limits::decode_group(from)? })
            }
            tag::CLOCK => Ok(Self::Clock { at: from.moment()?, ahead_us: from.moment()?.micros() }),
            tag::SEALED => Ok(Self::Sealed),
            tag::CLOSED => Ok(Self::Closed),
            tag::BEGIN => Ok(Self::Begin { next_sequence: from.count()? }),
            tag::END => Ok(Self::End { jobs: from.count()? }),
            _ => Err(Malformed("a record is of an unknown kind")),
        }
    }
}

fn decode_put<'a>(from: &mut Decoder<'a>) -> Result<Record<'a>, Unreadable> {
    let id = decode_id(from)?;
    let key = if from.flag()? { Some(from.text()?) } else { None };
    let spec = decode_spec(from)?;
    let (created, row) = row::decode(from)?;
    Ok(Record::Put { id, created, key, spec, row })
}

fn decode_shared_spec<'a>(from: &mut Decoder<'a>) -> Result<SharedSpecRecord<'a>, Unreadable> {
    let (number, kind, queue) = (from.count()?, from.text()?, from.text()?);
    let priority = from.array().map(i32::from_le_bytes)?;
    let policy = from.count()?;
    let flags = from.byte()?;
    if flags > 7 {
        return Err(Malformed("a shared specification has parts that this format does not know"));
    }
    let timeout = if flags & 1 != 0 { Some(from.span()?) } else { None };
    let lease = if flags & 2 != 0 { Some(from.span()?) } else { None };
    let limits = if flags & 4 != 0 { Some(Arc::new(limits::decode(from)?)) } else { None };
    Ok(SharedSpecRecord { number, kind, queue, priority, policy, timeout, lease, limits })
}

fn decode_spec<'a>(from: &mut Decoder<'a>) -> Result<SpecRecord<'a>, Unreadable> {
    let shared_spec = from.count()?;
    let expires = if from.flag()? { Some(from.moment()?) } else { None };
    Ok(SpecRecord { shared_spec, expires, body: from.bytes()? })
}

fn decode_id(from: &mut Decoder<'_>) -> Result<JobId, Unreadable> {
    from.array().map(JobId::from_bytes)
}

fn decode_run_id(from: &mut Decoder<'_>) -> Result<RunId, Unreadable> {
    from.array().map(RunId::from_bytes)
}

#[cfg(test)]
mod tests;
