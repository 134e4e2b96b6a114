//! What is known of a job.

use super::trace;
use crate::jobs::attempt;
use crate::{exit::Failed, output, when};
use serde_json::Value;

pub(super) fn run(job: &Value, json: bool) -> Result<(), Failed> {
    if json { output::json(job) } else { output::text(&told(job)) }
}

/// The times that a job may have, in the order in which they come.
const TIMES: [(&str, &str); 10] = [
    ("created_at", "created"),
    ("scheduled_at", "scheduled for"),
    ("enqueued_at", "available"),
    ("started_at", "last started"),
    ("lease_expires_at", "lease ends"),
    ("next_attempt_at", "next attempt"),
    ("expires_at", "expires"),
    ("completed_at", "completed"),
    ("cancelled_at", "cancelled"),
    ("discarded_at", "discarded"),
];

/// A job for people.
pub(crate) fn told(job: &Value) -> String {
    let now = when::now_ms();
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut add = |name: &str, value: String| rows.push([name.to_owned(), value]);
    for key in ["id", "type", "queue", "state"] {
        add(key, job[key].as_str().unwrap_or_default().to_owned());
    }
    add("attempt", attempt(job));
    add("priority", job["priority"].to_string());
    add("args", job["args"].to_string());
    for (key, name) in TIMES {
        if let Some(at) = job[key].as_str() {
            add(name, format!("{at}  ({})", when::relative(Some(at), now)));
        }
    }
    for key in ["timeout_ms", "worker_id", "progress", "progress_message", "tags", "meta", "unique", "result"] {
        let empty = |value: &Value| {
            value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(|o| o.is_empty())
        };
        match &job[key] {
            value if empty(value) => {}
            Value::String(text) => add(key, text.clone()),
            value => add(key, value.to_string()),
        }
    }
    add("retry policy", policy_origin(job));
    for error in job["errors"].as_array().into_iter().flatten() {
        let at = when::relative(error["occurred_at"].as_str(), now);
        add(&format!("failed attempt {}", error["attempt"]), format!("{} ({at})", error_line(error)));
    }
    let width = rows.iter().map(|[name, _]| name.len()).max().unwrap_or(0);
    let table: String = rows.iter().map(|[name, value]| format!("{name:width$}  {value}\n")).collect();
    table + &trace::of(job)
}

/// `external.timeout: no answer`: the type of an error and what it says.
pub(crate) fn error_line(error: &Value) -> String {
    let name = error["type"].as_str().or(error["code"].as_str()).unwrap_or("error");
    match error["message"].as_str().and_then(|message| message.lines().next()) {
        Some(message) => format!("{name}: {message}"),
        None => name.to_owned(),
    }
}

/// Which policy applies, and where it comes from.
pub(super) fn policy_origin(job: &Value) -> String {
    let from = &job["redrive"]["policy_from"];
    let layer = match from["layer"].as_str() {
        Some("job") => "the job's own",
        Some("type") => "that of its type",
        Some("queue") => "that of its queue",
        _ => "the server's default",
    };
    let caps: Vec<&str> = from["capped_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let capped = if caps.is_empty() {
        String::new()
    } else {
        format!(", tightened by the cap of the {}", caps.join(" and the "))
    };
    format!("{layer}{capped}")
}
