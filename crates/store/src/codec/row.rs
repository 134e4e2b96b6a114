//! The part of a job that changes, as a small row of its own: the payload is written once, this often.

use super::{Decoder, Encode, Malformed, Unreadable, unique, version};
use crate::{Blob, FailedAttempt, Job, JobId, Lease, LeaseToken, Parent, Revision, RunId, Spec, State, Times, Unique};
use redrive_policy::{Handled, History, Moment, Span};
use std::sync::Arc;

/// The version of these bytes, which counts up whenever they change. It also stands for all else that is stored of
/// the job: a program that cannot read its policy, failures or revisions must find a row that is newer than it knows.
pub(crate) const VERSION: u8 = 1;

/// Everything of a job but its name, what was said about it, now and before, when it was created, and its
/// failures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) attempt: u32,
    pub(crate) history: History,
    pub(crate) due: Option<Moment>,
    pub(crate) lease: Option<Lease>,
    pub(crate) leases: u32,
    pub(crate) generation: u32,
    pub(crate) releases: u32,
    pub(crate) dead: bool,
    pub(crate) available: Option<Moment>,
    pub(crate) started: Option<Moment>,
    pub(crate) finished: Option<Moment>,
    pub(crate) last_delay: Option<Span>,
    pub(crate) result: Option<Blob>,
    pub(crate) settled: Option<LeaseToken>,
    pub(crate) completed_by: Option<Arc<str>>,
    /// Boxed, since most jobs have none, and this is in memory for each of them.
    pub(crate) parent: Option<Box<Parent>>,
    pub(crate) unique: Option<Arc<Unique>>,
}

impl Row {
    /// A job to which nothing has happened since it was enqueued.
    pub(crate) fn fresh(created: Moment, state: State, available: Option<Moment>, due: Option<Moment>) -> Self {
        Self {
            state,
            attempt: 0,
            history: History::new(created),
            due,
            lease: None,
            leases: 0,
            generation: 0,
            releases: 0,
            dead: false,
            available,
            started: None,
            finished: None,
            last_delay: None,
            result: None,
            settled: None,
            completed_by: None,
            parent: None,
            unique: None,
        }
    }

    /// The row of a job.
    pub(crate) fn of(job: &Job) -> Self {
        let Times { available, started, finished, .. } = job.times;
        Self {
            state: job.state,
            attempt: job.attempt,
            history: job.history.clone(),
            due: job.due,
            lease: job.lease.clone(),
            leases: job.leases,
            generation: job.generation,
            releases: job.releases,
            dead: job.dead,
            available,
            started,
            finished,
            last_delay: job.last_delay,
            result: job.result.clone(),
            settled: job.settled,
            completed_by: job.completed_by.clone(),
            parent: job.parent.map(Box::new),
            unique: job.unique.clone(),
        }
    }

    /// The job of the row, with what else is kept of it.
    pub(crate) fn into_job(
        self,
        id: JobId,
        spec: Arc<Spec>,
        created: Moment,
        failures: Vec<FailedAttempt>,
        revisions: Vec<Revision>,
    ) -> Job {
        let Self { available, started, finished, .. } = self;
        Job {
            id,
            spec,
            state: self.state,
            attempt: self.attempt,
            history: self.history,
            due: self.due,
            lease: self.lease,
            leases: self.leases,
            generation: self.generation,
            releases: self.releases,
            dead: self.dead,
            times: Times { created, available, started, finished },
            last_delay: self.last_delay,
            failures,
            revisions,
            result: self.result,
            settled: self.settled,
            completed_by: self.completed_by,
            parent: self.parent.map(|parent| *parent),
            unique: self.unique,
        }
    }
}

