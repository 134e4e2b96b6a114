//! What is stored of a job besides what the store reads itself, as one JSON object:
//!
//! ```json
//! {"redrive":{"layer":"job"},"meta":{},"tags":[],"args":[1],"scheduled_at":"2026-02-13T10:00:00Z"}
//! ```
//!
//! Any JSON reader can read it. It is written without blanks and in this order, so that an envelope takes its members
//! over without reading them: `redrive`, where the policy came from, comes first and is left out for the plain
//! default of the server; `meta` and `tags` come before `args` and are left out where the job has neither.

use super::PolicyOrigin;
use crate::json::{Members, member, push_key, push_time};
use redrive_store::Job;
use serde_json::value::RawValue;

/// The two parts of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// Where the policy came from, an object; empty for the plain default of the server.
    pub origin: &'a [u8],
    /// The members of the envelope, without braces.
    pub members: &'a [u8],
}

/// Takes a body apart.
#[must_use]
pub fn split(body: &[u8]) -> Parts<'_> {
    let inner = body.strip_suffix(b"}").unwrap_or(body);
    let inner = inner.strip_prefix(b"{").unwrap_or(inner);
    let Some(rest) = inner.strip_prefix(b"\"redrive\":") else { return Parts { origin: b"", members: inner } };
    // The values of an origin are words and lists of them: its first closing brace is its last.
    let end = rest.iter().position(|byte| *byte == b'}').map_or(rest.len(), |end| end + 1);
    let (origin, members) = rest.split_at(end);
    Parts { origin, members: members.strip_prefix(b",").unwrap_or(members) }
}

/// The arguments in a body as JSON text.
#[must_use]
pub fn args(body: &[u8]) -> &str {
    let found = match split(body).members.strip_prefix(b"\"args\":") {
        // The first value of the rest, without reading what follows it.
        Some(rest) => std::str::from_utf8(rest).ok().and_then(first_value),
        None => std::str::from_utf8(body).ok().and_then(named),
    };
    found.unwrap_or("[]")
}

fn named(body: &str) -> Option<&str> {
    Members::parse(body).ok()?.get("args").map(RawValue::get)
}

fn first_value(text: &str) -> Option<&str> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    Some(values.next()?.ok()?.get())
}

/// A body whose expiry a redrive has cleared. The body itself is stored as it was enqueued.
pub(crate) struct Cleared {
    /// The time at which the job would have expired, as JSON text.
    pub(crate) expires_at: String,
    /// The members without it.
    members: Vec<u8>,
}

/// What a redrive has cleared; `None` where the job still expires, or never did.
pub(crate) fn cleared(job: &Job) -> Option<Cleared> {
    const KEY: &[u8] = b"\"expires_at\":";
    let body = &job.spec.body;
    // Only a redrive clears it, and few jobs have both: this saves the parsing for all others.
    if job.generation == 0 || job.spec.expires.is_some() || !body.windows(KEY.len()).any(|bytes| bytes == KEY) {
        return None;
    }
    let parsed = Members::parse(std::str::from_utf8(body).ok()?).ok()?;
    let expires_at = parsed.get("expires_at")?.get().to_owned();
    let mut members = Vec::with_capacity(body.len());
    for (key, value) in parsed.iter().filter(|(key, _)| !matches!(&***key, "expires_at" | "redrive")) {
        push_key(&mut members, key);
        members.extend_from_slice(value.get().as_bytes());
    }
    Some(Cleared { expires_at, members })
}

/// Writes the members in the body of a job, and the defaults of those that it leaves out.
pub(crate) fn push_members(out: &mut Vec<u8>, job: &Job) {
    let Some(schedule) = job.unique.as_ref().and_then(|unique| unique.schedule) else {
        return match cleared(job) {
            Some(cleared) => push_filled(out, &cleared.members),
            None => push_filled(out, split(&job.spec.body).members),
        };
    };
    // The time is that of the job which it has replaced, whatever it asked for itself.
    let cleared = cleared(job);
    let members = cleared.as_ref().map_or_else(|| split(&job.spec.body).members, |cleared| &cleared.members);
    push_filled(out, &without(members, SCHEDULED).unwrap_or_else(|| members.to_vec()));
    member(out, SCHEDULED);
    push_time(out, schedule);
}

