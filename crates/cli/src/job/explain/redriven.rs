//! That a job was redriven, and what was replaced then.

use serde::Deserialize;
use serde_json::{Map, Value};

/// How many characters of a replaced value are shown.
const LONGEST: usize = 1_000;

/// What a redrive replaced: the members of the job as they were until then.
#[derive(Deserialize)]
pub(super) struct Revision {
    pub(super) generation: u32,
    replaced_at: String,
    replaced_by: Option<String>,
    #[serde(flatten)]
    members: Map<String, Value>,
}

/// Says how a generation ended: the job was redriven, sometimes with another body.
pub(super) fn explained(job: &Value, revisions: &[Revision], generation: u32) -> String {
    let mut out = "It was redriven, to run again as if it were new.\n".to_owned();
    let Some(place) = revisions.iter().position(|revision| revision.generation == generation) else { return out };
    let revision = &revisions[place];
    let later = |key: &str| match revisions.get(place + 1) {
        Some(next) => next.members.get(key),
        None => job.get(key),
    };
    let by = revision.replaced_by.as_deref().unwrap_or("an operator");
    let replaced: Vec<_> = revision.members.iter().filter(|(key, old)| later(key) != Some(old)).collect();
    for (key, old) in &replaced {
        out.push_str(&format!("    {by} replaced {key} at {}; before: {}\n", revision.replaced_at, shortened(old)));
    }
    if replaced.is_empty() {
        out.push_str(&format!("    {by} changed where or how it runs at {}.\n", revision.replaced_at));
    }
    out
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}… ({} bytes; --json shows all)", &text[..end], text.len()),
        None => text,
    }
}
