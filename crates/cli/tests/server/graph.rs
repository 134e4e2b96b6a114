//! `redrive graph`.

use crate::harness::{Folder, Server, redrive, stderr, stdout};
use serde_json::{Value, json};
use std::fs;

fn graph() -> Value {
    let node = |identifier: &str, text: &str, next: &[&str]| {
        json!({
            "node_name": "Node", "namespace": "My Project", "identifier": identifier,
            "inputs": { "text": text }, "next_nodes": next,
        })
    };
    let mut joins = node("joins", "${{ first.outputs.text }}", &[]);
    joins["unites"] = json!({ "identifier": "first", "strategy": "ALL_DONE" });
    json!({
        "secrets": {}, "nodes": [node("first", "x", &["each"]), node("each", "y", &["joins"]), joins],
        "retry_policy": { "max_retries": 1, "strategy": "FIXED", "backoff_factor": 3_600_000 },
    })
}

/// A server with a graph and a run of it.
fn begun(folder: &Folder) -> (Server, String) {
    let server = Server::start(&folder.at("data"));
    let base = "/v0/namespace/My%20Project";
    let schema = json!({ "properties": { "text": { "type": "string" } } });
    let nodes = json!([{ "name": "Node", "inputs_schema": schema, "outputs_schema": schema, "secrets": [] }]);
    server.ask("PUT", &format!("{base}/nodes/"), json!({ "runtime_name": "r", "nodes": nodes }));
    server.ask("PUT", &format!("{base}/graph/ingest"), graph());
    let run = server.ask("POST", &format!("{base}/graph/ingest/trigger"), json!({}));
    (server, run["run_id"].as_str().expect("an id").to_owned())
}

/// A runtime takes the only state that is ready.
fn taken(server: &Server) -> String {
    let body = json!({ "nodes": ["Node"], "batch_size": 9 });
    let answer = server.ask("POST", "/v0/namespace/My%20Project/states/enqueue", body);
    assert_eq!(answer["count"], 1, "{answer}");
    answer["states"][0]["state_id"].as_str().expect("an id").to_owned()
}

fn report(server: &Server, state: &str, verb: &str, body: Value) {
    server.ask("POST", &format!("/v0/namespace/My%20Project/state/{state}/{verb}"), body);
}

#[test]
fn a_graph_is_checked_with_everything_that_is_wrong() {
    let folder = Folder::new("graph-check");
    let check = |graph: &Value, more: &[&str]| {
        let file = folder.at("graph.json");
        fs::write(&file, graph.to_string()).expect("a file");
        redrive(&[&["graph", "check", &file], more].concat()).output().expect("it runs")
    };
    let valid = stdout(&check(&graph(), &[]));
    assert!(valid.starts_with("valid graph: 3 nodes, the first is \"first\", 1 unites others\nretries: "), "{valid}");
    let mut wrong = graph();
    wrong["nodes"][1]["inputs"]["text"] = json!("${{ other.outputs.text }} ${{ store.key }}");
    let output = check(&wrong, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("2 problems") && text.contains("\"other\"") && text.contains("\"key\""), "{text}");
    wrong["nodes"][0]["identifer"] = json!("a");
    wrong["triggers"] = json!([{ "type": "CRON", "value": { "expression": "61 * * * *" } }]);
    let text = stderr(&check(&wrong, &[]));
    assert!(text.contains("/nodes/0/identifer: ") && text.contains("/triggers/0/value/expression: "), "{text}");
    let output = check(&wrong, &["--json"]);
    let answer: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!((&answer["valid"], output.status.code()), (&json!(false), Some(1)));
    assert_eq!(answer["errors"].as_array().map(Vec::len), Some(2), "{answer}");
    let answer: Value = serde_json::from_str(&stdout(&check(&graph(), &["--json"]))).expect("JSON");
    assert_eq!((&answer["valid"], &answer["nodes"]), (&json!(true), &json!(3)));
}

#[test]
fn a_run_is_listed_shown_and_drawn_with_its_retries() {
    let folder = Folder::new("graph-show");
    let (server, run) = begun(&folder);
    let first = taken(&server);
    report(&server, &first, "executed", json!({ "outputs": [{ "text": "1" }] }));
    let each = taken(&server);
    let shown = server.printed(&["graph", "show", &run]);
    assert!(shown.contains("QUEUED") && shown.contains("taken "), "{shown}");
    report(&server, &each, "errored", json!({ "error": "no such file" }));
    let runs = server.printed(&["graph", "runs", "--namespace", "My Project"]);
    assert!(runs.contains(&run) && runs.contains("ingest") && runs.contains("PENDING"), "{runs}");
    assert!(server.printed(&["graph", "runs", "--namespace", "other"]).starts_with("no runs of graphs"));
    let shown = server.printed(&["graph", "show", &run]);
    let head =
        format!("run {run} of graph ingest in namespace My Project is PENDING: 1 succeeded, 1 pending, 1 retried\n");
    assert!(shown.starts_with(&head), "{shown}");
    for words in ["each (Node)", "RETRY_CREATED", "due in ", "no such file", &format!("{each}-1")] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(shown.contains(&format!("each (Node), job {each}:\nAttempt 1 failed (error: no such file): ")), "{shown}");
    let picture = server.printed(&["graph", "show", &run, "--svg", "-"]);
    assert!(picture.starts_with("<svg") && picture.contains("retry 1") && picture.contains("ingest"), "{picture}");
    assert_eq!(server.printed_json(&["graph", "show", &run, "--json"])["states"].as_array().map(Vec::len), Some(3));
    let missing = server.command(&["graph", "show", "nonsense"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("`redrive graph runs`"), "{}", stderr(&missing));
}

#[test]
fn states_that_are_stuck_are_listed_and_freed_one_by_one_or_all_with_a_confirmation() {
    let folder = Folder::new("graph-stuck");
    let (server, run) = begun(&folder);
    let first = taken(&server);
    assert!(server.printed(&["graph", "stuck", "--older-than", "1h"]).starts_with("no states were taken"));
    assert!(server.printed(&["graph", "stuck", "--older-than", "1ms"]).contains(&first));
    for wrong in [&["--all"][..], &[], &["--older-than", "0s"], &["--older-than", "1h", "--yes"]] {
        let output = server.command(&[&["graph", "stuck"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
    let refused = server.command(&["graph", "stuck", "--older-than", "1h", "--free", &first]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("was taken at"), "{}", stderr(&refused));
    let refused = server.command(&["workers", "remove", "exosphere"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("`redrive graph stuck`"), "{}", stderr(&refused));
    let all = ["graph", "stuck", "--older-than", "1ms", "--namespace", "My Project", "--all"];
    assert_eq!(server.printed(&all), "1 state would be freed; --yes carries it out\n");
    assert_eq!(server.printed(&["graph", "stuck", "--free", &first]), format!("{first}  freed: it is retried\n"));
    server.ask(
        "POST",
        &format!("/v0/namespace/My%20Project/state/{first}-1/manual-retry"),
        json!({ "fanout_id": "x" }),
    );
    let again = taken(&server);
    assert_eq!(server.printed(&[&all[..], &["--yes"]].concat()), "1 state freed\n");
    let shown = server.printed(&["graph", "show", &run]);
    assert!(shown.contains(&format!("{again}-1")) && shown.contains("freed it"), "{shown}");
}
