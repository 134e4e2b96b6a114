//! The jobs of a workflow as they are enqueued: documents made of those of the caller.

use crate::json::{Members, push_key};
use serde_json::value::RawValue;

/// A job without what only its workflow needs, and with the names of a policy's fields as Open Job Spec has them: the
/// JavaScript client writes them in camel case inside of workflows.
pub(super) fn document(members: &Members<'_>) -> Vec<u8> {
    let mut out = vec![b'{'];
    for (key, value) in members.iter().filter(|(key, _)| !matches!(&***key, "id" | "depends_on")) {
        push_key(&mut out, key);
        match &**key {
            "options" => out.extend_from_slice(&renamed_in(value, "retry")),
            "retry" => out.extend_from_slice(&renamed(value)),
            _ => out.extend_from_slice(value.get().as_bytes()),
        }
    }
    out.push(b'}');
    out
}

fn renamed_in(object: &RawValue, key: &str) -> Vec<u8> {
    let Ok(members) = Members::parse(object.get()) else { return object.get().as_bytes().to_vec() };
    let mut out = vec![b'{'];
    for (name, value) in members.iter() {
        push_key(&mut out, name);
        if name == key { out.extend_from_slice(&renamed(value)) } else { out.extend_from_slice(value.get().as_bytes()) }
    }
    out.push(b'}');
    out
}

fn renamed(policy: &RawValue) -> Vec<u8> {
    const NAMES: [(&str, &str); 6] = [
        ("maxAttempts", "max_attempts"),
        ("initialInterval", "initial_interval"),
        ("backoffCoefficient", "backoff_coefficient"),
        ("maxInterval", "max_interval"),
        ("nonRetryableErrors", "non_retryable_errors"),
        ("onExhaustion", "on_exhaustion"),
    ];
    let Ok(members) = Members::parse(policy.get()) else { return policy.get().as_bytes().to_vec() };
    let mut out = vec![b'{'];
    for (name, value) in members.iter() {
        let known = NAMES.iter().find(|(camel, plain)| camel == name && !members.has(plain));
        push_key(&mut out, known.map_or(name, |(_, plain)| plain));
        out.extend_from_slice(value.get().as_bytes());
    }
    out.push(b'}');
    out
}

/// A step whose options are those of the workflow where it has none of its own.
pub(super) fn with_defaults(members: &Members<'_>, defaults: Option<&str>) -> String {
    let defaults = defaults.and_then(|text| Members::parse(text).ok()).unwrap_or_default();
    let own = members.get("options").and_then(|options| Members::parse(options.get()).ok()).unwrap_or_default();
    let mut out = vec![b'{'];
    for (key, value) in members.iter().filter(|(key, _)| **key != "options") {
        push_key(&mut out, key);
        out.extend_from_slice(value.get().as_bytes());
    }
    push_key(&mut out, "options");
    out.push(b'{');
    for (key, value) in own.iter().chain(defaults.iter().filter(|(key, _)| !own.has(key))) {
        push_key(&mut out, key);
        out.extend_from_slice(value.get().as_bytes());
    }
    out.extend_from_slice(b"}}");
    String::from_utf8(out).unwrap_or_default()
}
