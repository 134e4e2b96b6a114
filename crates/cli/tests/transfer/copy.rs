//! `redrive store copy`.

use crate::app::{address, new_schema};
use crate::harness::{Folder, Server, redrive, stderr, stdout, until};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Output, Stdio};

fn copy(from: &str, to: &str) -> Output {
    redrive(&["store", "copy", from, to, "--json"]).output().expect("it runs")
}

fn copied(from: &str, to: &str) -> Value {
    let output = copy(from, to);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A folder with jobs in many states; one is claimed by a worker.
fn filled(data: &str) -> Value {
    let server = Server::start(data);
    let work = |queue: &str| json!({ "type": "work", "args": [1], "options": { "queue": queue } });
    let held = {
        server.enqueue(work("held"));
        server.claim("held")
    };
    server.enqueue(work("done"));
    server.succeed(&server.claim("done"));
    let policy = json!({ "max_attempts": 1, "on_exhaustion": "dead_letter" });
    server.enqueue(json!({ "type": "work", "args": [], "options": { "queue": "dead", "retry": policy } }));
    server.fail(&server.claim("dead"), "Boom");
    server.enqueue(work("again"));
    server.fail(&server.claim("again"), "Boom");
    let keyed = json!({ "queue": "later", "scheduled_at": "+PT1H", "idempotency_key": "k" });
    server.enqueue(json!({ "type": "work", "args": [], "options": keyed }));
    server.enqueue(json!({ "type": "work", "args": [], "options": { "queue": "parked", "pending": true } }));
    let cancelled = server.enqueue(work("off"));
    server.ask("DELETE", &format!("/ojs/v1/jobs/{cancelled}"), Value::Null);
    server.enqueue(work("closed"));
    server.ask("POST", "/ojs/v1/queues/closed/pause", json!({}));
    assert_eq!(server.stop().0.code(), Some(0));
    held
}

#[test]
fn a_store_moves_to_a_database_and_back_and_its_workers_go_on() {
    let folder = Folder::new("copy");
    let (data, back) = (folder.at("data"), folder.at("back"));
    let held = filled(&data);
    let database = address(&new_schema());
    let out = copied(&data, &database);
    let once = |states: &[&str]| states.iter().all(|state| out["jobs"][state] == 1);
    let states = ["scheduled", "pending", "available", "active", "retryable", "completed", "cancelled", "discarded"];
    assert!(once(&states), "{out}");
    let counts = ["total", "dead_letters", "failures", "idempotency_keys", "queues", "paused_queues", "left_behind"];
    assert_eq!(counts.map(|name| out[name].as_u64()), [8, 1, 2, 1, 8, 1, 0].map(Some), "{out}");
    assert_eq!(out["verified"], true);

    let second = address(&new_schema());
    copied(&database, &second);
    let home = copied(&second, &back);
    assert_eq!(home["jobs"], out["jobs"]);

    for place in [["--store", &database], ["--store", &second], ["--data", &back]] {
        let server = Server::start_at(&place, &[]);
        // The worker took the job from the server on the folder, and has only its token.
        server.succeed(&held);
        let id = held["id"].as_str().expect("an id");
        assert_eq!(server.state(id), "completed");
        let keyed = json!({ "queue": "later", "idempotency_key": "k" });
        let again = server.enqueue(json!({ "type": "work", "args": [], "options": keyed }));
        assert_eq!(server.state(&again), "scheduled", "the key leads to the job that was copied");
        assert_eq!(server.fetch("closed", 1), Vec::<Value>::new(), "the queue is closed");
        server.ask("POST", "/ojs/v1/queues/closed/resume", json!({}));
        server.succeed(&server.claim("closed"));
        let busy = copy(if place[0] == "--data" { &data } else { &database }, place[1]);
        assert_ne!(busy.status.code(), Some(0), "neither in use nor empty: {}", stdout(&busy));
    }
}

#[test]
fn what_cannot_be_copied_is_refused_as_such_and_no_password_is_shown() {
    let folder = Folder::new("refused");
    let data = folder.at("data");
    filled(&data);
    let schema = new_schema();
    let database = address(&schema);
    let server = Server::start_at(&["--store", &database], &[]);
    let in_use = copy(&database, &folder.at("to"));
    assert_eq!(in_use.status.code(), Some(3), "{}", stderr(&in_use));
    assert!(stderr(&in_use).contains("is in use by") && stderr(&in_use).contains("stop the servers"));
    server.stop();
    copied(&data, &database);
    let full = copy(&data, &database);
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
    assert!(stderr(&full).contains("found 8 jobs, 8 queues"), "{}", stderr(&full));
    for (from, to, code) in [
        (folder.at("nothing"), folder.at("to"), 3),
        (data.clone(), data.clone(), 1),
        (data.clone(), "mysql://u:hush@h/d".to_owned(), 2),
        (data.clone(), "postgres://u:hush@h/d?nonsense=1".to_owned(), 2),
        (data.clone(), "env:REDRIVE_NOWHERE".to_owned(), 2),
        (data.clone(), "postgres://u:hush@127.0.0.1:1/d".to_owned(), 3),
    ] {
        let output = copy(&from, &to);
        assert_eq!(output.status.code(), Some(code), "{from} {to}: {}", stderr(&output));
        assert!(!stderr(&output).contains("hush"), "{}", stderr(&output));
    }
    assert!(!Path::new(&folder.at("to")).exists() && !Path::new(&folder.at("nothing")).exists());

    let mut hidden = redrive(&["store", "copy", "env:REDRIVE_FROM", &folder.at("to")]);
    let printed = hidden.env("REDRIVE_FROM", &database).output().expect("it runs");
    assert!(stdout(&printed).contains(&format!("schema \"{schema}\" is now in")), "{}", stderr(&printed));
}

/// A copy that is killed at any point leaves no store, and the next copy is complete.
#[test]
fn a_copy_that_is_killed_leaves_no_store_and_runs_again() {
    const JOBS: usize = 20_000;
    let folder = Folder::new("killed");
    let data = folder.at("data");
    let server = Server::start(&data);
    for _ in 0..JOBS / 1_000 {
        let jobs: Vec<Value> = (0..1_000).map(|number| json!({ "type": "work", "args": [number] })).collect();
        server.ask("POST", "/ojs/v1/jobs/batch", json!({ "jobs": jobs }));
    }
    server.stop();
    let (to, draft) = (folder.at("to"), folder.at("to.copying"));
    let mut child = redrive(&["store", "copy", &data, &to]).stdout(Stdio::null()).spawn().expect("it runs");
    until("the copy has begun", || Path::new(&draft).exists().then_some(()));
    child.kill().expect("it can be killed");
    child.wait().expect("it can be waited for");
    // It may have been faster than the kill; then there is a whole store, and never half of one.
    if Path::new(&to).exists() {
        assert!(!Path::new(&draft).exists());
    } else {
        assert_eq!(copied(&data, &to)["total"], JOBS);
    }
    assert!(!Path::new(&draft).exists());
    let check = redrive(&["store", "check", &to, "--json"]).output().expect("it runs");
    assert_eq!(serde_json::from_slice::<Value>(&check.stdout).expect("JSON")["jobs"]["available"], JOBS);
}
