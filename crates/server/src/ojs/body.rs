//! What the store keeps of a job besides what it reads itself: the text of the arguments and of
//! whatever else belongs to this job alone, in the form in which it is answered.
//!
//! The text is `ORIGIN NUL MEMBERS` or `MEMBERS`: where the policy came from, as a JSON object, and
//! members of the envelope, without braces. NUL stands in no JSON text. Most jobs have neither
//! metadata nor tags: then their members begin with `args`, and the answer fills the two in.

use super::policies::Resolved;
use crate::json::{Members, member, push_key};
use redrive_store::Job;

/// The two parts of a kept body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept<'a> {
    /// Where the policy came from; empty for the plain default of the server.
    pub(super) origin: &'a [u8],
    /// The members of the envelope.
    pub(super) members: &'a [u8],
}

/// Takes a kept body apart.
pub(super) fn split(body: &[u8]) -> Kept<'_> {
    let end = if body.starts_with(b"{") { body.iter().position(|byte| *byte == 0) } else { None };
    match end {
        Some(end) => Kept { origin: &body[..end], members: &body[end + 1..] },
        None => Kept { origin: &[], members: body },
    }
}

/// A body whose time to live a redrive has cleared. It is kept as it was handed in.
pub(super) struct Cleared {
    /// The time at which the job would have expired, as JSON text.
    pub(super) expires_at: String,
    /// The members without it.
    members: Vec<u8>,
}

/// What a redrive has cleared; `None` where the job expires as it was told to, or never did.
pub(super) fn cleared(job: &Job) -> Option<Cleared> {
    const KEY: &[u8] = b"\"expires_at\":";
    let kept = split(&job.spec.body).members;
    // Only a redrive clears it. Most jobs have had none, and most others have never had such a time.
    if job.generation == 0 || job.spec.expires.is_some() || !kept.windows(KEY.len()).any(|bytes| bytes == KEY) {
        return None;
    }
    let whole = format!("{{{}}}", std::str::from_utf8(kept).ok()?);
    let parsed = Members::parse(&whole).ok()?;
    let expires_at = parsed.get("expires_at")?.get().to_owned();
    let mut members = Vec::with_capacity(kept.len());
    for (key, value) in parsed.iter().filter(|(key, _)| **key != "expires_at") {
        push_key(&mut members, key);
        members.extend_from_slice(value.get().as_bytes());
    }
    Some(Cleared { expires_at, members })
}

/// Writes the members of a job that belong to it alone, and those that are filled in.
pub(super) fn push_members(out: &mut Vec<u8>, job: &Job) {
    match cleared(job) {
        Some(cleared) => push_kept(out, &cleared.members),
        None => push_kept(out, split(&job.spec.body).members),
    }
}

/// Writes kept members, and those that are filled in.
pub(super) fn push_kept(out: &mut Vec<u8>, members: &[u8]) {
    if members.starts_with(b"\"args\"") {
        out.extend_from_slice(b",\"meta\":{},\"tags\":[]");
    }
    out.push(b',');
    out.extend_from_slice(members);
}

/// Begins a body with what every job has. `capacity` is for what follows.
pub(super) fn begin(
    resolved: &Resolved,
    args: &str,
    meta: Option<&str>,
    tags: Option<&str>,
    capacity: usize,
) -> Vec<u8> {
    let length = |text: Option<&str>| text.map_or(0, |text| text.len() + 20);
    let capacity = capacity + resolved.origin.len() + args.len() + length(meta) + length(tags) + 20;
    let mut out = Vec::with_capacity(capacity);
    if !resolved.origin.is_empty() {
        out.extend_from_slice(&resolved.origin);
        out.push(0);
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
        let members = br#""args":[{}]"#;
        assert_eq!(split(members), Kept { origin: b"", members });
        let body = [&br#"{"layer":"job"}"#[..], b"\0", members].concat();
        assert_eq!(split(&body), Kept { origin: br#"{"layer":"job"}"#, members });
    }
}
