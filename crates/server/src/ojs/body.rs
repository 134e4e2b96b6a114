//! What the store keeps of a job besides what it reads: the part of the envelope that never changes,
//! written once in the form in which it is answered.
//!
//! The text is `ORIGIN NUL MEMBERS` or `MEMBERS`: where the policy came from, as a JSON object, and
//! the members of the envelope, without braces. NUL stands in no JSON text.

use super::policies::Resolved;

/// The two parts of a kept body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept<'a> {
    /// Where the policy came from; empty for the plain default of the server.
    pub(crate) origin: &'a [u8],
    /// The members of the envelope.
    pub(crate) members: &'a [u8],
}

/// Takes a kept body apart.
pub(crate) fn split(body: &[u8]) -> Kept<'_> {
    let end = if body.starts_with(b"{") { body.iter().position(|byte| *byte == 0) } else { None };
    match end {
        Some(end) => Kept { origin: &body[..end], members: &body[end + 1..] },
        None => Kept { origin: &[], members: body },
    }
}

/// A buffer that starts as a body does.
pub(crate) fn begin(resolved: &Resolved, capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(capacity + resolved.members.len() + resolved.origin.len() + 1);
    if !resolved.origin.is_empty() {
        out.extend_from_slice(&resolved.origin);
        out.push(0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_apart_as_it_was_put_together() {
        let members = br#""type":"a","args":[{}]"#;
        assert_eq!(split(members), Kept { origin: b"", members });
        let body = [&br#"{"layer":"job"}"#[..], b"\0", members].concat();
        assert_eq!(split(&body), Kept { origin: br#"{"layer":"job"}"#, members });
    }
}
