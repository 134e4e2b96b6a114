//! `redrive workflow`.

use crate::harness::{Folder, Server, stderr};
use std::fs;

const PIPELINE: &str = r#"{
    "type": "chain", "name": "import",
    "steps": [
        { "type": "data.extract", "args": [] },
        { "type": "group", "jobs": [{ "type": "part.a", "args": [] }, { "type": "part.b", "args": [] }] },
        { "type": "data.load", "args": [] }
    ]
}"#;

fn started(folder: &Folder, server: &Server) -> String {
    let file = folder.at("pipeline.json");
    fs::write(&file, PIPELINE).expect("a file");
    server.printed(&["workflow", "start", &file]).trim_end().to_owned()
}

#[test]
fn a_workflow_is_started_shown_drawn_and_cancelled() {
    let folder = Folder::new("workflow");
    let server = Server::start(&folder.at("data"));
    assert!(server.printed(&["workflow", "list"]).starts_with("no workflows"));
    let id = started(&folder, &server);
    let shown = server.printed(&["workflow", "show", &id]);
    assert!(shown.starts_with(&format!("chain import {id} is running: 0 of 4 jobs completed\n")), "{shown}");
    for words in ["data.extract", "pending", "waiting", "1, 2"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(server.printed(&["workflow", "list", "--state", "running"]).contains(&id));
    let picture = server.printed(&["workflow", "graph", &id, "--svg", "-"]);
    assert!(picture.starts_with("<svg") && picture.contains("part.b"), "{picture}");
    assert_eq!(server.printed(&["workflow", "cancel", &id]), format!("workflow {id} is cancelled\n"));
    let again = server.command(&["workflow", "cancel", &id]);
    assert_eq!(again.status.code(), Some(1));
    assert!(stderr(&again).contains("cancelled already"), "{}", stderr(&again));
    assert_eq!(server.printed_json(&["workflow", "show", &id, "--json"])["state"], "cancelled");
}

#[test]
fn workers_run_the_steps_of_a_workflow_in_their_order() {
    let folder = Folder::new("workflow-work");
    let server = Server::start(&folder.at("data"));
    let id = started(&folder, &server);
    let worked = server.command(&["work", "--exec", "echo 1", "--once"]);
    assert!(worked.status.success(), "{}", stderr(&worked));
    let shown = server.printed_json(&["workflow", "show", &id, "--json"]);
    assert_eq!((&shown["state"], &shown["jobs_completed"]), (&"completed".into(), &4.into()), "{shown}");
}
