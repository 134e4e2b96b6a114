//! What the store keeps of a job besides what it reads itself: the text of the arguments and of
//! whatever else belongs to this job alone, in the form in which it is answered.
//!
//! The text is `ORIGIN NUL MEMBERS` or `MEMBERS`: where the policy came from, as a JSON object, and
//! members of the envelope, without braces. NUL stands in no JSON text. Most jobs have neither
//! metadata nor tags: then their members begin with `args`, and the answer fills the two in.

use super::policies::Resolved;
use crate::json::member;

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

/// Writes the members of a kept body, and those that are filled in.
pub(super) fn push_members(out: &mut Vec<u8>, body: &[u8]) {
    let members = split(body).members;
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
