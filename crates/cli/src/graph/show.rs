//! `redrive graph show`: a run, its states, and why each failure was retried or not.

use crate::client::{Client, Send, escaped};
use crate::job;
use crate::output::word;
use crate::{exit::Failed, output, when};
use redrive_policy::lab::picture::{Step, StepState, graph_svg};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// How many states are listed; `--json` has all of them.
const MOST_ROWS: usize = 200;
/// How many jobs are explained.
const MOST_EXPLAINED: usize = 10;
/// With more states than this, a picture has a box for each node in place of each state.
const MOST_BOXES: usize = 120;

pub(super) fn run(client: &Client, id: &str, svg: Option<&Path>, json: bool) -> Result<(), Failed> {
    let run = client.ask(Send::Get, &format!("/ojs/v1/admin/graph-runs/{}", escaped(id)))?;
    if let Some(file) = svg {
        return output::file(file, &picture(&run));
    }
    if json {
        return output::json(&run);
    }
    let text = format!("{}\n\n{}{}", headline(&run), listed(&run), explained(client, &run)?);
    output::text(&text)
}

fn headline(run: &Value) -> String {
    let text = |key: &str| word(&run[key]);
    let [id, graph, namespace] = ["run_id", "graph_name", "namespace"].map(text);
    format!("run {id} of graph {graph} in namespace {namespace} is {}", counts(run))
}

/// `PENDING: 3 succeeded, 1 pending`.
fn counts(run: &Value) -> String {
    let parts = [("success_count", "succeeded"), ("pending_count", "pending"), ("errored_count", "failed")];
    let parts = parts.into_iter().chain([("retried_count", "retried")]);
    let counts = parts.filter(|(key, _)| run[*key] != 0).map(|(key, name)| format!("{} {name}", run[key]));
    let counts: Vec<String> = counts.collect();
    format!("{}: {}", word(&run["status"]), counts.join(", "))
}

fn states(run: &Value) -> &[Value] {
    output::entries(run, "states")
}

/// A line for each state.
fn listed(run: &Value) -> String {
    let (states, now) = (states(run), when::now_ms());
    let places = places(states);
    let rows: Vec<(usize, &Value)> = states.iter().enumerate().take(MOST_ROWS).collect();
    let head = ["", "NODE", "STATUS", "RETRY", "AFTER", "WAIT", "ERROR", "STATE"];
    let row = |(index, state): &(usize, &Value)| {
        let after = above(state, &places).map_or_else(String::new, |place| place.to_string());
        let error = word(&state["error"]).lines().next().unwrap_or_default().to_owned();
        let retry = if state["retry"] == 0 { String::new() } else { word(&state["retry"]) };
        [index.to_string(), name(state), word(&state["status"]), retry, after, wait(state, now), error, id(state)]
    };
    let mut out = output::list(head, &rows, row);
    if states.len() > rows.len() {
        out.push_str(&format!("{} of {} states; --json shows all\n", rows.len(), states.len()));
    }
    out
}

/// What a state waits for, if it does.
fn wait(state: &Value, now: i64) -> String {
    let relative = |key: &str| when::relative(state[key].as_str(), now);
    match state["status"].as_str() {
        Some("CREATED") if state["due_at"].is_string() => format!("due {}", relative("due_at")),
        Some("CREATED") => "for a runtime".to_owned(),
        Some("QUEUED") => format!("taken {}", relative("taken_at")),
        _ => String::new(),
    }
}

fn id(state: &Value) -> String {
    word(&state["state_id"])
}

/// A state by its name in the graph, with the registered node where that is another.
fn name(state: &Value) -> String {
    named(&word(&state["identifier"]), &word(&state["node_name"]))
}

fn named(identifier: &str, node: &str) -> String {
    if identifier == node { identifier.to_owned() } else { format!("{identifier} ({node})") }
}

/// The places of states by their ids.
fn places(states: &[Value]) -> HashMap<&str, usize> {
    states.iter().enumerate().filter_map(|(place, state)| Some((state["state_id"].as_str()?, place))).collect()
}

fn above(state: &Value, places: &HashMap<&str, usize>) -> Option<usize> {
    places.get(state["after"].as_str()?).copied()
}