/// Which of the optional parts are there, as bits.
mod has {
    pub(super) const DUE: u16 = 1;
    pub(super) const LEASE: u16 = 1 << 1;
    pub(super) const DEADLINE: u16 = 1 << 2;
    pub(super) const AVAILABLE: u16 = 1 << 3;
    pub(super) const STARTED: u16 = 1 << 4;
    pub(super) const FINISHED: u16 = 1 << 5;
    pub(super) const LAST_DELAY: u16 = 1 << 6;
    pub(super) const RESULT: u16 = 1 << 7;
    pub(super) const SETTLED: u16 = 1 << 8;
    pub(super) const HISTORY: u16 = 1 << 9;
    pub(super) const DEAD: u16 = 1 << 10;
    pub(super) const COUNTS: u16 = 1 << 11;
    pub(super) const COMPLETED_BY: u16 = 1 << 12;
    pub(super) const PARENT: u16 = 1 << 13;
    pub(super) const UNIQUE: u16 = 1 << 14;
    pub(super) const ALL: u16 = (1 << 15) - 1;
}

/// Writes the row of a job.
pub(crate) fn encode(job: &Job, out: &mut Vec<u8>) {
    out.byte(VERSION);
    out.moment(job.times.created);
    let at = out.len();
    out.raw(&[job.state as u8, 0, 0]);
    let mut flags = 0;
    let mut note = |present: bool, flag: u16| {
        flags |= if present { flag } else { 0 };
        present
    };
    note(job.dead, has::DEAD);
    if note((job.attempt, job.leases, job.generation, job.releases) != (0, 0, 0, 0), has::COUNTS) {
        for count in [job.attempt, job.leases, job.generation, job.releases] {
            out.count(count.into());
        }
    }
    let times = &job.times;
    for (moment, flag) in [
        (job.due, has::DUE),
        (times.available, has::AVAILABLE),
        (times.started, has::STARTED),
        (times.finished, has::FINISHED),
    ] {
        if let Some(moment) = moment {
            note(true, flag);
            out.moment(moment);
        }
    }
    if let Some(lease) = &job.lease {
        note(true, has::LEASE);
        note(lease.deadline.is_some(), has::DEADLINE);
        encode_lease(lease, out);
    }
    if let Some(delay) = job.last_delay {
        note(true, has::LAST_DELAY);
        out.span(delay);
    }
    if note(job.history != History::new(times.created), has::HISTORY) {
        encode_history(&job.history, out);
    }
    if let Some(result) = &job.result {
        note(true, has::RESULT);
        out.bytes(result);
    }
    if let Some(token) = job.settled {
        note(true, has::SETTLED);
        encode_token(token, out);
    }
    if let Some(worker) = &job.completed_by {
        note(true, has::COMPLETED_BY);
        out.text(worker);
    }
    if let Some(parent) = &job.parent {
        note(true, has::PARENT);
        encode_parent(parent, out);
    }
    if let Some(unique) = &job.unique {
        note(true, has::UNIQUE);
        unique::encode(unique, out);
    }
    out[at + 1..at + 3].copy_from_slice(&flags.to_le_bytes());
}

