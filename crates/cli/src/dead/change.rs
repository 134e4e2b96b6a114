//! Redriving and deleting dead letters: single ones, or all that match a filter. Other jobs that have ended are
//! redriven by a filter in the same way.

use super::select::{Filter, Selection};
use crate::client::{Client, Send, escaped};
use crate::job::cleared_expiry;
use crate::{exit::Failed, output};
use serde_json::{Map, Value, json};

/// What happens to dead letters.
pub(super) enum Action {
    /// Redrive them; single ones with a document of changes.
    Retry(Value),
    /// Delete them.
    Drop,
    /// Redrive jobs of this state, dead letters or not.
    RetryEnded(String),
}

impl Action {
    const fn past_tense(&self) -> &'static str {
        match self {
            Self::Retry(_) | Self::RetryEnded(_) => "redriven",
            Self::Drop => "dropped",
        }
    }

    fn count_text(&self, count: u64) -> String {
        let noun = match self {
            Self::Retry(_) | Self::Drop => "dead letter",
            Self::RetryEnded(state) => &format!("{state} job"),
        };
        if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
    }

    fn one(&self, client: &Client, id: &str) -> Result<Value, Failed> {
        let path = format!("/ojs/v1/dead-letter/{}", escaped(id));
        match self {
            Self::Retry(document) => client.ask(Send::Post(document), &format!("{path}/retry")),
            Self::Drop => client.ask(Send::Delete, &path),
            Self::RetryEnded(_) => {
                client.ask(Send::Post(&json!({})), &format!("/ojs/v1/admin/jobs/{}/retry", escaped(id)))
            }
        }
    }

    /// Changes all that match the filter, or all if it is empty; `switch` is `dry_run` or `confirm`.
    fn many(&self, client: &Client, filter: &Filter, switch: &str) -> Result<Value, Failed> {
        match self {
            Self::Retry(_) => {
                let document = json!({ "filter": filter.object(), "all": filter.is_empty(), switch: true });
                client.ask(Send::Post(&document), "/ojs/v1/dead-letter/retry")
            }
            Self::Drop => {
                let text = |flag: bool| flag.to_string();
                let query = filter.query(&[("all", text(filter.is_empty())), (switch, text(true))]);
                client.ask(Send::Delete, &format!("/ojs/v1/dead-letter{query}"))
            }
            Self::RetryEnded(state) => {
                let mut object = filter.object();
                object.insert("state".to_owned(), state.as_str().into());
                let document = json!({ "filter": object, "all": filter.is_empty(), switch: true });
                client.ask(Send::Post(&document), "/ojs/v1/admin/jobs/bulk/retry")
            }
        }
    }
}

pub(super) fn run(client: &Client, selection: &Selection, action: &Action, json: bool) -> Result<(), Failed> {
    if !selection.ids.is_empty() {
        return change_by_id(client, &selection.ids, action, json);
    }
    if selection.yes {
        return change_all(client, &selection.filter, action, json);
    }
    let answer = action.many(client, &selection.filter, "dry_run")?;
    if json {
        return output::json(&answer);
    }
    let matched = answer["matched"].as_u64().unwrap_or(0);
    output::text(&format!("{} would be {}; --yes carries it out\n", action.count_text(matched), action.past_tense()))
}

fn change_by_id(client: &Client, ids: &[String], action: &Action, json: bool) -> Result<(), Failed> {
    let mut cleared = Map::new();
    for id in ids {
        let answer = action.one(client, id)?;
        if !json {
            output::text(&format!("{id}  {}{}\n", action.past_tense(), cleared_expiry(&answer)))?;
        }
        if let Some(expiry) = answer["redrive"].get("cleared_expiry") {
            cleared.insert(id.clone(), expiry.clone());
        }
    }
    let document = json!({ "succeeded": ids.len(), "ids": ids, "cleared_expiry": cleared });
    if json { output::json(&document) } else { Ok(()) }
}

/// The server changes a limited number at a time; this repeats the request until none are left. A job that is not a
/// dead letter may reach the same state again meanwhile, and would be redriven again and again: such jobs are changed
/// once.
fn change_all(client: &Client, filter: &Filter, action: &Action, json: bool) -> Result<(), Failed> {
    let (mut succeeded, mut cleared, mut errors) = (0, 0, Vec::new());
    let left = loop {
        let answer = action.many(client, filter, "confirm")?;
        let count = |key: &str| answer[key].as_u64().unwrap_or(0);
        succeeded += count("succeeded");
        cleared += answer["redrive"]["cleared_expiry"].as_u64().unwrap_or(0);
        errors.extend(answer["errors"].as_array().into_iter().flatten().cloned());
        if count("remaining") == 0 || count("succeeded") == 0 || matches!(action, Action::RetryEnded(_)) {
            break count("remaining");
        }
    };
    if json {
        let document =
            json!({ "succeeded": succeeded, "cleared_expiry": cleared, "remaining": left, "errors": errors });
        output::json(&document)?;
    } else {
        let mut expiry = match cleared {
            0 => String::new(),
            some => format!("; the expiry of {some} of them is cleared"),
        };
        if left > 0 {
            expiry.push_str(&format!("; {left} are left, repeat the command for them"));
        }
        output::text(&format!("{} {}{expiry}\n", action.count_text(succeeded), action.past_tense()))?;
    }
    if errors.is_empty() {
        return Ok(());
    }
    let messages: Vec<&str> = errors.iter().filter_map(|error| error["message"].as_str()).collect();
    Err(Failed::invalid(format!("some of them failed:\n{}", messages.join("\n"))))
}
