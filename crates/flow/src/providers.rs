//! The call providers that are not in the machine: jobs, and services over HTTP. What they take in their `with`, for
//! the checks of definitions and for the calls themselves.

use crate::cel::time::parse_iso;
use redrive_policy::dialect::signed_iso_duration;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A provider that is called by whoever runs the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// A worker has the call as a job: `mwl:provider.call/redrive/job/v1`.
    Job,
    /// A service has it as a request: `mwl:provider.call/redrive/http/v1`.
    Http,
}

/// An argument of a provider.
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) required: bool,
    /// In words.
    pub(crate) allowed: &'static str,
    pub(crate) fits: fn(&Value) -> bool,
}

const JOB: [Argument; 7] = [
    Argument { name: "type", required: true, allowed: "the type of the job, such as \"email.send\"", fits: is_text },
    optional("queue", "the name of a queue", is_text),
    optional("args", "an array", Value::is_array),
    optional("meta", "an object", Value::is_object),
    optional("priority", "a whole number from -100 to 100", is_priority),
    optional("timeout", "an ISO 8601 duration above zero, such as \"PT30S\"", is_span),
    optional("retry", "a retry policy of Open Job Spec, an object", Value::is_object),
];

const HTTP: [Argument; 5] = [
    Argument {
        name: "url",
        required: true,
        allowed: "an address such as \"https://example.org/charges\"",
        fits: is_url,
    },
    optional("method", "GET, POST, PUT, PATCH, DELETE or HEAD", is_method),
    optional("headers", "an object of texts, without those that the request itself needs, such as Host", are_headers),
    optional("body", "any value", |_| true),
    optional("timeout", "an ISO 8601 duration above zero, at most PT5M", |value| {
        is_span(value) && ms(value) <= MOST_MS
    }),
];

/// How long a service has for its answer where the definition does not say, and at most.
const DEFAULT_MS: f64 = 30_000.0;
const MOST_MS: f64 = 300_000.0;
/// How many headers a request may have, and how long one may be.
const MOST_HEADERS: usize = 32;
const LONGEST_HEADER: usize = 4_096;
/// Headers that are those of the connection, or that the server sets.
const OWN_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const fn optional(name: &'static str, allowed: &'static str, fits: fn(&Value) -> bool) -> Argument {
    Argument { name, required: false, allowed, fits }
}

impl Provider {
    const ALL: [Self; 2] = [Self::Job, Self::Http];

    /// Its URI.
    #[must_use]
    pub const fn uri(self) -> &'static str {
        match self {
            Self::Job => "mwl:provider.call/redrive/job/v1",
            Self::Http => "mwl:provider.call/redrive/http/v1",
        }
    }

    /// Its name in histories.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Http => "http",
        }
    }

    pub(crate) fn of_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.uri() == uri)
    }

    pub(crate) const fn arguments(self) -> &'static [Argument] {
        match self {
            Self::Job => &JOB,
            Self::Http => &HTTP,
        }
    }

    /// What leaves the machine. The arguments were checked.
    pub(crate) fn request(self, with: &Map<String, Value>, input: &Value) -> Value {
        match self {
            Self::Job => job(with, input),
            Self::Http => http(with, input),
        }
    }
}

/// A job as Open Job Spec writes it.
fn job(with: &Map<String, Value>, input: &Value) -> Value {
    let mut options = Map::new();
    for name in ["queue", "retry"] {
        options.extend(with.get(name).map(|value| (name.to_owned(), value.clone())));
    }
    options.extend(with.get("priority").and_then(whole).map(|number| ("priority".to_owned(), number.into())));
    options.extend(with.get("timeout").map(|span| ("timeout_ms".to_owned(), (ms(span).ceil() as u64).into())));
    let args = with.get("args").cloned().unwrap_or_else(|| json!([input]));
    let mut job = json!({ "type": with["type"], "args": args });
    if let Some(meta) = with.get("meta") {
        job["meta"] = meta.clone();
    }
    job["options"] = Value::Object(options);
    job
}

/// A request to a service. One that has no body of its own carries the input of the call.
fn http(with: &Map<String, Value>, input: &Value) -> Value {
    let method = with.get("method").and_then(Value::as_str).unwrap_or("POST");
    let timeout_ms = with.get("timeout").map_or(DEFAULT_MS, ms).ceil() as u64;
    let headers = with.get("headers").cloned().unwrap_or_else(|| json!({}));
    let mut request = json!({ "url": with["url"], "method": method, "headers": headers, "timeout_ms": timeout_ms });
    if let Some(body) = with.get("body") {
        request["body"] = body.clone();
    } else if !matches!(method, "GET" | "HEAD" | "DELETE") {
        request["body"] = input.clone();
    }
    request
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64()?;
    (number.fract() == 0.0 && number.abs() <= 100.0).then_some(number as i64)
}

fn is_priority(value: &Value) -> bool {
    whole(value).is_some()
}

fn ms(value: &Value) -> f64 {
    let text = value.as_str().filter(|text| parse_iso(text).is_some());
    text.and_then(signed_iso_duration).map_or(0.0, |parsed| parsed.span.ms())
}

fn is_span(value: &Value) -> bool {
    ms(value) > 0.0
}

fn is_url(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with("https://") || text.starts_with("http://"))
}

fn is_method(value: &Value) -> bool {
    matches!(value.as_str(), Some("GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD"))
}

fn are_headers(value: &Value) -> bool {
    let Some(headers) = value.as_object().filter(|headers| headers.len() <= MOST_HEADERS) else { return false };
    headers.iter().all(|(name, value)| {
        let name_fits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_own = OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str());
        // No control character: a header cannot bring others with it.
        let fits = |text: &str| text.len() <= LONGEST_HEADER && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        name_fits && !is_own && value.as_str().is_some_and(fits)
    })
}
