//! `redrive graph stuck`: states that a runtime took long ago and has not reported.

use crate::client::{Client, Send, escaped};
use crate::output::word;
use crate::pages::List;
use crate::{exit::Failed, operator, output, when};
use redrive_policy::Span;
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only those that were taken longer ago than this, such as 2h
    #[arg(long, value_name = "AGE", value_parser = when::above_zero, required_unless_present = "free")]
    older_than: Option<Span>,
    /// Only those of this namespace
    #[arg(long, conflicts_with = "free")]
    namespace: Option<String>,
    /// How many to list at most
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    limit: u32,
    /// Free this state; several are separated by commas
    #[arg(long, value_name = "STATE", value_delimiter = ',')]
    free: Vec<String>,
    /// Free all that are older, of the namespace if one is named; prints how many
    #[arg(long, conflicts_with = "free", requires = "older_than")]
    all: bool,
    /// With --all: free them
    #[arg(long, requires = "all")]
    yes: bool,
}

const PATH: &str = "/ojs/v1/admin/graph-states";

pub(super) fn run(client: &Client, args: &Args, json: bool) -> Result<(), Failed> {
    // The same time for the list and for what is freed: a state that was taken later is left alone.
    let before = args.older_than.map(|age| when::shown(when::now_ms() - age.ms() as i64));
    if !args.free.is_empty() {
        return free_named(client, &args.free, before.as_deref(), json);
    }
    let filter = vec![("taken_before", before.clone()), ("namespace", args.namespace.clone())];
    let list = List { path: PATH, entries: "states", limit: "limit", filter };
    if args.all {
        let found = list.read(client, usize::MAX)?.entries;
        let ids: Vec<String> = found.iter().map(|state| word(&state["state_id"])).collect();
        return free_all(client, &ids, before.as_deref(), args.yes, json);
    }
    let found = list.read(client, args.limit as usize)?;
    if json {
        return output::json(&found.object("states"));
    }
    if found.entries.is_empty() {
        return output::text("no states were taken so long ago\n");
    }
    let now = when::now_ms();
    let head = ["STATE", "NAMESPACE", "GRAPH", "NODE", "TAKEN", "RUN"];
    let row = |state: &Value| {
        let text = |key: &str| word(&state[key]);
        let taken = when::relative(state["taken_at"].as_str(), now);
        let [id, namespace, graph, node] = ["state_id", "namespace", "graph_name", "identifier"].map(text);
        [id, namespace, graph, node, taken, text("run_id")]
    };
    output::text(&output::list(head, &found.entries, row))?;
    found.print_remaining("states");
    Ok(())
}

fn free(client: &Client, id: &str, before: Option<&str>) -> Result<Result<Value, Failed>, Failed> {
    let mut document = json!({ "by": operator::name() });
    if let Some(before) = before {
        document["taken_before"] = before.into();
    }
    let answer = client.try_ask(Send::Post(&document), &format!("{PATH}/{}/free", escaped(id)))?;
    Ok(answer.map_err(Failed::from))
}

/// What became of a state that was freed.
fn told(id: &str, answer: &Value) -> String {
    let next = match answer["status"].as_str() {
        Some("RETRY_CREATED") => "it is retried",
        _ => "it has no retries left, and is ERRORED",
    };
    format!("{id}  freed: {next}\n")
}

fn free_named(client: &Client, ids: &[String], before: Option<&str>, json: bool) -> Result<(), Failed> {
    let mut answers = Vec::new();
    for id in ids {
        let answer = free(client, id, before)??;
        if !json {
            output::text(&told(id, &answer))?;
        }
        answers.push(answer);
    }
    if json { output::json(&json!({ "freed": answers.len(), "states": answers })) } else { Ok(()) }
}

/// Frees many, once that is confirmed. What was reported meanwhile is left alone.
fn free_all(client: &Client, ids: &[String], before: Option<&str>, yes: bool, json: bool) -> Result<(), Failed> {
    let states = |count: usize| if count == 1 { "1 state".to_owned() } else { format!("{count} states") };
    if !yes {
        let text = format!("{} would be freed; --yes carries it out\n", states(ids.len()));
        return if json { output::json(&json!({ "matched": ids.len() })) } else { output::text(&text) };
    }
    let (mut freed, mut left) = (0, 0);
    for id in ids {
        match free(client, id, before)? {
            Ok(_) => freed += 1,
            Err(failed) if failed.code == 1 => left += 1,
            Err(failed) => return Err(failed),
        }
    }
    if json {
        return output::json(&json!({ "freed": freed, "reported_meanwhile": left }));
    }
    let meanwhile = if left == 0 { String::new() } else { format!("; {} were reported meanwhile", states(left)) };
    output::text(&format!("{} freed{meanwhile}\n", states(freed)))
}
