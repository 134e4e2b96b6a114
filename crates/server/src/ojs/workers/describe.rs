//! What a worker says about itself in a heartbeat.

use crate::limits::Limits;
use redrive_engine::{WorkerReport, WorkerState};
use redrive_ojs::json::{Members, items, text};
use redrive_ojs::time::parse_rfc3339;
use redrive_policy::Problem;
use serde_json::value::RawValue;
use std::sync::Arc;

/// How many queues and labels are stored of one worker.
const MOST_WORDS: usize = 100;

/// Reads the description. Only its state can be wrong, because the server acts on it: for the rest, which is for
/// people, no lease is given up. What cannot be read is left out, and what is too long is cut.
pub(in crate::ojs) fn report(members: &Members<'_>, limits: &Limits, problems: &mut Vec<Problem>) -> WorkerReport {
    let word = |value: &RawValue| text(value).map(|text| Arc::from(cut(&text, limits.name_bytes)));
    let words = |key: &str| -> Option<Vec<Arc<str>>> {
        Some(items(members.get(key)?)?.into_iter().take(MOST_WORDS).filter_map(word).collect())
    };
    let number = |key: &str| members.get(key)?.get().parse().ok();
    let mut unused = Vec::new();
    let shutdown = members.flag("shutdown", &mut unused).unwrap_or(false).then_some(WorkerState::Drain);
    WorkerReport {
        state: state(members, problems).max(shutdown),
        hostname: members.get("hostname").and_then(word),
        pid: number("pid"),
        queues: words("queues"),
        concurrency: number("concurrency"),
        labels: words("labels"),
        version: members.get("version").and_then(word),
        started: members.get("started_at").and_then(text).and_then(|at| parse_rfc3339(&at)),
    }
}

/// The state of the worker, in the words of all pages.
fn state(members: &Members<'_>, problems: &mut Vec<Problem>) -> Option<WorkerState> {
    let known = WorkerState::ALL.map(WorkerState::name).join(", ");
    members.read("state", &known, problems, |value| match &*text(value)? {
        "draining" | "shutting_down" => Some(WorkerState::Drain),
        "terminated" => Some(WorkerState::Terminate),
        name => WorkerState::ALL.into_iter().find(|state| state.name() == name),
    })
}

fn cut(text: &str, most: usize) -> &str {
    let end = (0..=text.len().min(most)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}