const SCHEDULED: &str = "scheduled_at";

/// Members, without braces, except one of them.
fn without(members: &[u8], name: &str) -> Option<Vec<u8>> {
    let object = format!("{{{}}}", std::str::from_utf8(members).ok()?);
    let mut out = Vec::with_capacity(members.len());
    for (key, value) in Members::parse(&object).ok()?.iter().filter(|(key, _)| **key != name) {
        push_key(&mut out, key);
        out.extend_from_slice(value.get().as_bytes());
    }
    Some(out)
}

/// Writes members of a body, and the defaults of those that it leaves out.
pub(crate) fn push_filled(out: &mut Vec<u8>, members: &[u8]) {
    if members.starts_with(b"\"args\"") {
        out.extend_from_slice(b",\"meta\":{},\"tags\":[]");
    }
    out.push(b',');
    out.extend_from_slice(if members.is_empty() { b"\"meta\":{},\"tags\":[],\"args\":[]" } else { members });
}

/// Begins a body with what every job has; the closing brace is for the caller. `capacity` is for what follows.
#[must_use]
pub fn begin(origin: &PolicyOrigin, args: &str, meta: Option<&str>, tags: Option<&str>, capacity: usize) -> Vec<u8> {
    const ORIGIN: usize = 80;
    let length = |text: Option<&str>| text.map_or(0, |text| text.len() + 20);
    let mut out = Vec::with_capacity(capacity + ORIGIN + args.len() + length(meta) + length(tags) + 20);
    out.push(b'{');
    if !origin.is_default() {
        member(&mut out, "redrive");
        origin.push(&mut out);
    }
    if meta.is_some() || tags.is_some() {
        for (key, text, empty) in [("meta", meta, "{}"), ("tags", tags, "[]")] {
            member(&mut out, key);
            out.extend_from_slice(text.unwrap_or(empty).as_bytes());
        }
    }
    member(&mut out, "args");
    out.extend_from_slice(args.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_apart_as_it_was_put_together() {
        let origin = PolicyOrigin { layer: "job".into(), capped_by: vec!["queue".into()], ..PolicyOrigin::default() };
        for (origin, meta) in [(PolicyOrigin::default(), None), (origin.clone(), None), (origin, Some("{\"a\":\"}\"}"))]
        {
            let mut body = begin(&origin, "[{}]", meta, None, 0);
            body.push(b'}');
            serde_json::from_slice::<serde_json::Value>(&body).expect("plain JSON");
            assert_eq!(PolicyOrigin::read(&body), origin);
            let members = match meta {
                Some(meta) => format!("\"meta\":{meta},\"tags\":[],\"args\":[{{}}]"),
                None => "\"args\":[{}]".to_owned(),
            };
            assert_eq!(std::str::from_utf8(split(&body).members), Ok(&*members));
        }
        assert_eq!(split(b""), Parts { origin: b"", members: b"" });
    }

    #[test]
    fn arguments_are_found_wherever_they_stand() {
        for body in [
            r#"{"args":[1,"]"]}"#,
            r#"{"args":[1,"]"],"expires_at":"2030-01-01T00:00:00Z"}"#,
            r#"{"redrive":{"layer":"job"},"args":[1,"]"]}"#,
            r#"{"redrive":{"layer":"job"},"meta":{"args":[2]},"tags":[],"args":[1,"]"],"x":1}"#,
            r#"{ "x": 1, "args": [1,"]"] }"#,
        ] {
            assert_eq!(args(body.as_bytes()), r#"[1,"]"]"#, "in {body:?}");
        }
        assert_eq!(args(b"nonsense"), "[]");
    }
}
