//! When a job may run, and how long it may take.

use super::enqueue::Sources;
use crate::json::{Members, push_time, text};
use crate::time::{parse_rfc3339, rfc3339};
use redrive_policy::dialect::iso_duration;
use redrive_policy::{Moment, Problem, Span};
use redrive_store::Start;
use serde_json::value::RawValue;

/// The shortest lease, in milliseconds. A shorter one is over before its worker can answer.
const SHORTEST_LEASE_MS: i64 = 100;

/// When a job may run.
pub(crate) struct Times<'a> {
    pub(crate) start: Start,
    pub(crate) scheduled: Option<WrittenTime<'a>>,
    pub(crate) expires: Option<WrittenTime<'a>>,
}

/// A time as the caller wrote it. A timestamp is answered byte for byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenTime<'a> {
    pub(crate) at: Moment,
    text: Option<&'a str>,
}

impl WrittenTime<'_> {
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        match self.text {
            Some(text) => out.extend_from_slice(text.as_bytes()),
            None => push_time(out, self.at),
        }
    }
}

/// How long a run may take, and how long its lease lasts without a heartbeat.
pub(crate) struct Spans {
    pub(crate) timeout: Option<Span>,
    pub(crate) lease: Option<Span>,
}

pub(crate) fn times<'a>(from: &Sources<'_, 'a>, now: Moment, problems: &mut Vec<Problem>) -> Times<'a> {
    let mut read = |key: &str| moment(from.of(key), key, now, problems);
    let (scheduled, delayed) = (read("scheduled_at"), read("delay_until"));
    let expires = expiry(from.of(EXPIRES), now, problems);
    if let (Some(one), Some(other)) = (&scheduled, &delayed)
        && one.at != other.at
    {
        let message = "contradicts scheduled_at; the two are one field under two names, keep one of them";
        from.of("delay_until").add_problem("delay_until", Problem::with_message("", message), problems);
    }
    let scheduled = scheduled.or(delayed);
    let pending = from.of("pending").flag("pending", problems).unwrap_or(false);
    if pending && scheduled.is_some() {
        let message = "a pending job waits to be activated, a scheduled one for its time; keep one of them";
        from.of("pending").add_problem("pending", Problem::with_message("", message), problems);
    }
    let start = match &scheduled {
        _ if pending => Start::Pending,
        Some(said) if said.at > now => Start::Scheduled(said.at),
        _ => Start::Available,
    };
    Times { start, scheduled, expires }
}

const EXPIRES: &str = "expires_at";

/// When a job expires; the time has to be in the future.
pub(crate) fn expiry<'a>(members: &Members<'a>, now: Moment, problems: &mut Vec<Problem>) -> Option<WrittenTime<'a>> {
    let said = moment(members, EXPIRES, now, problems)?;
    if said.at <= now {
        let message = format!(
            "found {}, and it is {} now; allowed is a time in the future: this job would be discarded without a run",
            rfc3339(said.at),
            rfc3339(now)
        );
        members.add_problem(EXPIRES, Problem::with_message("", message), problems);
    }
    Some(said)
}

/// A timestamp, or a time from now such as `+PT2S`.
fn moment<'a>(members: &Members<'a>, key: &str, now: Moment, problems: &mut Vec<Problem>) -> Option<WrittenTime<'a>> {
    const ALLOWED: &str = "a timestamp such as \"2026-02-13T10:00:00Z\", or a time from now such as \"+PT2S\"";
    members.read(key, ALLOWED, problems, |value| {
        let written = text(value)?;
        match written.strip_prefix('+') {
            Some(span) => Some(WrittenTime { at: now.after(iso_duration(span)?.span), text: None }),
            None => Some(WrittenTime { at: parse_rfc3339(&written)?, text: Some(value.get()) }),
        }
    })
}

pub(crate) fn spans(from: &Sources<'_, '_>, problems: &mut Vec<Problem>) -> Spans {
    let timeout = milliseconds(from.of("timeout_ms"), "timeout_ms", 1, problems);
    // OJS core counts this one in seconds.
    let above_zero = |value: &RawValue| seconds(value).filter(|span| !span.is_zero());
    let allowed = format!("a number of seconds above zero, at most {}", Span::MAX.secs());
    let timeout = timeout.or_else(|| from.of("timeout").read("timeout", &allowed, problems, above_zero));
    Spans { timeout, lease: lease(|key| from.of(key), problems) }
}

/// How long a lease lasts: in milliseconds, or as a duration, or in seconds.
pub fn lease<'m, 'a: 'm>(of: impl Fn(&'static str) -> &'m Members<'a>, problems: &mut Vec<Problem>) -> Option<Span> {
    const IN_MS: &str = "visibility_timeout_ms";
    const OTHERWISE: &str = "visibility_timeout";
    let whole = milliseconds(of(IN_MS), IN_MS, SHORTEST_LEASE_MS, problems);
    whole.or_else(|| {
        let shortest = Span::saturating_ms(SHORTEST_LEASE_MS as f64);
        let allowed = format!("a duration such as \"PT30S\", or a number of seconds, at least {} s", shortest.secs());
        of(OTHERWISE).read(OTHERWISE, &allowed, problems, |value| {
            let span = match text(value) {
                Some(said) => iso_duration(&said)?.span,
                None => seconds(value)?,
            };
            Some(span).filter(|span| *span >= shortest)
        })
    })
}

/// A number of seconds that a span can hold.
fn seconds(value: &RawValue) -> Option<Span> {
    span_of_seconds(value.get())
}

/// The number of seconds in a text: not negative, and no more than a span can hold.
#[must_use]
pub fn span_of_seconds(text: &str) -> Option<Span> {
    Span::try_from(text.parse::<f64>().ok()? * 1_000.0).ok()
}

/// A whole number of milliseconds.
fn milliseconds(members: &Members<'_>, key: &str, least: i64, problems: &mut Vec<Problem>) -> Option<Span> {
    let most = Span::MAX.ms() as i64;
    members.whole(key, least..=most, problems).map(|ms| Span::saturating_ms(ms as f64))
}
