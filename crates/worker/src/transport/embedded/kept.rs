//! What the engine keeps of a job, as a handler looks at it.

use super::envelope;
use redrive_store::Job;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::ops::Range;

/// A job as the engine keeps it. The body has the form that the server writes too: where the policy
/// came from as an object, NUL, and the members of the envelope without braces; or just the members.
pub(crate) struct Kept {
    job: Job,
    args: Range<usize>,
}

impl Kept {
    pub(super) fn new(job: Job) -> Self {
        let args = args_in(&job.spec.body);
        Self { job, args }
    }

    /// The arguments as JSON text.
    pub(crate) fn args(&self) -> &str {
        let text = self.job.spec.body.get(self.args.clone()).and_then(|text| std::str::from_utf8(text).ok());
        text.filter(|text| !text.is_empty()).unwrap_or("[]")
    }

    /// Everything that is known about the job.
    pub(crate) fn envelope(&self) -> Value {
        envelope::of(&self.job)
    }
}

/// Where the members of the envelope begin.
pub(super) fn members_from(body: &[u8]) -> usize {
    let end = if body.starts_with(b"{") { body.iter().position(|byte| *byte == 0) } else { None };
    end.map_or(0, |end| end + 1)
}

/// Whether two bodies have the same arguments, however they are written.
pub(super) fn same_args(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (&one[args_in(one)], &other[args_in(other)]);
    let read = |args: &[u8]| serde_json::from_slice::<Value>(args).ok();
    one == other || read(one).is_some_and(|args| Some(args) == read(other))
}

/// Where in a body the arguments are.
fn args_in(body: &[u8]) -> Range<usize> {
    const FIRST: &[u8] = b"\"args\":";
    let start = members_from(body);
    let members = &body[start..];
    let found = match members.strip_prefix(FIRST) {
        Some(rest) => first_value(rest).map(|length| FIRST.len()..FIRST.len() + length),
        None => named(members),
    };
    found.map_or(0..0, |args| start + args.start..start + args.end)
}

/// How long the value is that some text starts with.
fn first_value(text: &[u8]) -> Option<usize> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<&RawValue>();
    Some(values.next()?.ok()?.get().len())
}

fn named(members: &[u8]) -> Option<Range<usize>> {
    let whole = [b"{", members, b"}"].concat();
    let parsed: HashMap<&str, &RawValue> = serde_json::from_slice(&whole).ok()?;
    let args = parsed.get("args")?.get();
    // One byte less, for the brace.
    let start = args.as_ptr().addr() - whole.as_ptr().addr() - 1;
    Some(start..start + args.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_wherever_they_stand() {
        for body in [
            r#""args":[1,"]"]"#,
            r#""args":[1,"]"],"expires_at":"2030-01-01T00:00:00Z""#,
            "{\"layer\":\"job\"}\0\"args\":[1,\"]\"]",
            "{\"layer\":\"job\"}\0\"meta\":{\"args\":[2]},\"tags\":[],\"args\":[1,\"]\"],\"x\":1",
        ] {
            let found = &body[args_in(body.as_bytes())];
            assert_eq!(found, r#"[1,"]"]"#, "in {body:?}");
        }
        assert_eq!(args_in(b"nonsense"), 0..0);
    }
}