/// Reads when a job was created, and its row.
pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<(Moment, Row), Unreadable> {
    version(from, "a row", VERSION)?;
    let created = from.moment()?;
    let [state, low, high] = from.array()?;
    let flags = u16::from_le_bytes([low, high]);
    let state = decode_state(state)?;
    if flags & !has::ALL != 0 {
        return Err(Malformed("a row has parts that this format does not know"));
    }
    let has = |flag| flags & flag != 0;
    if has(has::DEADLINE) && !has(has::LEASE) {
        return Err(Malformed("a row has a deadline without a lease"));
    }
    let mut row = Row::fresh(created, state, None, None);
    row.dead = has(has::DEAD);
    if has(has::COUNTS) {
        for count in [&mut row.attempt, &mut row.leases, &mut row.generation, &mut row.releases] {
            *count = from.small()?;
        }
        if (row.attempt, row.leases, row.generation, row.releases) == (0, 0, 0, 0) {
            return Err(Malformed("a row has counts that are all zero"));
        }
    }
    for (moment, flag) in [
        (&mut row.due, has::DUE),
        (&mut row.available, has::AVAILABLE),
        (&mut row.started, has::STARTED),
        (&mut row.finished, has::FINISHED),
    ] {
        if has(flag) {
            *moment = Some(from.moment()?);
        }
    }
    if has(has::LEASE) {
        row.lease = Some(decode_lease(from, has(has::DEADLINE))?);
    }
    if has(has::LAST_DELAY) {
        row.last_delay = Some(from.span()?);
    }
    if has(has::HISTORY) {
        row.history = decode_history(from)?;
        if row.history == History::new(created) {
            return Err(Malformed("a row has a history in which nothing happened"));
        }
    }
    if has(has::RESULT) {
        row.result = Some(from.bytes()?.into());
    }
    if has(has::SETTLED) {
        row.settled = Some(decode_token(from)?);
    }
    if has(has::COMPLETED_BY) {
        row.completed_by = Some(from.text()?.into());
    }
    if has(has::PARENT) {
        row.parent = Some(Box::new(decode_parent(from)?));
    }
    if has(has::UNIQUE) {
        row.unique = Some(Arc::new(unique::decode(from)?));
    }
    Ok((created, row))
}

/// States are written as their place in [`State::ALL`], which is their order in memory too.
fn decode_state(byte: u8) -> Result<State, Unreadable> {
    State::ALL.get(usize::from(byte)).copied().ok_or(Malformed("a row has an unknown state"))
}

/// Writes the run that started a job or a run.
pub(crate) fn encode_parent(parent: &Parent, out: &mut Vec<u8>) {
    out.raw(&parent.run.to_bytes());
    out.count(parent.child);
}

/// Reads the run that started a job or a run.
pub(crate) fn decode_parent(from: &mut Decoder<'_>) -> Result<Parent, Unreadable> {
    Ok(Parent { run: RunId::from_bytes(from.array()?), child: from.count()? })
}

fn encode_token(token: LeaseToken, out: &mut Vec<u8>) {
    out.count(token.number.into());
    out.word(token.nonce);
}

fn decode_token(from: &mut Decoder<'_>) -> Result<LeaseToken, Unreadable> {
    Ok(LeaseToken { number: from.small()?, nonce: from.word()? })
}

fn encode_lease(lease: &Lease, out: &mut Vec<u8>) {
    encode_token(lease.token, out);
    out.text(&lease.worker);
    out.moment(lease.alive);
    out.moment(lease.until);
    out.span(lease.span);
    if let Some(deadline) = lease.deadline {
        out.moment(deadline);
    }
}

fn decode_lease(from: &mut Decoder<'_>, with_deadline: bool) -> Result<Lease, Unreadable> {
    Ok(Lease {
        token: decode_token(from)?,
        worker: from.text()?.into(),
        alive: from.moment()?,
        until: from.moment()?,
        span: from.span()?,
        deadline: if with_deadline { Some(from.moment()?) } else { None },
    })
}

fn encode_history(history: &History, out: &mut Vec<u8>) {
    out.moment(history.created());
    out.count(history.failures().into());
    let rules = history.rules();
    out.count(rules.len() as u64);
    for rule in rules {
        out.count(u64::from(rule.count) << 1 | u64::from(rule.previous.is_some()));
        if let Some(previous) = rule.previous {
            out.span(previous);
        }
    }
}

fn decode_history(from: &mut Decoder<'_>) -> Result<History, Unreadable> {
    let (created, failures) = (from.moment()?, from.small()?);
    let mut rules = Vec::new();
    let handled = from.small()?;
    if handled == 0 {
        return Err(Malformed("a history has no rules"));
    }
    for _ in 0..handled {
        let count = from.count()?;
        let previous = if count & 1 == 1 { Some(from.span()?) } else { None };
        let count = u32::try_from(count >> 1).map_err(|_| Malformed("a count does not fit into 32 bits"))?;
        rules.push(Handled { count, previous });
    }
    Ok(History::restored(created, failures, rules))
}
