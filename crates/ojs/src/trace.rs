//! W3C Trace Context: which trace a job belongs to. It stands in `meta`, and goes to every attempt as it came.

use serde_json::{Map, Value};

/// The member of `meta`, the header and, in capitals, the variable of the environment.
pub const TRACEPARENT: &str = "traceparent";
/// The same of what tracing systems add to it.
pub const TRACESTATE: &str = "tracestate";

/// The longest `tracestate` that is passed on, in bytes, as the recommendation requires.
const LONGEST_STATE: usize = 512;

/// The trace that a job belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext<'a> {
    /// `00-` trace id `-` span id `-` flags.
    pub parent: &'a str,
    /// What tracing systems add.
    pub state: Option<&'a str>,
}

impl<'a> TraceContext<'a> {
    /// Reads both values. None where the first is not valid; the second alone means nothing, and one that is not valid
    /// is left out. So says the recommendation: a trace that is broken must break nothing else.
    #[must_use]
    pub fn read(parent: &'a str, state: Option<&'a str>) -> Option<Self> {
        let is_text = |state: &&str| {
            (1..=LONGEST_STATE).contains(&state.len()) && state.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        };
        is_parent(parent).then(|| Self { parent, state: state.filter(is_text) })
    }

    /// The trace in the `meta` of a job.
    #[must_use]
    pub fn of_meta(meta: &'a Map<String, Value>) -> Option<Self> {
        let text = |name: &str| meta.get(name).and_then(Value::as_str);
        Self::read(text(TRACEPARENT)?, text(TRACESTATE))
    }

    /// The id of the trace, 32 digits.
    #[must_use]
    pub fn trace_id(&self) -> &'a str {
        self.parent.get(3..35).unwrap_or_default()
    }

    /// The id of the span that the job was enqueued in, 16 digits.
    #[must_use]
    pub fn span_id(&self) -> &'a str {
        self.parent.get(36..52).unwrap_or_default()
    }
}

/// Whether this is a `traceparent`: of version 00, or of a later one, which may go on after a hyphen.
fn is_parent(text: &str) -> bool {
    const LENGTH: usize = 55;
    let Some((known, rest)) = text.as_bytes().split_at_checked(LENGTH) else { return false };
    let is_hyphen = |place: usize| matches!(place, 2 | 35 | 52);
    let fits = |(place, byte): (usize, &u8)| match is_hyphen(place) {
        true => *byte == b'-',
        false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    let is_zero = |digits: &[u8]| digits.iter().all(|digit| *digit == b'0');
    let (version, is_longer) = (&known[..2], !rest.is_empty());
    known.iter().enumerate().all(fits)
        && version != b"ff"
        && !is_zero(&known[3..35])
        && !is_zero(&known[36..52])
        && (!is_longer || version != b"00" && rest[0] == b'-' && rest.iter().all(u8::is_ascii_graphic))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_valid_parent_has_two_ids() {
        let trace = TraceContext::read(PARENT, Some("redrive=1")).unwrap();
        assert_eq!((trace.trace_id(), trace.span_id()), ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"));
        assert_eq!(trace.state, Some("redrive=1"));
        let later = format!("01{}-more", &PARENT[2..]);
        assert_eq!(TraceContext::read(&later, None).unwrap().trace_id(), trace.trace_id(), "a later version");
    }

    #[test]
    fn what_is_not_valid_is_no_trace() {
        for wrong in [
            String::new(),
            PARENT.to_uppercase(),
            PARENT[..54].to_owned(),
            format!("{PARENT}-more"),
            format!("01{}more", &PARENT[2..]),
            format!("01{}-\u{0}", &PARENT[2..]),
            format!("ff{}", &PARENT[2..]),
            PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            PARENT.replace("00f067aa0ba902b7", &"0".repeat(16)),
            PARENT.replace('-', "_"),
            format!("é{}", &PARENT[2..]),
        ] {
            assert_eq!(TraceContext::read(&wrong, None), None, "{wrong}");
        }
        let too_long = "a".repeat(513);
        for wrong in ["", "a\nb", "a\u{0}", &too_long] {
            assert_eq!(TraceContext::read(PARENT, Some(wrong)).unwrap().state, None, "{wrong:?}");
        }
    }
}
