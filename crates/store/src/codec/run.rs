//! Runs and their messages on disk.

use super::row::{decode_parent, encode_parent};
use super::{Decoder, Encode, Malformed, Unreadable, event, verdict, version};
use crate::{Blob, ChildEnd, EventBody, FailedAttempt, JobId, Message, MessageBody, Run, RunEnd, RunId, Signal};
use std::sync::Arc;

/// The version of the bytes of runs and messages. It counts up whenever they change.
const VERSION: u8 = 2;
/// What has no part that came with the second version is written as the first, which older programs read.
const FIRST: u8 = 1;

/// Which of the optional parts of a run are there, as bits.
mod has {
    pub(super) const TIMER: u8 = 1;
    pub(super) const KEY: u8 = 1 << 1;
    pub(super) const PARENT: u8 = 1 << 2;
    pub(super) const END: u8 = 1 << 3;
    pub(super) const SUCCEEDED: u8 = 1 << 4;
    pub(super) const INTEREST: u8 = 1 << 5;
    pub(super) const ALL: u8 = (1 << 6) - 1;
}

/// Writes a run without its id.
pub(crate) fn encode(run: &Run, out: &mut Vec<u8>) {
    out.byte(if run.interest.is_some() { VERSION } else { FIRST });
    let parts = [
        (run.timer.is_some(), has::TIMER),
        (run.key.is_some(), has::KEY),
        (run.parent.is_some(), has::PARENT),
        (run.end.is_some(), has::END),
        (run.end.as_ref().is_some_and(|end| end.succeeded), has::SUCCEEDED),
        (run.interest.is_some(), has::INTEREST),
    ];
    out.byte(parts.into_iter().filter(|(present, _)| *present).map(|(_, flag)| flag).sum());
    out.text(&run.program);
    out.count(run.version.into());
    out.count(run.revision);
    out.count(run.depth.into());
    out.count(run.children);
    out.word(run.seed);
    out.moment(run.created);
    out.moment(run.advanced);
    if let Some(timer) = run.timer {
        out.moment(timer);
    }
    if let Some(key) = &run.key {
        out.text(key);
    }
    if let Some(parent) = &run.parent {
        encode_parent(parent, out);
    }
    if let Some(end) = &run.end {
        out.moment(end.at);
        out.bytes(&end.result);
    }
    if let Some(interest) = &run.interest {
        event::encode_interest(interest, out);
    }
    out.bytes(&run.state);
}

/// Reads the run of an id.
pub(crate) fn decode(id: RunId, from: &mut Decoder<'_>) -> Result<Run, Unreadable> {
    let found = version(from, "a run", VERSION)?;
    let flags = from.byte()?;
    if (flags & has::INTEREST != 0) != (found == VERSION) {
        return Err(Malformed("a run is of another version than its parts"));
    }
    if flags & !has::ALL != 0 || flags & (has::END | has::SUCCEEDED) == has::SUCCEEDED {
        return Err(Malformed("a run has parts that this format does not know"));
    }
    let has = |flag| flags & flag != 0;
    Ok(Run {
        id,
        program: from.text()?.into(),
        version: from.small()?,
        revision: from.count()?,
        depth: from.small()?,
        children: from.count()?,
        seed: from.word()?,
        created: from.moment()?,
        advanced: from.moment()?,
        timer: if has(has::TIMER) { Some(from.moment()?) } else { None },
        key: if has(has::KEY) { Some(from.text()?.into()) } else { None },
        parent: if has(has::PARENT) { Some(decode_parent(from)?) } else { None },
        end: if has(has::END) {
            Some(RunEnd { at: from.moment()?, succeeded: has(has::SUCCEEDED), result: from.bytes()?.into() })
        } else {
            None
        },
        interest: if has(has::INTEREST) { Some(Arc::new(event::decode_interest(from)?)) } else { None },
        state: from.bytes()?.into(),
    })
}

mod tag {
    pub(super) const COMPLETED: u8 = 0;
    pub(super) const COMPLETED_WITH_RESULT: u8 = 1;
    pub(super) const FAILED: u8 = 2;
    pub(super) const EXPIRED: u8 = 3;
    pub(super) const CANCELLED: u8 = 4;
    pub(super) const JOB_REDRIVEN: u8 = 5;
    pub(super) const RUN_ENDED: u8 = 6;
    pub(super) const SIGNAL: u8 = 7;
    pub(super) const EVENT_OF_JOB: u8 = 8;
    pub(super) const OTHER_EVENT: u8 = 9;
}

