//! Failed attempts on disk. Exact to the last bit of every delay and draw, which JSON text would not be.

use super::{Decoder, Encode, Malformed, Unreadable, span, version};
use crate::FailedAttempt;
use redrive_policy::{Computed, Disposition, Draw, Mismatch, Origin, Outcome, Reason, Span, Verdict};

/// The version of these bytes. It counts up whenever they change.
const VERSION: u8 = 1;

/// Writes a failed attempt.
pub(crate) fn encode(run: &FailedAttempt, out: &mut Vec<u8>) {
    out.byte(VERSION);
    out.count(run.generation.into());
    out.count(run.attempt.into());
    for moment in [run.available, run.started, run.at] {
        out.moment(moment);
    }
    out.text(&run.worker);
    out.bytes(&run.error);
    let verdict = &run.verdict;
    out.count(verdict.attempt.into());
    // No rule is 0, rule n is n + 1.
    out.count(verdict.rule.map_or(0, |rule| rule as u64 + 1));
    match &verdict.outcome {
        Outcome::Retry { delay, origin } => {
            out.byte(0);
            out.span(*delay);
            encode_origin(origin, out);
        }
        Outcome::Stop { reason, disposition } => {
            out.byte(1);
            encode_reason(reason, out);
            out.byte(match disposition {
                Disposition::Discard => 0,
                Disposition::DeadLetter => 1,
                Disposition::Fail => 2,
            });
        }
    }
}

/// Reads a failed attempt.
pub(crate) fn decode(from: &mut Decoder<'_>) -> Result<FailedAttempt, Unreadable> {
    version(from, "a failed attempt", VERSION)?;
    let (generation, attempt) = (from.small()?, from.small()?);
    let (available, started, at) = (from.moment()?, from.moment()?, from.moment()?);
    let (worker, error) = (from.text()?.into(), from.bytes()?.into());
    let number = from.small()?;
    let rule = match from.count()? {
        0 => None,
        rule => Some(usize::try_from(rule - 1).map_err(|_| Malformed("a rule has too high a number"))?),
    };
    let outcome = match from.byte()? {
        0 => Outcome::Retry { delay: from.span()?, origin: decode_origin(from)? },
        1 => Outcome::Stop { reason: decode_reason(from)?, disposition: decode_disposition(from)? },
        _ => return Err(Malformed("a verdict has an unknown outcome")),
    };
    let verdict = Verdict { attempt: number, rule, outcome };
    Ok(FailedAttempt { generation, attempt, available, started, at, worker, error, verdict })
}

fn encode_origin(origin: &Origin, out: &mut Vec<u8>) {
    match origin {
        Origin::Backoff(computed) => {
            out.byte(0);
            out.count(computed.retry.into());
            out.span(computed.raw);
            encode_optional(computed.capped_at.map(Span::ms), out);
            encode_optional(computed.draw.map(Draw::value), out);
            out.span(computed.delay);
        }
        Origin::Override => out.byte(1),
        Origin::Requeue => out.byte(2),
    }
}

fn decode_origin(from: &mut Decoder<'_>) -> Result<Origin, Unreadable> {
    match from.byte()? {
        0 => Ok(Origin::Backoff(Computed {
            retry: from.small()?,
            raw: from.span()?,
            capped_at: decode_optional_span(from)?,
            draw: decode_optional(from)?.map(decode_draw).transpose()?,
            delay: from.span()?,
        })),
        1 => Ok(Origin::Override),
        2 => Ok(Origin::Requeue),
        _ => Err(Malformed("a verdict has an unknown origin")),
    }
}

fn decode_draw(draw: f64) -> Result<Draw, Unreadable> {
    Draw::try_from(draw).map_err(|_| Malformed("a draw is not between 0 and 1"))
}

fn encode_reason(reason: &Reason, out: &mut Vec<u8>) {
    match reason {
        Reason::MaxAttempts { limit } => {
            out.byte(0);
            out.count((*limit).into());
        }
        Reason::MaxElapsed { limit, elapsed, delay } => {
            out.byte(1);
            out.span(*limit);
            out.span(*elapsed);
            encode_optional(delay.map(Span::ms), out);
        }
        Reason::NonRetryable(mismatch) => {
            out.byte(2);
            encode_mismatch(*mismatch, out);
        }
        Reason::Unmatched => out.byte(3),
        Reason::Handler => out.byte(4),
        Reason::Unrecoverable => out.byte(5),
        Reason::RetriesDisabled => out.byte(6),
        Reason::Pruned => out.byte(7),
    }
}

fn decode_reason(from: &mut Decoder<'_>) -> Result<Reason, Unreadable> {
    Ok(match from.byte()? {
        0 => Reason::MaxAttempts { limit: from.small()? },
        1 => Reason::MaxElapsed { limit: from.span()?, elapsed: from.span()?, delay: decode_optional_span(from)? },
        2 => Reason::NonRetryable(decode_mismatch(from)?),
        3 => Reason::Unmatched,
        4 => Reason::Handler,
        5 => Reason::Unrecoverable,
        6 => Reason::RetriesDisabled,
        7 => Reason::Pruned,
        _ => return Err(Malformed("a verdict has an unknown reason")),
    })
}

fn encode_mismatch(mismatch: Mismatch, out: &mut Vec<u8>) {
    match mismatch {
        Mismatch::Excluded { entry } => {
            out.byte(0);
            out.count(entry as u64);
        }
        Mismatch::NotIncluded => out.byte(1),
        Mismatch::OtherCode => out.byte(2),
        Mismatch::OtherFlag => out.byte(3),
        Mismatch::Permanent => out.byte(4),
    }
}

fn decode_mismatch(from: &mut Decoder<'_>) -> Result<Mismatch, Unreadable> {
    Ok(match from.byte()? {
        0 => {
            let entry = usize::try_from(from.count()?).map_err(|_| Malformed("an entry has too high a number"))?;
            Mismatch::Excluded { entry }
        }
        1 => Mismatch::NotIncluded,
        2 => Mismatch::OtherCode,
        3 => Mismatch::OtherFlag,
        4 => Mismatch::Permanent,
        _ => return Err(Malformed("a verdict has an unknown mismatch")),
    })
}

fn decode_disposition(from: &mut Decoder<'_>) -> Result<Disposition, Unreadable> {
    Ok(match from.byte()? {
        0 => Disposition::Discard,
        1 => Disposition::DeadLetter,
        2 => Disposition::Fail,
        _ => return Err(Malformed("a verdict has an unknown disposition")),
    })
}

fn encode_optional(number: Option<f64>, out: &mut Vec<u8>) {
    out.byte(number.is_some().into());
    if let Some(number) = number {
        out.word(number.to_bits());
    }
}

fn decode_optional(from: &mut Decoder<'_>) -> Result<Option<f64>, Unreadable> {
    match from.byte()? {
        0 => Ok(None),
        1 => from.word().map(f64::from_bits).map(Some),
        _ => Err(Malformed("a flag is neither 0 nor 1")),
    }
}

fn decode_optional_span(from: &mut Decoder<'_>) -> Result<Option<Span>, Unreadable> {
    let Some(ms) = decode_optional(from)? else { return Ok(None) };
    span(ms).map(Some)
}
