//! `redrive flow` on a server.

use crate::harness::{Folder, Server, stderr};

/// Fails until the carry says that it has failed twice; then it sleeps until it is cancelled, if it is asked to.
const FLOW: &str = r#"{
    "$schema": "https://mwl.dev/v0.1/flow/schema.json",
    "parameters": { "type": "object", "properties": { "tries": { "default": 0 }, "gap": { "default": "PT0S" } } },
    "entrypoint": "charge",
    "steps": {
        "charge": {
            "action": "Call",
            "middleware": [{
                "provider": "mwl:provider.middleware/mwl/retry/v1",
                "onEntry": { "with": { "policies": [{ "match": { "codes": ["Pay.*"] }, "attempts": 3 }] } },
                "onFailure": { "with": { "delay": "{{ vars.gap }}" }, "assign": { "tries": "{{ vars.tries + 1.0 }}" } }
            }],
            "call": {
                "provider": "mwl:provider.call/mwl/mock/v1",
                "with": { "failure": "{{ vars.tries < 2.0 ? {'code': 'Pay.Down', 'message': 'try later'} : null }}" }
            },
            "next": "done"
        },
        "done": { "action": "Return", "value": "{{ [step.input, vars.tries] }}" }
    }
}"#;

#[test]
fn a_definition_is_put_listed_shown_and_deleted() {
    let folder = Folder::new("flow-definitions");
    let server = Server::start(&folder.at("data"));
    assert!(server.printed(&["flow", "definitions"]).starts_with("no definitions"));
    let file = folder.file("order.json", FLOW);
    assert_eq!(server.printed(&["flow", "put", &file]), "order is at version 1\n");
    folder.file("order.json", &FLOW.replace("PT0S", "PT1S"));
    assert_eq!(server.printed(&["flow", "put", &file]), "order is at version 2\n");
    let listed = server.printed_json(&["flow", "definitions", "--json"]);
    assert_eq!((&listed["definitions"][0]["name"], &listed["definitions"][0]["version"]), (&"order".into(), &2.into()));
    let first = server.printed(&["flow", "definition", "order", "--version", "1"]);
    assert!(first.contains("PT0S") && server.printed(&["flow", "definition", "order"]).contains("PT1S"), "{first}");
    folder.file("order.json", &FLOW.replace("\"next\": \"done\"", "\"next\": \"dnoe\""));
    let refused = server.command(&["flow", "put", &file]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("order.json:"), "{}", stderr(&refused));
    assert!(server.printed(&["flow", "delete", "order"]).contains("is deleted"));
    let gone = server.command(&["flow", "start", "order"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("redrive flow put FILE"), "{}", stderr(&gone));
}

#[test]
fn a_run_is_started_and_shown_with_the_attempts_of_its_retry() {
    let folder = Folder::new("flow-runs");
    let server = Server::start(&folder.at("data"));
    let file = folder.file("order.json", FLOW);
    let input = folder.file("input.json", "{\"order\": 17}");
    let ended = server.printed_json(&["flow", "start", &file, "--input", &input, "--wait", "--json"]);
    let expected = serde_json::json!({ "type": "success", "value": [{ "order": 17 }, 2] });
    assert_eq!((&ended["state"], &ended["result"]), (&"completed".into(), &expected), "{ended}");
    let id = ended["id"].as_str().expect("an id");
    let shown = server.printed(&["flow", "show", id]);
    assert!(shown.starts_with("order, version 1: completed\n"), "{shown}");
    for words in
        ["attempt 1", "error Pay.Down: try later", "by policy 0, as the failure asked", "attempt 3", "success\n"]
    {
        assert!(shown.contains(words), "{words:?} in {shown}");
    }
    let picture = server.printed(&["flow", "show", id, "--svg", "-"]);
    assert!(picture.starts_with("<svg") && picture.matches("r-step-failed\"").count() == 3, "{picture}");
    // The same id again is the same run.
    let again = ["flow", "start", "order", "--input", &input, "--version", "1", "--id", id];
    assert_eq!(server.printed(&again).trim_end(), id);
    assert!(server.printed(&["flow", "list", "--state", "completed"]).contains(id));
    let late = server.command(&["flow", "cancel", id]);
    assert_eq!(late.status.code(), Some(1));
    assert!(stderr(&late).contains("redrive flow show ID"), "{}", stderr(&late));
}

#[test]
fn a_run_that_waits_says_what_is_next_and_can_be_cancelled() {
    let folder = Folder::new("flow-waits");
    let server = Server::start(&folder.at("data"));
    let (file, arguments) = (folder.file("order.json", FLOW), folder.file("arguments.json", "{\"gap\": \"PT1H\"}"));
    assert!(server.printed(&["flow", "list"]).starts_with("no runs"));
    let id = server.printed(&["flow", "start", &file, "--arguments", &arguments]).trim_end().to_owned();
    let shown = server.printed(&["flow", "show", &id]);
    for words in
        ["waits for the next attempt", "retry in 1 h by policy 0", "▶", "next        attempt 2 in ", "at step charge"]
    {
        assert!(shown.contains(words), "{words:?} in {shown}");
    }
    let list = server.printed(&["flow", "list", "--state", "running", "--definition", "order"]);
    assert!(list.contains(&id), "{list}");
    assert_eq!(server.printed(&["flow", "cancel", &id]), format!("run {id} is cancelled\n"));
    let run = server.printed_json(&["flow", "show", &id, "--json"]);
    assert_eq!((&run["state"], &run["retries"][0]["state"]), (&"cancelled".into(), &"interrupted".into()), "{run}");
    let unknown = server.command(&["flow", "show", "019c5654-1111-7111-8111-111111111111"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("redrive flow list"), "{}", stderr(&unknown));
}
