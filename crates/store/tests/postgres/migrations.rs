//! Tables as each migration left them, with rows of every kind: they are brought up to date, read, and worked on.
//!
//! The dumps are written by the last test here; `tests/fixtures/README.md` says when and how.

use crate::description::description;
use crate::scratch::Scratch;
use crate::subject::{new_schema, open, options, plain_client, runtime};
use crate::work::{claim, job, later};
use redrive_store::embedded::FolderSource;
use redrive_store::postgres::DatabaseTarget;
use redrive_store::transfer::copy;
use redrive_store::{AttemptOutcome, InboxEntry, LeaseRef, NewJob, Settlement, Store, Token};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each step, and what it needs, as it is written down in the table of migrations.
const STEPS: [&str; 4] = [
    include_str!("../../src/postgres/migrations/0001.sql"),
    include_str!("../../src/postgres/migrations/0002.sql"),
    include_str!("../../src/postgres/migrations/0003.sql"),
    include_str!("../../src/postgres/migrations/0004.sql"),
];
/// The newest migration. Of the last one there is no dump before it is released.
const NEWEST: i32 = 5;
/// The schema in the dumps.
const SCHEMA: &str = "redrive_fixture";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn dump(version: usize) -> PathBuf {
    fixtures().join(format!("postgres-{version}.sql"))
}

/// Loads a dump; returns the schema in which it is.
async fn load(version: usize) -> String {
    let schema = new_schema();
    let dump = std::fs::read_to_string(dump(version)).unwrap().replace(SCHEMA, &schema);
    plain_client().await.batch_execute(&dump).await.unwrap_or_else(|error| panic!("dump {version}: {error:?}"));
    schema
}

#[test]
fn tables_of_every_migration_are_brought_up_to_date_and_read_as_they_were() {
    let expected = std::fs::read_to_string(fixtures().join("format-1/expected.txt")).unwrap();
    for version in 1..=STEPS.len() {
        let schema = runtime().block_on(load(version));
        let store = open(&schema);
        runtime().block_on(async {
            // Runs came with migration 4.
            let is_there = |line: &&str| version > 3 || !(line.starts_with("run ") || line.starts_with("  message "));
            let expected: String = expected.lines().filter(is_there).map(|line| format!("{line}\n")).collect();
            assert_eq!(description(&store).await, expected, "from migration {version}");
            let client = plain_client().await;
            let seen = client.query(&format!("SELECT version FROM {schema}.migrations ORDER BY 1"), &[]).await.unwrap();
            let seen: Vec<i32> = seen.iter().map(|row| row.get(0)).collect();
            assert_eq!(seen, (1..=NEWEST).collect::<Vec<i32>>());
            let shown = client.query(&format!("SELECT * FROM {schema}.jobs"), &[]).await.unwrap();
            assert_eq!(shown.len(), expected.lines().filter(|line| line.contains(" policy ")).count());
        });
    }
}

#[test]
fn jobs_of_every_migration_can_be_run() {
    for version in 1..=STEPS.len() {
        let schema = runtime().block_on(load(version));
        let store = open(&schema);
        runtime().block_on(async {
            let latest = store.next_wake(&redrive_store::Held::new()).await.unwrap().unwrap_or_else(|| later(0));
            let now = latest.after(redrive_policy::Span::from_secs(3_600));
            store.promote(&redrive_store::Held::new(), 1_000, now).await.unwrap();
            let mut runs = 0;
            for queue in store.queues().await.unwrap() {
                store
                    .pause(std::sync::Arc::clone(&queue.name), false, redrive_store::Missing::Refuse, now)
                    .await
                    .unwrap();
                for run in store.claim(claim(&queue.name, 100, 1), now).await.unwrap().jobs {
                    let token = Token::Lease(run.lease.as_ref().unwrap().token);
                    let lease_ref = LeaseRef { id: run.id, token };
                    let ack = Settlement { lease_ref, report: AttemptOutcome::Done(None) };
                    store.settle(vec![ack], now).await.unwrap().remove(0).unwrap();
                    runs += 1;
                }
            }
            assert!(runs > 0, "nothing could be claimed after migration {version}");
            let made = |entry: &InboxEntry<'_>| {
                assert!(entry.text.contains("email.send"), "{}", entry.text);
                Ok(NewJob { ..job("mail") })
            };
            let drained = store.drain_inbox(&made, 10, now).await.unwrap();
            assert_eq!(drained.jobs.len(), usize::from(version > 1), "the inbox came with migration 2");
        });
    }
}