/// Why each failure was retried or stopped, in the words of `redrive job explain`.
fn explained(client: &Client, run: &Value) -> Result<String, Failed> {
    let mut jobs: Vec<(&str, String)> = Vec::new();
    let failed = |state: &&Value| matches!(state["status"].as_str(), Some("RETRY_CREATED" | "ERRORED"));
    for state in states(run).iter().filter(failed) {
        let Some(job) = state["job_id"].as_str() else { continue };
        if !jobs.iter().any(|(known, _)| *known == job) {
            jobs.push((job, name(state)));
        }
    }
    let mut out = String::new();
    for (job, name) in jobs.iter().take(MOST_EXPLAINED) {
        // A job that has ended is removed once its retention is over; its states stay in the run.
        let Ok(answer) = client.try_ask(Send::Get, &format!("/ojs/v1/jobs/{}", escaped(job)))? else { continue };
        let failures = job::failures_explained(&job::unwrapped(answer))?;
        if !failures.is_empty() {
            out.push_str(&format!("\n{name}, job {job}:\n{failures}"));
        }
    }
    let left = jobs.len().saturating_sub(MOST_EXPLAINED);
    if left > 0 {
        out.push_str(&format!("\n{left} more jobs have failed; `redrive job explain JOB` explains each\n"));
    }
    Ok(out)
}

fn picture(run: &Value) -> String {
    let title = format!("{} in {}", word(&run["graph_name"]), word(&run["namespace"]));
    let subtitle = format!("{}; run {}", counts(run), word(&run["run_id"]));
    let steps = if states(run).len() > MOST_BOXES { of_nodes(run) } else { of_states(run) };
    graph_svg(&title, &subtitle, &steps)
}

/// A box for each state, that of a retry behind the state that has failed.
fn of_states(run: &Value) -> Vec<Step> {
    let (states, now) = (states(run), when::now_ms());
    let places = places(states);
    let before = |state: &Value| {
        let retry = state["retry"].as_u64()?.checked_sub(1)?;
        states.iter().position(|other| other["job_id"] == state["job_id"] && other["retry"] == retry)
    };
    let drawn = |state: &Value| {
        let (wait, status) = (wait(state, now), word(&state["status"]));
        let retry = state["retry"].as_u64().filter(|retry| *retry > 0);
        let retry = retry.map_or_else(String::new, |retry| format!(", retry {retry}"));
        let detail = if wait.is_empty() { format!("{status}{retry}") } else { format!("{wait}{retry}") };
        let after = before(state).or_else(|| above(state, &places));
        Step { name: name(state), detail, state: drawn_as(state), after: after.into_iter().collect() }
    };
    states.iter().map(drawn).collect()
}

/// A box for each node of the graph, with the number of its states.
fn of_nodes(run: &Value) -> Vec<Step> {
    let nodes = output::entries(run, "nodes");
    let drawn = |node: &Value| {
        let own = states(run).iter().filter(|state| state["identifier"] == node["identifier"]);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut worst = StepState::Waiting;
        for state in own {
            *counts.entry(word(&state["status"])).or_default() += 1;
            // What was retried is as good as its retry.
            if state["status"] != "RETRY_CREATED" {
                worst = worse(worst, drawn_as(state));
            }
        }
        let counts: Vec<String> = counts.into_iter().map(|(status, count)| format!("{count} {status}")).collect();
        let leads = |other: &Value| other["next_nodes"].as_array().is_some_and(|n| n.contains(&node["identifier"]));
        let after = nodes.iter().enumerate().filter(|(_, other)| leads(other)).map(|(place, _)| place).collect();
        let name = named(&word(&node["identifier"]), &word(&node["node_name"]));
        Step { name, detail: counts.join(", "), state: worst, after }
    };
    nodes.iter().map(drawn).collect()
}

fn drawn_as(state: &Value) -> StepState {
    match state["status"].as_str() {
        Some("SUCCESS") => StepState::Completed,
        Some("ERRORED" | "NEXT_CREATED_ERROR" | "RETRY_CREATED") => StepState::Failed,
        Some("PRUNED") => StepState::Cancelled,
        Some("CREATED") if state["retry"] != 0 && state["due_at"].is_string() => StepState::Retrying,
        Some("CREATED") if state["due_at"].is_string() => StepState::Waiting,
        _ => StepState::Running,
    }
}

/// Which of two is drawn for states of one node: a failure before what runs, and that before what has ended.
fn worse(one: StepState, other: StepState) -> StepState {
    let rank = |state: StepState| match state {
        StepState::Waiting => 0,
        StepState::Cancelled => 1,
        StepState::Completed => 2,
        StepState::Retrying => 3,
        StepState::Running => 4,
        StepState::Failed => 5,
    };
    if rank(other) > rank(one) { other } else { one }
}
