//! A job as a caller enqueues it: read, checked, and written as the body that is stored.

use super::schedule::{self, Spans, Times, WrittenTime};
use super::{PolicyOrigin, body, rate_limit, unique};
use crate::json::{Members, check_nested, member, push_key, push_str, text};
use crate::{Invalid, Limits, TRACEPARENT, TRACESTATE, TraceContext};
use redrive_policy::{Moment, Problem, Problems, Span};
use redrive_store::{JobId, OwnLimit, Start, Unique};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Members that are read under `options`, or, where it does not have them, at the top.
const OPTIONS: [&str; 15] = [
    "queue",
    "priority",
    "timeout_ms",
    "timeout",
    "visibility_timeout_ms",
    "visibility_timeout",
    "delay_until",
    "scheduled_at",
    "expires_at",
    "retry",
    "retry_policy",
    "tags",
    "pending",
    "idempotency_key",
    "rate_limit",
];

/// Members that the server manages; a value that a caller sends there is ignored.
pub(crate) const MANAGED: [&str; 32] = [
    "specversion",
    "id",
    "type",
    "args",
    "meta",
    "options",
    "state",
    "attempt",
    "max_attempts",
    "created_at",
    "enqueued_at",
    "started_at",
    "completed_at",
    "cancelled_at",
    "discarded_at",
    "activated_at",
    "previous_state",
    "worker_id",
    "lease_token",
    "lease_expires_at",
    "progress",
    "progress_message",
    "progress_data",
    "progress_updated_at",
    "result",
    "error",
    "errors",
    "retry_delay_ms",
    "next_attempt_at",
    "next_retry_at",
    "job",
    "redrive",
];

/// What OJS allows as a priority.
const PRIORITIES: RangeInclusive<i64> = -100..=100;
/// The priorities that have names.
const LEVELS: [(&str, i32); 3] = [("HIGH", 10), ("NORMAL", 0), ("LOW", -10)];

/// The two places of the options of a job.
pub(crate) struct Sources<'m, 'a> {
    top: &'m Members<'a>,
    options: Members<'a>,
}

impl<'a> Sources<'_, 'a> {
    /// The object that has an option; `options` wins.
    pub(crate) fn of(&self, key: &str) -> &Members<'a> {
        if self.options.has(key) { &self.options } else { self.top }
    }

    /// Whether an option is under `options`.
    pub(crate) fn is_option(&self, key: &str) -> bool {
        self.options.has(key)
    }

    /// The retry policy, under either of its names.
    fn retry(&self) -> Option<Retry<'a>> {
        ["retry", "retry_policy"].into_iter().find_map(|name| {
            let lead = if self.options.has(name) { "/options/" } else { "/" };
            Some(Retry { value: self.of(name).get(name)?, lead, name })
        })
    }
}

/// A job as a caller enqueues it. Its problems are collected; [`JobRequest::checked`] answers them.
#[derive(Debug)]
pub struct JobRequest<'a> {
    /// Its id; absent, one is made.
    pub id: Option<JobId>,
    /// What type of work it is.
    pub kind: Cow<'a, str>,
    /// The queue that it waits in.
    pub queue: Cow<'a, str>,
    /// Higher numbers run first.
    pub priority: i32,
    /// Where it starts.
    pub start: Start,
    /// When it expires.
    pub expires: Option<Moment>,
    /// How long one run may take.
    pub timeout: Option<Span>,
    /// How long a lease lasts without a heartbeat.
    pub lease: Option<Span>,
    /// A second job with the same key is not enqueued.
    pub idempotency_key: Option<Cow<'a, str>>,
    /// What it must be unique in.
    pub unique: Option<Unique>,
    /// The limit that it brings.
    pub limit: Option<OwnLimit>,
    /// The same as it was written.
    written_limit: Option<&'a RawValue>,
    /// Its arguments, JSON text.
    pub args: &'a str,
    meta: Option<Cow<'a, str>>,
    tags: Option<&'a str>,
    /// The times that the envelope repeats as the caller wrote them.
    times: [(&'static str, Option<WrittenTime<'a>>); 2],
    /// Members that are not known; they are answered as they came.
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
    retry: Option<Retry<'a>>,
    problems: Vec<Problem>,
}

/// The retry policy that a job brings, and its place in the request.
#[derive(Clone, Copy, Debug)]
struct Retry<'a> {
    value: &'a RawValue,
    lead: &'static str,
    name: &'static str,
}

