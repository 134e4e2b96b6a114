//! A job as it is handed in: read, checked, and written into the form in which it is kept.

use super::body;
use super::policies::Resolved;
use super::schedule::{self, Spans, Times};
use crate::api_error::ApiError;
use crate::app::App;
use crate::json::{Members, check_nested, member, push_key};
use crate::limits::Limits;
use redrive_engine::NewIds;
use redrive_policy::{Moment, Problem};
use redrive_store::{NewJob, Spec};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Members that are read under `options`, or, where it does not have them, at the top (C28).
const OPTIONS: [&str; 14] = [
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
];

/// Members that the server manages; what a caller says there is passed over.
const MANAGED: [&str; 32] = [
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

/// What is wrong with a job: with its retry policy, which OJS answers in its own way, and with the rest.
#[derive(Debug, Default)]
pub(crate) struct Wrong {
    pub(crate) request: Vec<Problem>,
    pub(crate) policy: Vec<Problem>,
}

impl Wrong {
    pub(crate) fn request(problem: Problem) -> Self {
        Self { request: vec![problem], ..Self::default() }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.request.is_empty() && self.policy.is_empty()
    }

    /// Adds what is wrong with a part that stands at `path`.
    pub(crate) fn add(&mut self, path: &str, other: Self) {
        let moved = |mut problem: Problem| {
            problem.path.insert_str(0, path);
            problem
        };
        self.request.extend(other.request.into_iter().map(moved));
        self.policy.extend(other.policy.into_iter().map(moved));
    }
}

impl From<Wrong> for ApiError {
    fn from(wrong: Wrong) -> Self {
        if wrong.request.is_empty() {
            return Self::invalid_policy(wrong.policy);
        }
        Self::invalid(wrong.request.into_iter().chain(wrong.policy).collect())
    }
}

/// Where the options of a job stand.
pub(super) struct Sources<'m, 'a> {
    top: &'m Members<'a>,
    options: Members<'a>,
}

impl<'a> Sources<'_, 'a> {
    /// The object that says something about an option; `options` wins.
    pub(super) fn of(&self, key: &str) -> &Members<'a> {
        if self.options.has(key) { &self.options } else { self.top }
    }

    /// The value of the first of several names of one option that is there, and its name.
    fn first_of<'k>(&self, keys: &[&'k str]) -> Option<(&'k str, &'a RawValue)> {
        keys.iter().find_map(|key| Some((*key, self.of(key).get(key)?)))
    }
}

/// Reads a job. `key` is an idempotency key that came with the request; `ids` names it where it has no
/// name.
///
/// # Errors
/// Everything that is wrong with it.
pub(crate) fn read(
    app: &App,
    top: &Members<'_>,
    key: Option<&str>,
    now: Moment,
    ids: &mut NewIds,
) -> Result<NewJob, Wrong> {
    let mut wrong = Wrong::default();
    let options = top.object("options", "/options", &mut wrong.request).unwrap_or_default();
    let from = Sources { top, options };
    let draft = draft(app, &from, now, &mut wrong.request);
    let id = top.job_id("id", &mut wrong.request);
    let key = idempotency_key(app, &from, key, &mut wrong.request);
    let retry = from.first_of(&["retry", "retry_policy"]);
    let layers = &app.engine.settings().layers;
    let resolved = app.policies.resolve(layers, retry.map(|(_, own)| own), &draft.kind, &draft.queue);
    let resolved = resolved.map_err(|problems| {
        let name = retry.map_or("", |(name, _)| name);
        let lead = if from.options.has(name) { "/options/" } else { "/" };
        wrong.add(&format!("{lead}{name}"), Wrong { policy: problems.0, ..Wrong::default() });
    });
    let Ok(resolved) = resolved else { return Err(wrong) };
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let spec = Spec {
        body: Arc::from(body_of(&draft, &resolved)),
        kind: Arc::from(&*draft.kind),
        queue: Arc::from(&*draft.queue),
        priority: draft.priority,
        policy: Arc::clone(&resolved.policy),
        timeout: draft.spans.timeout,
        lease: draft.spans.lease,
        expires: draft.times.expires.as_ref().map(|said| said.at),
    };
    let id = id.unwrap_or_else(|| ids.next_id());
    Ok(NewJob { id, spec: Arc::new(spec), start: draft.times.start, idempotency_key: key.map(Arc::from) })
}

