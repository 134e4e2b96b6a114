//! Events in messages to runs, and what runs want to learn of.

use super::{Decoder, Encode, Malformed, Unreadable};
use crate::{EventBody, EventKind, Interest, JOB_EVENT_TYPES, JobEvent, JobId, OtherEvent, State};
use redrive_policy::Moment;
use std::sync::Arc;

/// The kinds by their numbers. A number never changes its meaning.
const KINDS: [EventKind; 13] = [
    EventKind::Enqueued,
    EventKind::Due,
    EventKind::Activated,
    EventKind::Claimed,
    EventKind::Completed,
    EventKind::RetryScheduled,
    EventKind::Discarded,
    EventKind::Released,
    EventKind::Snoozed,
    EventKind::Cancelled,
    EventKind::Expired,
    EventKind::Redriven,
    EventKind::Removed,
];

fn number<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).and_then(|place| u8::try_from(place).ok()).unwrap_or(u8::MAX)
}

fn of_number<T: Copy>(all: &[T], number: u8) -> Result<T, Unreadable> {
    all.get(usize::from(number)).copied().ok_or(Malformed("an event has a word that this format does not know"))
}

/// Which of the optional parts of the event of a job are there, as bits.
mod has {
    pub(super) const MAIN: u64 = 1;
    pub(super) const FROM: u64 = 1 << 1;
    pub(super) const MOST_ATTEMPTS: u64 = 1 << 2;
    pub(super) const RUN_TIME: u64 = 1 << 3;
    pub(super) const DEAD: u64 = 1 << 4;
    pub(super) const WORKER: u64 = 1 << 5;
    pub(super) const DUE: u64 = 1 << 6;
    pub(super) const EXPIRES: u64 = 1 << 7;
    pub(super) const ERROR: u64 = 1 << 8;
    pub(super) const RESULT: u64 = 1 << 9;
    pub(super) const ALL: u64 = (1 << 10) - 1;
    pub(super) const QUEUE: u64 = 1;
    pub(super) const JOB_TYPE: u64 = 1 << 1;
    pub(super) const BOTH: u64 = QUEUE | JOB_TYPE;
}

/// Writes an event of a job.
pub(super) fn encode_job(event: &JobEvent, out: &mut Vec<u8>) {
    let parts = [
        (event.is_main, has::MAIN),
        (event.from.is_some(), has::FROM),
        (event.most_attempts.is_some(), has::MOST_ATTEMPTS),
        (event.run_time.is_some(), has::RUN_TIME),
        (event.dead, has::DEAD),
        (event.worker.is_some(), has::WORKER),
        (event.due.is_some(), has::DUE),
        (event.expires.is_some(), has::EXPIRES),
        (event.error.is_some(), has::ERROR),
        (event.result.is_some(), has::RESULT),
    ];
    out.count(parts.into_iter().filter(|(present, _)| *present).map(|(_, flag)| flag).sum());
    out.byte(number(&JOB_EVENT_TYPES, &event.event_type));
    out.byte(number(&KINDS, &event.kind));
    out.byte(number(&State::ALL, &event.state));
    out.raw(&event.job.to_bytes());
    out.text(&event.job_type);
    out.text(&event.queue);
    out.word(u64::from(event.priority.cast_unsigned()));
    out.count(event.generation.into());
    out.count(event.attempt.into());
    out.moment(event.created);
    if let Some(from) = &event.from {
        out.byte(number(&State::ALL, from));
    }
    if let Some(most) = event.most_attempts {
        out.count(most.into());
    }
    if let Some(run_time) = event.run_time {
        out.span(run_time);
    }
    if let Some(worker) = &event.worker {
        out.text(worker);
    }
    for at in [event.due, event.expires].into_iter().flatten() {
        out.moment(at);
    }
    for blob in [&event.error, &event.result].into_iter().flatten() {
        out.bytes(blob);
    }
}