/// Writes a message without its number.
pub(crate) fn encode_message(message: &Message, out: &mut Vec<u8>) {
    out.byte(if matches!(message.body, MessageBody::Event { .. }) { VERSION } else { FIRST });
    out.moment(message.at);
    match &message.body {
        MessageBody::JobEnded { child, id, generation, end } => encode_end(*child, *id, *generation, end, out),
        MessageBody::JobRedriven { child, id, generation } => job(tag::JOB_REDRIVEN, *child, *id, *generation, out),
        MessageBody::RunEnded { child, id, succeeded, result } => {
            out.byte(tag::RUN_ENDED);
            out.count(*child);
            out.raw(&id.to_bytes());
            out.byte((*succeeded).into());
            out.bytes(result);
        }
        MessageBody::Signal(signal) => {
            out.byte(tag::SIGNAL);
            out.text(&signal.name);
            out.bytes(&signal.body);
        }
        // Its time is that of the message.
        MessageBody::Event { event: EventBody::Job(job), .. } => {
            out.byte(tag::EVENT_OF_JOB);
            event::encode_job(job, out);
        }
        MessageBody::Event { event: EventBody::Other(other), .. } => {
            out.byte(tag::OTHER_EVENT);
            event::encode_other(other, out);
        }
    }
}

fn job(tag: u8, child: u64, id: JobId, generation: u32, out: &mut Vec<u8>) {
    out.byte(tag);
    out.count(child);
    out.raw(&id.to_bytes());
    out.count(generation.into());
}

fn encode_end(child: u64, id: JobId, generation: u32, end: &ChildEnd, out: &mut Vec<u8>) {
    let mut begin = |tag| job(tag, child, id, generation, out);
    match end {
        ChildEnd::Completed { result: None } => begin(tag::COMPLETED),
        ChildEnd::Completed { result: Some(result) } => {
            begin(tag::COMPLETED_WITH_RESULT);
            out.bytes(result);
        }
        ChildEnd::Failed { failure, dead } => {
            begin(tag::FAILED);
            out.byte((*dead).into());
            verdict::encode(failure, out);
        }
        ChildEnd::Expired { last_failure, dead } => {
            begin(tag::EXPIRED);
            out.byte((*dead).into());
            encode_last_failure(last_failure.as_ref(), out);
        }
        ChildEnd::Cancelled { last_failure } => {
            begin(tag::CANCELLED);
            encode_last_failure(last_failure.as_ref(), out);
        }
    }
}

fn encode_last_failure(failure: Option<&FailedAttempt>, out: &mut Vec<u8>) {
    out.byte(failure.is_some().into());
    if let Some(failure) = failure {
        verdict::encode(failure, out);
    }
}

/// Reads the message of a number.
pub(crate) fn decode_message(number: u64, from: &mut Decoder<'_>) -> Result<Message, Unreadable> {
    let found = version(from, "a message", VERSION)?;
    let at = from.moment()?;
    let kind = from.byte()?;
    if matches!(kind, tag::EVENT_OF_JOB | tag::OTHER_EVENT) != (found == VERSION) {
        return Err(Malformed("a message is of another version than its kind"));
    }
    let body = match kind {
        tag @ (tag::COMPLETED | tag::COMPLETED_WITH_RESULT | tag::FAILED | tag::EXPIRED | tag::CANCELLED) => {
            let (child, id, generation) = decode_job(from)?;
            MessageBody::JobEnded { child, id, generation, end: decode_end(tag, from)? }
        }
        tag::JOB_REDRIVEN => {
            let (child, id, generation) = decode_job(from)?;
            MessageBody::JobRedriven { child, id, generation }
        }
        tag::RUN_ENDED => MessageBody::RunEnded {
            child: from.count()?,
            id: RunId::from_bytes(from.array()?),
            succeeded: from.flag()?,
            result: from.bytes()?.into(),
        },
        tag::SIGNAL => MessageBody::Signal(Signal { name: from.text()?.into(), body: from.bytes()?.into() }),
        tag::EVENT_OF_JOB => MessageBody::Event { at, event: event::decode_job(from)? },
        tag::OTHER_EVENT => MessageBody::Event { at, event: event::decode_other(from)? },
        _ => return Err(Malformed("a message is of an unknown kind")),
    };
    Ok(Message { number, at, body })
}

fn decode_job(from: &mut Decoder<'_>) -> Result<(u64, JobId, u32), Unreadable> {
    Ok((from.count()?, JobId::from_bytes(from.array()?), from.small()?))
}

fn decode_end(tag: u8, from: &mut Decoder<'_>) -> Result<ChildEnd, Unreadable> {
    Ok(match tag {
        tag::COMPLETED => ChildEnd::Completed { result: None },
        tag::COMPLETED_WITH_RESULT => ChildEnd::Completed { result: Some(Blob::from(from.bytes()?)) },
        tag::FAILED => ChildEnd::Failed { dead: from.flag()?, failure: verdict::decode(from)? },
        tag::EXPIRED => ChildEnd::Expired { dead: from.flag()?, last_failure: decode_last_failure(from)? },
        _ => ChildEnd::Cancelled { last_failure: decode_last_failure(from)? },
    })
}

fn decode_last_failure(from: &mut Decoder<'_>) -> Result<Option<FailedAttempt>, Unreadable> {
    if from.flag()? { verdict::decode(from).map(Some) } else { Ok(None) }
}