impl<'a> JobRequest<'a> {
    /// Reads a job that is enqueued at `now`. `key` is an idempotency key that came beside it.
    #[must_use]
    pub fn read(top: &Members<'a>, key: Option<&'a str>, limits: &Limits, now: Moment) -> Self {
        let mut problems = Vec::new();
        let options = top.object("options", "/options", &mut problems).unwrap_or_default();
        let from = Sources { top, options };
        let p = &mut problems;
        if !top.has("type") {
            top.wrong("type", "the type of the job, such as \"email.send\",", p);
        }
        check_version(top, p);
        let tags = from.of("tags");
        let valid_tags = tags.texts("tags", p);
        let priority = priority(from.of("priority"), p);
        let kind = top.type_name("type", limits, p).unwrap_or_default();
        let queue = from.of("queue").queue_name("queue", limits, p).unwrap_or(Cow::Borrowed("default"));
        let (args, meta) = (args(top, limits, p).unwrap_or("[]"), meta(top, limits, p));
        let Times { start, scheduled, expires } = schedule::times(&from, now, p);
        let Spans { timeout, lease } = schedule::spans(&from, p);
        let others = others(&from, limits, p);
        let id = top.job_id("id", p);
        let idempotency_key = idempotency_key(&from, key, limits, p);
        let parts = unique::Parts { kind: &kind, queue: &queue, args, meta };
        let unique = unique::of_request(&from, &parts, p);
        let limit = rate_limit::read(from.of("rate_limit"), &queue, limits, p);
        Self {
            id,
            kind,
            queue,
            priority: priority.unwrap_or(0),
            start,
            expires: expires.as_ref().map(|said| said.at),
            timeout,
            lease,
            idempotency_key,
            unique,
            written_limit: limit.as_ref().and_then(|_| from.of("rate_limit").get("rate_limit")),
            limit,
            args,
            meta: meta.map(Cow::Borrowed),
            tags: valid_tags.and(tags.get("tags")).map(RawValue::get),
            times: [("scheduled_at", scheduled), ("expires_at", expires)],
            others,
            retry: from.retry(),
            problems,
        }
    }

    /// The text of the retry policy that it brings, for [`policy_document`](crate::policy_document).
    #[must_use]
    pub fn retry(&self) -> Option<&'a str> {
        self.retry.map(|retry| retry.value.get())
    }

    /// The same job in a trace, unless it names one itself.
    #[must_use]
    pub fn in_trace(mut self, trace: Option<TraceContext<'_>>) -> Self {
        let Some(trace) = trace else { return self };
        let meta = self.meta.as_deref().unwrap_or("{}");
        let Ok(members) = Members::parse(meta) else { return self };
        if members.has(TRACEPARENT) {
            return self;
        }
        let mut traced = vec![b'{'];
        member(&mut traced, TRACEPARENT);
        push_str(&mut traced, trace.parent);
        if let Some(state) = trace.state.filter(|_| !members.has(TRACESTATE)) {
            member(&mut traced, TRACESTATE);
            push_str(&mut traced, state);
        }
        for (key, value) in members.iter() {
            push_key(&mut traced, key);
            traced.extend_from_slice(value.get().as_bytes());
        }
        traced.push(b'}');
        self.meta = String::from_utf8(traced).ok().map(Cow::Owned);
        self
    }

    /// The job with its policy, once both are known to be valid.
    ///
    /// # Errors
    /// Everything that is wrong with either.
    pub fn checked<P>(mut self, policy: Result<P, Problems>) -> Result<(Self, P), Invalid> {
        let mut invalid = Invalid { request: std::mem::take(&mut self.problems), ..Invalid::default() };
        match policy {
            Ok(policy) if invalid.is_empty() => return Ok((self, policy)),
            Ok(_) => {}
            Err(problems) => {
                let path = self.retry.map_or_else(String::new, |retry| format!("{}{}", retry.lead, retry.name));
                invalid.add(&path, Invalid::policy(problems));
            }
        }
        Err(invalid)
    }

    /// The body that is stored of it.
    #[must_use]
    pub fn body(&self, origin: &PolicyOrigin) -> Vec<u8> {
        const TIMES: usize = 100;
        let limit = self.written_limit.map_or(0, |limit| limit.get().len() + 16);
        let others: usize = self.others.iter().map(|(key, value)| key.len() + value.get().len() + 4).sum();
        let mut out = body::begin(origin, self.args, self.meta.as_deref(), self.tags, TIMES + limit + others);
        for (key, said) in &self.times {
            if let Some(said) = said {
                member(&mut out, key);
                said.push(&mut out);
            }
        }
        if let Some(limit) = self.written_limit {
            member(&mut out, "rate_limit");
            out.extend_from_slice(limit.get().as_bytes());
        }
        for (key, value) in &self.others {
            push_key(&mut out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        out.push(b'}');
        out
    }
}

/// A number, or the name of one.
fn priority(members: &Members<'_>, problems: &mut Vec<Problem>) -> Option<i32> {
    const KEY: &str = "priority";
    let Some(name) = members.get(KEY).and_then(text) else {
        return members.whole(KEY, PRIORITIES, problems).and_then(|number| i32::try_from(number).ok());
    };
    let named = LEVELS.iter().find(|(level, _)| level.eq_ignore_ascii_case(&name));
    if named.is_none() {
        members.wrong(KEY, "HIGH, NORMAL or LOW, or a whole number from -100 to 100", problems);
    }
    named.map(|(_, number)| *number)
}

/// The positional arguments: an array within the limits.
pub(crate) fn args<'a>(top: &Members<'a>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<&'a str> {
    const ALLOWED: &str = "an array of arguments, which may be empty,";
    let Some(value) = top.get("args").filter(|value| value.get().starts_with('[')) else {
        top.wrong("args", ALLOWED, problems);
        return None;
    };
    let (length, most) = (value.get().len(), limits.args_bytes);
    if length > most {
        let allowed =
            format!("{most} bytes (limits.args_bytes); store large data elsewhere and pass a reference to it");
        top.add_problem("args", Problem::new("", format!("{length} bytes"), allowed), problems);
        return None;
    }
    nested(top, "args", value, limits, problems)
}