/// What a job says, apart from its name and its policy.
struct Draft<'a> {
    kind: Cow<'a, str>,
    queue: Cow<'a, str>,
    priority: i32,
    args: &'a str,
    meta: Option<&'a str>,
    tags: Option<&'a str>,
    times: Times<'a>,
    spans: Spans,
    /// What nobody here understands; it is handed back as it came.
    others: Vec<(Cow<'a, str>, &'a RawValue)>,
}

fn draft<'a>(app: &App, from: &Sources<'_, 'a>, now: Moment, problems: &mut Vec<Problem>) -> Draft<'a> {
    let (top, limits) = (from.top, &app.limits);
    if !top.has("type") {
        top.wrong("type", "the type of the job, such as \"email.send\",", problems);
    }
    check_version(top, problems);
    let tags = from.of("tags");
    let valid_tags = tags.texts("tags", problems);
    let priority = from.of("priority").whole("priority", PRIORITIES, problems);
    Draft {
        kind: top.type_name("type", limits, problems).unwrap_or_default(),
        queue: from.of("queue").queue_name("queue", limits, problems).unwrap_or(Cow::Borrowed("default")),
        priority: priority.and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0),
        args: args(top, limits, problems).unwrap_or("[]"),
        meta: meta(top, limits, problems),
        tags: valid_tags.and(tags.get("tags")).map(RawValue::get),
        times: schedule::times(from, now, problems),
        spans: schedule::spans(from, problems),
        others: others(from, limits, problems),
    }
}

/// The positional arguments: an array within the limits.
pub(super) fn args<'a>(top: &Members<'a>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<&'a str> {
    const ALLOWED: &str = "an array of arguments, which may be empty,";
    let Some(value) = top.get("args").filter(|value| value.get().starts_with('[')) else {
        top.wrong("args", ALLOWED, problems);
        return None;
    };
    let (length, most) = (value.get().len(), limits.args_bytes);
    if length > most {
        let allowed = format!("{most} bytes (limits.args_bytes); keep large data elsewhere and hand over its name");
        top.told("args", Problem::new("", format!("{length} bytes"), allowed), problems);
        return None;
    }
    nested(top, "args", value, limits, problems)
}

/// The metadata: an object.
pub(super) fn meta<'a>(top: &Members<'a>, limits: &Limits, problems: &mut Vec<Problem>) -> Option<&'a str> {
    let object = |value: &'a RawValue| value.get().starts_with('{').then_some(value);
    let value = top.read("meta", "an object", problems, object)?;
    nested(top, "meta", value, limits, problems)
}

/// The text of a value that has been looked through.
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
            members.told(key, Problem::with_message("", message), problems);
            None
        }
    }
}

/// Members that nobody here understands, from both places; `options` wins.
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
        from.options.told("max_attempts", Problem::with_message("", message), problems);
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
    app: &App,
    from: &Sources<'_, 'a>,
    header: Option<&'a str>,
    problems: &mut Vec<Problem>,
) -> Option<Cow<'a, str>> {
    let most = app.limits.name_bytes;
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

/// What belongs to this job alone, as it is kept.
fn body_of(draft: &Draft<'_>, resolved: &Resolved) -> Vec<u8> {
    const TIMES: usize = 100;
    let others: usize = draft.others.iter().map(|(key, value)| key.len() + value.get().len() + 4).sum();
    let mut out = body::begin(resolved, draft.args, draft.meta, draft.tags, TIMES + others);
    for (key, said) in [("scheduled_at", &draft.times.scheduled), ("expires_at", &draft.times.expires)] {
        if let Some(said) = said {
            member(&mut out, key);
            said.push(&mut out);
        }
    }
    for (key, value) in &draft.others {
        push_key(&mut out, key);
        out.extend_from_slice(value.get().as_bytes());
    }
    out
}
