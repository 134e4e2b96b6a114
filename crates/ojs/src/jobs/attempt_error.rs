//! The error of a failed attempt, as it is stored.

use crate::json::{Members, items, member, push_key, push_str, text};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The longest text that is stored of an error that is too long as a whole, in bytes.
const CUT_TEXT: usize = 1_000;

/// What is written here, or into each entry of the history: it is not taken over from the other members.
const MANAGED: [&str; 10] =
    ["type", "code", "message", "retryable", "details", "backtrace", "attempt", "timestamp", "occurred_at", "retry"];

/// The error of a failed attempt. What is absent is not written.
#[derive(Debug, Default)]
pub struct AttemptError<'a> {
    /// What kind of error it is.
    pub type_name: &'a str,
    /// Its code; empty where it has none.
    pub code: &'a str,
    /// What happened, for people.
    pub message: &'a str,
    /// What the worker says about retrying.
    pub retryable: Option<bool>,
    /// Data for programs, JSON text.
    pub details: Option<&'a str>,
    /// Where it happened: a list of lines, or text.
    pub backtrace: Option<&'a RawValue>,
    /// The retry policy that the worker brought, JSON text.
    pub retry: Option<&'a str>,
    /// An object whose members that are not named above are stored too.
    pub others: Option<&'a Members<'a>>,
}

impl AttemptError<'_> {
    /// The error as it is stored: one object, of which the history shows every member. Of one that has more bytes than
    /// `most`, only the names and the start of the message are stored.
    #[must_use]
    pub fn stored(&self, most: usize) -> Vec<u8> {
        let mut out = self.begun(usize::MAX);
        push_raw(&mut out, "details", self.details);
        if let Some(backtrace) = self.backtrace {
            member(&mut out, "backtrace");
            push_backtrace(&mut out, backtrace);
        }
        push_raw(&mut out, "retry", self.retry);
        let others = self.others.into_iter().flat_map(Members::iter);
        for (key, value) in others.filter(|(key, _)| !MANAGED.contains(&&***key)) {
            push_key(&mut out, key);
            out.extend_from_slice(value.get().as_bytes());
        }
        if out.len() >= most {
            out = self.begun(CUT_TEXT);
            member(&mut out, "truncated");
            out.extend_from_slice(b"true");
        }
        out.push(b'}');
        out
    }

    /// The members that are always stored, each text with at most so many bytes.
    fn begun(&self, most: usize) -> Vec<u8> {
        let mut out = vec![b'{'];
        member(&mut out, "type");
        push_str(&mut out, shortened(self.type_name, most));
        if !self.code.is_empty() {
            member(&mut out, "code");
            push_str(&mut out, shortened(self.code, most));
        }
        member(&mut out, "message");
        push_str(&mut out, shortened(self.message, most));
        if let Some(retryable) = self.retryable {
            member(&mut out, "retryable");
            out.extend_from_slice(if retryable { b"true" } else { b"false" });
        }
        out
    }
}

fn push_raw(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        member(out, key);
        out.extend_from_slice(value.as_bytes());
    }
}

/// A backtrace is a list of lines; text becomes one, because clients expect a list.
fn push_backtrace(out: &mut Vec<u8>, backtrace: &RawValue) {
    let strings = items(backtrace).is_some_and(|lines| lines.iter().all(|line| text(line).is_some()));
    if strings {
        out.extend_from_slice(backtrace.get().as_bytes());
        return;
    }
    let whole = text(backtrace).unwrap_or_else(|| Cow::Borrowed(backtrace.get()));
    out.push(b'[');
    for (index, line) in whole.lines().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push_str(out, line);
    }
    out.push(b']');
}

fn shortened(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_stored_whole_up_to_its_limit_and_cut_beyond_it() {
        let members = Members::parse(r#"{"type":"other","attempt":9,"host":"a","line":7}"#).unwrap();
        let error = AttemptError {
            type_name: "Boom",
            code: "E7",
            message: &"é".repeat(600),
            retryable: Some(false),
            details: Some("{\"x\":1}"),
            others: Some(&members),
            ..AttemptError::default()
        };
        let whole = error.stored(10_000);
        let text = format!(
            r#"{{"type":"Boom","code":"E7","message":"{}","retryable":false,"details":{{"x":1}},"host":"a","line":7}}"#,
            "é".repeat(600)
        );
        assert_eq!(String::from_utf8(whole.clone()).unwrap(), text);
        assert_eq!(error.stored(whole.len()), whole);
        let cut = String::from_utf8(error.stored(whole.len() - 1)).unwrap();
        let short = "é".repeat(500);
        let expected =
            format!(r#"{{"type":"Boom","code":"E7","message":"{short}","retryable":false,"truncated":true}}"#);
        assert_eq!(cut, expected);
    }

    #[test]
    fn a_backtrace_is_stored_as_a_list_of_lines() {
        for (given, stored) in [("\"a\\nb\"", "[\"a\",\"b\"]"), ("[\"a\"]", "[\"a\"]"), ("[1]", "[\"[1]\"]")] {
            let backtrace: &RawValue = serde_json::from_str(given).unwrap();
            let error = AttemptError { backtrace: Some(backtrace), ..AttemptError::default() };
            let expected = format!("{{\"type\":\"\",\"message\":\"\",\"backtrace\":{stored}}}");
            assert_eq!(String::from_utf8(error.stored(1_000)).unwrap(), expected);
        }
    }
}