/// The metadata: an object.
pub(crate) fn meta<'a>(top: &Members<'a>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<&'a str> {
    let object = |value: &'a RawValue| value.get().starts_with('{').then_some(value);
    let value = top.read("meta", "an object", problems, object)?;
    nested(top, "meta", value, limits, problems)
}

/// The text of a value that has been checked.
fn nested<'a>(
    members: &Members<'a>,
    key: &str,
    value: &'a RawValue,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<&'a str> {
    match check_nested(value, limits.nesting) {
        Ok(()) => Some(value.get()),
        Err(message) => {
            members.add_problem(key, Problem::with_message("", message), problems);
            None
        }
    }
}

/// Members that are not known, from both places; `options` wins.
fn others<'a>(
    from: &Sources<'_, 'a>,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Vec<(Cow<'a, str>, &'a RawValue)> {
    let mut others = Vec::new();
    for (members, shadow) in [(&from.options, None), (from.top, Some(&from.options))] {
        for (key, value) in members.iter() {
            let known = OPTIONS.contains(&&**key) || MANAGED.contains(&&**key);
            let shadowed = shadow.is_some_and(|options| options.has(key));
            if !known && !shadowed && nested(members, key, value, limits, problems).is_some() {
                others.push((key.clone(), value));
            }
        }
    }
    if from.options.has("max_attempts") {
        let message = "belongs to the retry policy; write \"retry\": {\"max_attempts\": …}";
        from.options.add_problem("max_attempts", Problem::with_message("", message), problems);
    }
    others
}

fn check_version(top: &Members<'_>, problems: &mut Vec<Problem>) {
    let version = top.text("specversion", problems);
    if version.is_some_and(|version| !(version == "1" || version.starts_with("1."))) {
        top.wrong("specversion", "\"1.0\"", problems);
    }
}

fn idempotency_key<'a>(
    from: &Sources<'_, 'a>,
    header: Option<&'a str>,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<Cow<'a, str>> {
    let most = limits.name_bytes;
    let own = from.of("idempotency_key").text("idempotency_key", problems);
    if let (Some(own), Some(header)) = (&own, header)
        && own != header
    {
        let message = "differs from the key that came in the header Idempotency-Key; keep one of them";
        problems.push(Problem::with_message("/options/idempotency_key", message));
    }
    let key = own.or(header.map(Cow::Borrowed))?;
    if key.is_empty() || key.len() > most {
        let found = format!("a key of {} bytes", key.len());
        problems.push(Problem::new("/options/idempotency_key", found, format!("from 1 to {most} bytes")));
    }
    Some(key)
}
