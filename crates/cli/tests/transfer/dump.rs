//! A store in a database, restored with the tools of PostgreSQL.

use crate::app::{App, address, new_schema};
use crate::harness::{Folder, Server, redrive, stderr, stdout, until};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The folder of `pg_dump`: that of the server, or else the newest one of Debian.
fn tools() -> PathBuf {
    if let Some(bin) = std::env::var_os("REDRIVE_POSTGRES_BIN").map(PathBuf::from)
        && bin.join("pg_dump").exists()
    {
        return bin;
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL of Debian").filter_map(Result::ok);
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest =
        versions.map(|version| version.path()).filter(|path| path.join("bin/pg_dump").exists()).max_by_key(number);
    newest.expect("pg_dump, from the package postgresql-client").join("bin")
}

fn ran(program: &str, args: &[&str]) -> Output {
    let output = Command::new(tools().join(program)).args(args).output().expect("it runs");
    assert!(output.status.success(), "{program} {args:?}: {}", stderr(&output));
    output
}

fn check(store: &str) -> Output {
    redrive(&["store", "check", store, "--json"]).output().expect("it runs")
}

#[test]
fn a_dump_of_a_running_store_is_restored_checked_and_goes_on() {
    let folder = Folder::new("dump");
    let (schema, dump) = (new_schema(), folder.at("redrive.dump"));
    let (store, database) = (address(&schema), crate::cluster::address());
    let mut server = Server::start_at(&["--store", &store], &[]);
    let enqueue = |queue: &str, more: Value| {
        let mut options = json!({ "queue": queue, "visibility_timeout_ms": 1_000 });
        options.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        server.enqueue(json!({ "type": "a.b", "args": [1], "options": options }))
    };
    let done = enqueue("done", json!({}));
    server.succeed(&server.claim("done"));
    let dead = enqueue("dead", json!({ "retry": { "max_attempts": 1, "on_exhaustion": "dead_letter" } }));
    server.fail(&server.claim("dead"), "Boom");
    let later = enqueue("later", json!({ "scheduled_at": "+PT1H" }));
    let held = enqueue("held", json!({}));
    server.claim("held");
    let again = enqueue("again", json!({}));
    server.printed(&["cron", "add", "nightly", "0 3 * * *", "report.make"]);

    ran("pg_dump", &["--format=custom", "--schema", &schema, "--file", &dump, database]);
    server.succeed(&server.claim("again"));
    let lost = enqueue("after", json!({}));
    let busy = check(&store);
    assert_ne!(busy.status.code(), Some(0), "the server has it open: {}", stdout(&busy));
    server.kill();
    App::connect().run(&format!("DROP SCHEMA {schema} CASCADE"));
    let gone = check(&store);
    assert_eq!(gone.status.code(), Some(3), "{}", stderr(&gone));
    assert!(stderr(&gone).contains("there is no store in"), "{}", stderr(&gone));

    ran("pg_restore", &["--exit-on-error", "--single-transaction", "--dbname", database, &dump]);
    let checked = check(&store);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    let found: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    let counts = ["total", "dead_letters", "runs", "unreadable"].map(|name| found[name].as_u64());
    assert_eq!((&found["sound"], counts), (&json!(true), [5, 1, 1, 0].map(Some)), "{found}");

    let server = Server::start_at(&["--store", &store], &[]);
    assert_eq!(
        [&done, &dead, &later, &again].map(|id| server.state(id)),
        ["completed", "discarded", "scheduled", "available"]
    );
    assert_eq!(server.call("GET", &format!("/ojs/v1/jobs/{lost}"), &Value::Null).expect("an answer").0, 404);
    // It was completed after the dump, and the worker of the other one is gone: both run again.
    server.succeed(&server.claim("again"));
    let job = until("its lease ends", || server.fetch("held", 1).pop());
    assert_eq!(job["id"], json!(held));
    server.succeed(&job);
    // A row that was damaged on its way is found.
    assert_eq!(server.stop().0.code(), Some(0));
    App::connect().run(&format!("UPDATE {schema}.live SET rest = '\\xff'::bytea"));
    let damaged = check(&store);
    assert_ne!(damaged.status.code(), Some(0), "{}", stdout(&damaged));
}
