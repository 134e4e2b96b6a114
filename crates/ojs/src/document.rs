//! A job as a client sends it.

use redrive_policy::Span;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// A job to be enqueued, as OJS writes it. What is absent is not written.
#[derive(Clone, Debug, Serialize)]
pub struct JobDocument<'a> {
    /// What type of work it is.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// Its arguments, an array.
    pub args: &'a RawValue,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// Data that travels with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meta: Option<&'a Map<String, Value>>,
    /// Everything else.
    #[serde(skip_serializing_if = "JobOptions::is_empty")]
    pub options: JobOptions<'a>,
}

/// The options of a job. What is absent is not written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobOptions<'a> {
    /// The queue that it waits in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<&'a str>,
    /// Higher numbers run first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Its first run starts no earlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<When<'a>>,
    /// The same under another name, which more servers know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_until: Option<When<'a>>,
    /// No run starts at this time or after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<When<'a>>,
    /// How long one run may take.
    #[serde(rename = "timeout_ms", skip_serializing_if = "Option::is_none", serialize_with = "whole_ms")]
    pub timeout: Option<Span>,
    /// How long a lease lasts without a heartbeat.
    #[serde(rename = "visibility_timeout_ms", skip_serializing_if = "Option::is_none", serialize_with = "whole_ms")]
    pub lease: Option<Span>,
    /// Its retry policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Value>,
    /// A second job with the same key is not enqueued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<&'a str>,
    /// The limit that it brings, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<Value>,
    /// What it must be unique in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unique: Option<Value>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub tags: &'a [String],
}

impl JobOptions<'_> {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A time in the document of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When<'a> {
    /// A timestamp.
    At(&'a str),
    /// A time from now, by the clock of the server, which is the one that counts.
    After(Span),
}

impl Serialize for When<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(timestamp) => serializer.serialize_str(timestamp),
            Self::After(span) => serializer.collect_str(&format_args!("+PT{}S", span.secs())),
        }
    }
}

/// A span as whole milliseconds, at least one: what was asked for is never cut short.
fn whole_ms<S: Serializer>(span: &Option<Span>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&span.map(|span| (span.ms().ceil() as u64).max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_absent_is_not_written() {
        let args: &RawValue = serde_json::from_str("[1,  2]").unwrap();
        let mut job = JobDocument { kind: "a.b", args, id: None, meta: None, options: JobOptions::default() };
        assert_eq!(serde_json::to_string(&job).unwrap(), r#"{"type":"a.b","args":[1,  2]}"#);
        job.options.scheduled_at = Some(When::After(Span::from_millis(1_500)));
        job.options.timeout = Some(Span::saturating_ms(0.2));
        let options = json!({ "scheduled_at": "+PT1.5S", "timeout_ms": 1 });
        assert_eq!(serde_json::to_value(&job).unwrap(), json!({ "type": "a.b", "args": [1, 2], "options": options }));
    }
}