/// Writes the dumps if `REDRIVE_WRITE_FIXTURE` is set; otherwise makes them and discards them.
#[test]
fn a_dump_of_every_migration_can_be_made() {
    let scratch = Scratch::new();
    for entry in std::fs::read_dir(fixtures().join("format-1")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, scratch.path().join(path.file_name().unwrap())).unwrap();
    }
    runtime().block_on(async {
        let full = new_schema();
        let mut source = FolderSource::open(scratch.path()).unwrap();
        let target = DatabaseTarget::create(options(&full)).await.unwrap();
        copy(&mut source, Box::new(target), &mut |_| {}).await.unwrap();
        let client = plain_client().await;
        for version in 1..=STEPS.len() {
            let mut sql = format!(
                "DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}; SET search_path = {SCHEMA}; \
                 CREATE TABLE migrations (version integer PRIMARY KEY, needs integer NOT NULL, \
                   applied timestamptz NOT NULL DEFAULT now());"
            );
            for (step, number) in STEPS[..version].iter().zip(1..) {
                let needs = if number > 3 { number } else { 1 };
                sql.push_str(&format!("{step};INSERT INTO migrations VALUES ({number}, {needs}, '2026-11-18');"));
            }
            let runs = if version > 3 { ["run_states", "run_messages"].as_slice() } else { &[] };
            for table in ["queue_names", "policies", "specs", "live", "claims", "ended", "counts"].iter().chain(runs) {
                // A table may have got further columns since.
                sql.push_str(&format!(
                    "DO $$ BEGIN EXECUTE (SELECT format('INSERT INTO {table} (%1$s) OVERRIDING SYSTEM VALUE \
                       SELECT %1$s FROM {full}.{table}', string_agg(quote_ident(attname), ', ')) FROM pg_attribute \
                       WHERE attrelid = '{table}'::regclass AND attnum > 0 AND NOT attisdropped); END $$;"
                ));
            }
            sql.push_str(
                "SELECT setval('queue_names_id_seq', 1000), setval('policies_id_seq', 1000), \
                 setval('claims_no_seq', 1000);",
            );
            if version > 3 {
                sql.push_str("SELECT setval('run_messages_number_seq', 1000);");
            }
            if version > 1 {
                sql.push_str("SELECT enqueue('email.send', '[7]', 'mail');");
            }
            client.batch_execute(&sql).await.unwrap_or_else(|error| panic!("migration {version}: {error:?}"));
            if std::env::var_os("REDRIVE_WRITE_FIXTURE").is_some() {
                write(version);
            }
        }
        client.batch_execute(&format!("RESET search_path; DROP SCHEMA {SCHEMA} CASCADE")).await.unwrap();
    });
}

fn write(version: usize) {
    let program = std::env::var("REDRIVE_POSTGRES_BIN").map_or("pg_dump".into(), |bin| format!("{bin}/pg_dump"));
    let mut command = Command::new(program);
    command.args(["--no-owner", "--no-privileges", "--inserts", "--schema", SCHEMA, crate::cluster::address()]);
    let output = command.output().expect("pg_dump, whose folder REDRIVE_POSTGRES_BIN can name");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    // Lines for psql, comments and settings are left out, so that any version reads the dump; but for the one setting
    // that lets a function be made before those that it calls.
    let is_setting = |line: &str| line.starts_with("SET ") && !line.contains("check_function_bodies");
    let is_kept = |line: &&str| !line.starts_with('\\') && !line.starts_with("--") && !is_setting(line);
    let kept: Vec<&str> = text.lines().filter(is_kept).collect();
    std::fs::write(dump(version), kept.join("\n").trim().to_owned() + "\n").unwrap();
}
