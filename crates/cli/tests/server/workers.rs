//! `redrive workers`.

use crate::harness::{Folder, Server, stderr};
use serde_json::{Value, json};

fn heartbeat(server: &Server, more: Value) -> Value {
    let mut body = json!({ "worker_id": "mailer-1", "hostname": "host-a", "pid": 4711, "concurrency": 10 });
    more.as_object().expect("an object").iter().for_each(|(key, value)| body[key] = value.clone());
    server.ask("POST", "/ojs/v1/workers/heartbeat", body)
}

#[test]
fn workers_are_listed_with_what_they_run_and_since_when() {
    let folder = Folder::new("workers");
    let server = Server::start(&folder.at("data"));
    assert!(server.printed(&["workers"]).starts_with("no workers: "));
    let id = server.enqueue(json!({ "type": "mail.send", "args": [], "options": { "queue": "mail" } }));
    let job = server.claim("mail");
    heartbeat(&server, json!({ "queues": ["mail", "slow"], "version": "1.2.0", "labels": ["canary"] }));
    let listed = server.printed(&["workers"]);
    let line = |name: &str| listed.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
    let words = |name: &str| line(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("WORKER")[..7], ["WORKER", "STATE", "RUNS", "QUEUES", "HOST", "SINCE", "LAST"]);
    assert_eq!(words("mailer-1")[..8], ["mailer-1", "running", "0", "of", "10", "mail,", "slow", "host-a"]);
    assert_eq!(words("tester")[..4], ["tester", "running", "1", "mail"], "the harness fetches by this name");
    let shown = server.printed(&["workers", "show", "tester"]);
    for words in [&id, "mail.send", "LEASE ENDS", "last seen"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    let shown = server.printed(&["workers", "show", "mailer-1"]);
    assert!(shown.contains("4711") && shown.contains("canary") && !shown.contains("LEASE"), "{shown}");
    let json = server.printed_json(&["workers", "--json"]);
    let names: Vec<Value> = json["workers"].as_array().expect("workers").iter().map(|one| one["id"].clone()).collect();
    assert_eq!(
        json!({ "names": names, "total": json["total"] }),
        json!({ "names": ["mailer-1", "tester"], "total": 2 })
    );
    let json = server.printed_json(&["workers", "show", "tester", "--json"]);
    assert_eq!(json["jobs"][0]["job_id"], job["id"]);
}

#[test]
fn workers_are_told_what_to_do_with_their_next_heartbeat() {
    let folder = Folder::new("workers-told");
    let server = Server::start(&folder.at("data"));
    heartbeat(&server, json!({}));
    assert_eq!(server.printed(&["workers", "quiet", "mailer-1"]), "worker mailer-1 will claim no more jobs\n");
    assert_eq!(heartbeat(&server, json!({}))["state"], "quiet");
    assert!(server.printed(&["workers"]).contains("quiet"));
    assert!(server.printed(&["workers", "show", "mailer-1"]).contains("told"));
    assert_eq!(server.printed(&["workers", "resume", "mailer-1"]), "worker mailer-1 may claim jobs\n");
    assert_eq!(heartbeat(&server, json!({}))["state"], "running");
    let told = server.printed_json(&["workers", "terminate", "mailer-1", "--json"]);
    assert_eq!(told["directive"], "terminate");
    assert_eq!(heartbeat(&server, json!({ "state": "drain" }))["state"], "terminate");
    let resumed = server.printed(&["workers", "resume", "mailer-1"]);
    assert_eq!(resumed, "worker mailer-1 is told nothing; it is drain by itself\n");
    let alive = server.command(&["workers", "remove", "mailer-1"]);
    assert_eq!(alive.status.code(), Some(1));
    let said = stderr(&alive);
    assert!(said.contains("is alive") && said.contains("redrive workers terminate mailer-1"), "{said}");
    let typo = server.command(&["workers", "show", "mailer-l"]);
    assert!(stderr(&typo).contains("did you mean \"mailer-1\"?"), "{}", stderr(&typo));
    for verb in ["show", "quiet", "resume", "terminate", "remove"] {
        let missing = server.command(&["workers", verb, "nobody"]);
        assert_eq!(missing.status.code(), Some(1), "{verb}");
        let said = stderr(&missing);
        assert!(said.contains("there is no worker \"nobody\"") && said.contains("`redrive workers`"), "{said}");
    }
}