/// Reads an event of a job.
pub(super) fn decode_job(from: &mut Decoder<'_>) -> Result<EventBody, Unreadable> {
    let flags = known(from.count()?, has::ALL)?;
    let has = |flag| flags & flag != 0;
    Ok(EventBody::Job(Box::new(JobEvent {
        is_main: has(has::MAIN),
        dead: has(has::DEAD),
        event_type: of_number(&JOB_EVENT_TYPES, from.byte()?)?,
        kind: of_number(&KINDS, from.byte()?)?,
        state: of_number(&State::ALL, from.byte()?)?,
        job: JobId::from_bytes(from.array()?),
        job_type: from.text()?.into(),
        queue: from.text()?.into(),
        priority: u32::try_from(from.word()?).map_err(|_| Malformed("the priority of an event"))?.cast_signed(),
        generation: from.small()?,
        attempt: from.small()?,
        created: from.moment()?,
        from: if has(has::FROM) { Some(of_number(&State::ALL, from.byte()?)?) } else { None },
        most_attempts: if has(has::MOST_ATTEMPTS) { Some(from.small()?) } else { None },
        run_time: if has(has::RUN_TIME) { Some(from.span()?) } else { None },
        worker: if has(has::WORKER) { Some(from.text()?.into()) } else { None },
        due: moment(has(has::DUE), from)?,
        expires: moment(has(has::EXPIRES), from)?,
        error: if has(has::ERROR) { Some(from.bytes()?.into()) } else { None },
        result: if has(has::RESULT) { Some(from.bytes()?.into()) } else { None },
    })))
}

fn known(flags: u64, all: u64) -> Result<u64, Unreadable> {
    if flags & !all == 0 { Ok(flags) } else { Err(Malformed("an event has parts that this format does not know")) }
}

fn moment(present: bool, from: &mut Decoder<'_>) -> Result<Option<Moment>, Unreadable> {
    if present { from.moment().map(Some) } else { Ok(None) }
}

/// Writes another event.
pub(super) fn encode_other(event: &OtherEvent, out: &mut Vec<u8>) {
    let parts = [(event.queue.is_some(), has::QUEUE), (event.job_type.is_some(), has::JOB_TYPE)];
    out.count(parts.into_iter().filter(|(present, _)| *present).map(|(_, flag)| flag).sum());
    out.text(&event.event_type);
    out.text(&event.subject);
    for text in [&event.queue, &event.job_type].into_iter().flatten() {
        out.text(text);
    }
    out.bytes(&event.data);
}

/// Reads another event.
pub(super) fn decode_other(from: &mut Decoder<'_>) -> Result<EventBody, Unreadable> {
    let flags = known(from.count()?, has::BOTH)?;
    let (event_type, subject) = (from.text()?.into(), from.text()?.into());
    let queue = if flags & has::QUEUE != 0 { Some(from.text()?.into()) } else { None };
    let job_type = if flags & has::JOB_TYPE != 0 { Some(from.text()?.into()) } else { None };
    Ok(EventBody::Other(OtherEvent { event_type, subject, queue, job_type, data: from.bytes()?.into() }))
}

/// Writes what a run wants to learn of.
pub(super) fn encode_interest(interest: &Interest, out: &mut Vec<u8>) {
    for texts in [&interest.types, &interest.queues, &interest.job_types] {
        out.count(texts.len() as u64);
        texts.iter().for_each(|text| out.text(text));
    }
}

/// Reads what a run wants to learn of.
pub(super) fn decode_interest(from: &mut Decoder<'_>) -> Result<Interest, Unreadable> {
    Ok(Interest { types: texts(from)?, queues: texts(from)?, job_types: texts(from)? })
}

fn texts(from: &mut Decoder<'_>) -> Result<Vec<Arc<str>>, Unreadable> {
    let count = from.small()?;
    (0..count).map(|_| from.text().map(Arc::from)).collect()
}
