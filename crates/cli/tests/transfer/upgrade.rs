//! Nodes of two versions on one database, as a rollout has them, and jobs that cannot be read, with real servers.
//!
//! The next version is played by SQL: its migration, and the rows that it writes.

use crate::app::{App, address, new_schema};
use crate::harness::{Server, redrive, stderr, stdout, until};
use serde_json::{Value, json};

fn node(schema: &str) -> Server {
    Server::start_at(&["--store", &address(schema)], &[])
}

fn enqueue(server: &Server, queue: &str) -> String {
    server.enqueue(json!({ "type": "work", "args": [1], "options": { "queue": queue } }))
}

/// What a migration may add without stopping nodes that do not know it: a table, a column with a default, an index,
/// a function, and a column that may be absent.
fn migrate(app: &App, schema: &str, version: u32, needs: u32) {
    app.migrate(&format!(
        "SET search_path = {schema}; \
         CREATE TABLE runs_{version} (id uuid PRIMARY KEY); \
         ALTER TABLE specs ADD COLUMN note_{version} text; \
         ALTER TABLE live ADD COLUMN weight_{version} integer NOT NULL DEFAULT 0; \
         ALTER TABLE ended ADD COLUMN weight_{version} integer NOT NULL DEFAULT 0; \
         CREATE INDEX live_weight_{version} ON live (weight_{version}); \
         INSERT INTO migrations (version, needs) VALUES ({version}, {needs}); RESET search_path"
    ));
}

/// From the enqueue over a failure to the end.
fn works(server: &Server, other: &Server, queue: &str) {
    let id = enqueue(server, queue);
    let run = other.claim(queue);
    assert_eq!(run["id"], json!(id));
    other.fail(&run, "timeout");
    assert_eq!(server.state(&id), "retryable");
    let second = enqueue(other, queue);
    let run = server.claim(queue);
    assert_eq!(run["id"], json!(second));
    server.succeed(&run);
    assert_eq!(other.state(&second), "completed");
}

#[test]
fn nodes_go_on_through_a_compatible_migration_and_start_on_its_tables() {
    let schema = new_schema();
    let (running, app) = (node(&schema), App::connect());
    works(&running, &running, "before");
    migrate(&app, &schema, 8, 1);
    works(&running, &running, "during");
    let started = node(&schema);
    works(&running, &started, "after");
    works(&started, &running, "after-too");
    let (status, log) = running.stop();
    assert!(status.success(), "{log:?}");
    works(&started, &started, "alone");
    assert!(!log.iter().any(|line| line.contains("ERROR")), "{log:?}");
}

#[test]
fn an_incompatible_migration_keeps_old_nodes_from_starting_and_running_ones_go_on() {
    let schema = new_schema();
    let (running, app) = (node(&schema), App::connect());
    migrate(&app, &schema, 9, 9);
    let refused = redrive(&["serve", "--listen", "127.0.0.1:0", "--store", &address(&schema)]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
    let log = stderr(&refused);
    assert!(log.contains("version 9") && log.contains("knows up to") && log.contains("start a newer redrive"), "{log}");
    works(&running, &running, "q");
}

#[test]
fn a_job_that_a_newer_node_wrote_waits_for_one_and_calls_about_it_are_answered_with_503() {
    let schema = new_schema();
    let (first, second, app) = (node(&schema), node(&schema), App::connect());
    let (newer, plain) = (enqueue(&first, "q"), enqueue(&first, "q"));
    let written_by = |version: u32| {
        app.run(&format!("UPDATE {schema}.live SET rest = set_byte(rest, 0, {version}) WHERE id = '{newer}'"));
    };
    written_by(2);
    let run = second.claim("q");
    assert_eq!(run["id"], json!(plain), "the newer one stands before it");
    assert_eq!(second.fetch("q", 5), Vec::<Value>::new());
    for (method, path) in [("GET", format!("/ojs/v1/jobs/{newer}")), ("DELETE", format!("/ojs/v1/jobs/{newer}"))] {
        let (status, answer) = first.call(method, &path, &Value::Null).expect("an answer");
        assert_eq!(status, 503, "{answer}");
    }
    second.succeed(&run);
    let shown = app.text(&format!("SELECT state || args::text FROM {schema}.jobs WHERE id = '{plain}'"));
    assert_eq!(shown, "completed[1]", "people can read it in psql");
    let printed = redrive(&["store", "unreadable", &address(&schema), "--json"]).output().unwrap();
    let printed: Value = serde_json::from_str(&stdout(&printed)).expect("JSON");
    assert_eq!((&printed["total"], &printed["newer"]), (&json!(0), &json!(1)), "it is not set aside");

    // The newer node has done with what is new about it, or the old ones were upgraded.
    written_by(1);
    assert_eq!(first.claim("q")["id"], json!(newer));
}

#[test]
fn a_damaged_job_is_logged_once_listed_put_back_and_deleted() {
    let schema = new_schema();
    let (server, app) = (node(&schema), App::connect());
    let (damaged, sound) = (enqueue(&server, "q"), enqueue(&server, "q"));
    app.run(&format!("UPDATE {schema}.live SET rest = substring(rest FOR 3) WHERE id = '{damaged}'"));
    assert_eq!(server.claim("q")["id"], json!(sound));
    let lines = || server.log_lines().into_iter().filter(|line| line.contains(&damaged)).collect::<Vec<_>>();
    until("the server says so", || (!lines().is_empty()).then_some(()));
    assert_eq!(server.fetch("q", 5), Vec::<Value>::new());
    assert_eq!(lines().len(), 1, "{:?}", lines());
    assert!(lines()[0].contains("cannot be read and was set aside"), "{:?}", lines());

    let command = |more: &[&str]| {
        let output = redrive(&[&["store", "unreadable", &address(&schema)], more].concat()).output().unwrap();
        (output.status.code(), stdout(&output))
    };
    let (code, text) = command(&[]);
    assert_eq!(code, Some(0));
    assert!(text.contains("1 jobs and runs were set aside") && text.contains("a record ends too early"), "{text}");
    assert_eq!(command(&["--restore", &damaged]), (Some(0), format!("{damaged}\n")));
    assert_eq!(server.fetch("q", 5), Vec::<Value>::new(), "it is set aside again");
    assert_eq!(command(&["--delete", "all"]), (Some(0), format!("{damaged}\n")));
    assert_eq!(command(&["--delete", &damaged]).0, Some(1), "it is not there any more");
    assert_eq!(app.count(&format!("SELECT count(*) FROM {schema}.specs WHERE id = '{damaged}'")), 0);
}
