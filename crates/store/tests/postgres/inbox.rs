//! Jobs that applications enqueue in their own transactions.

use crate::subject::{cut, database_time, new_schema, open, plain_client, runtime};
use crate::work::{job, now};
use redrive_store::postgres::Postgres;
use redrive_store::{Drained, InboxEntry, JobId, NewJob, State, Store};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio_postgres::Client;
use uuid::Uuid;

/// Enqueues a job; returns the id that the application gets.
async fn enqueue(app: &Client, schema: &str, parameters: &str) -> JobId {
    let sql = format!("SELECT {schema}.enqueue({parameters})");
    let id: Uuid = app.query_one(&sql, &[]).await.unwrap().get(0);
    JobId::from_bytes(id.into_bytes())
}

/// The message with which the function refuses a job.
async fn refused(app: &Client, schema: &str, parameters: &str) -> String {
    let answer = app.query_one(&format!("SELECT {schema}.enqueue({parameters})"), &[]).await;
    let error = answer.expect_err(parameters);
    error.as_db_error().unwrap_or_else(|| panic!("{error}")).message().to_owned()
}

async fn waiting(app: &Client, schema: &str) -> i64 {
    app.query_one(&format!("SELECT count(*) FROM {schema}.inbox"), &[]).await.unwrap().get(0)
}

fn reader(_: &InboxEntry<'_>) -> Result<NewJob, String> {
    Ok(job("q"))
}

async fn drained(node: &Postgres) -> Drained {
    node.drain_inbox(&reader, 100, now()).await.unwrap()
}

#[test]
fn a_job_exists_if_and_only_if_the_transaction_of_the_application_is_committed() {
    let schema = new_schema();
    let nodes = [open(&schema), open(&schema)];
    runtime().block_on(async {
        let mut app = plain_client().await;
        let left = app.transaction().await.unwrap();
        let gone: Uuid = left.query_one(&format!("SELECT {schema}.enqueue('a')"), &[]).await.unwrap().get(0);
        assert_eq!(drained(&nodes[0]).await, Drained::default(), "it is not committed yet");
        left.rollback().await.unwrap();
        assert_eq!(drained(&nodes[0]).await, Drained::default(), "it never will be");
        assert_eq!(nodes[0].get(JobId::from_bytes(gone.into_bytes())).await.unwrap(), None);

        let kept = app.transaction().await.unwrap();
        let id: Uuid = kept.query_one(&format!("SELECT {schema}.enqueue('a')"), &[]).await.unwrap().get(0);
        kept.commit().await.unwrap();
        let taken = drained(&nodes[1]).await;
        assert_eq!(taken.jobs.iter().map(|job| job.id.to_string()).collect::<Vec<_>>(), [id.to_string()]);
        let seen = nodes[0].get(taken.jobs[0].id).await.unwrap();
        assert_eq!(seen.as_ref(), taken.jobs.first(), "the other node has it too");
        assert_eq!(waiting(&app, &schema).await, 0);
    });
}

#[test]
fn ids_are_of_version_7_by_the_clock_of_the_database_and_ascend() {
    let schema = new_schema();
    let _node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let before_ms = database_time().await / 1_000;
        let mut ids = Vec::new();
        for _ in 0..50 {
            ids.push(enqueue(&app, &schema, "'a'").await);
        }
        let after_ms = database_time().await / 1_000;
        for id in &ids {
            let id = id.to_string().parse::<JobId>().expect("the spelling and version of a job id");
            let at_ms = id.to_bytes()[..6].iter().fold(0_i64, |ms, byte| ms << 8 | i64::from(*byte));
            assert!((before_ms..=after_ms).contains(&at_ms), "{id}: {before_ms} {after_ms}");
        }
        assert!(ids.is_sorted(), "one after the other: {ids:?}");
    });
}

/// The connection of the node breaks between reading an entry and storing its job: the entry is still there.
#[test]
fn a_node_that_is_cut_off_in_the_middle_neither_loses_nor_doubles_a_job() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let id = enqueue(&app, &schema, "'a'").await;
        let (cuts, first) = (AtomicBool::new(false), AtomicBool::new(true));
        let cutting = |entry: &InboxEntry<'_>| {
            if first.swap(false, Ordering::SeqCst) {
                let cut = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(cut(&schema)));
                cuts.store(cut > 0, Ordering::SeqCst);
            }
            reader(entry)
        };
        let mut taken = node.drain_inbox(&cutting, 10, now()).await.unwrap().jobs;
        assert!(cuts.load(Ordering::SeqCst), "the connection was cut while the entry was being read");
        // The database may need a moment to notice that the connection is gone, and to release the lock on the entry.
        while waiting(&app, &schema).await > 0 {
            taken.extend(drained(&node).await.jobs);
        }
        assert_eq!(taken.iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
        assert_eq!(waiting(&app, &schema).await, 0);
        assert_eq!(drained(&node).await, Drained::default());
    });
}

/// Four nodes drain the inbox while all their connections are cut again and again.
#[test]
fn every_inbox_entry_becomes_one_job_whatever_happens_to_the_connections() {
    const ENTRIES: usize = 300;
    let schema = new_schema();
    let nodes: Vec<Arc<Postgres>> = (0..4).map(|_| Arc::new(open(&schema))).collect();
    runtime().block_on(async {
        let app = plain_client().await;
        let stop = Arc::new(AtomicBool::new(false));
        let takers: Vec<_> =
            nodes.iter().map(|node| tokio::spawn(taker(Arc::clone(node), Arc::clone(&stop)))).collect();
        let mut told = BTreeSet::new();
        for number in 0..ENTRIES {
            told.insert(enqueue(&app, &schema, "'a'").await);
            if number % 20 == 0 {
                cut(&schema).await;
            }
        }
        while waiting(&app, &schema).await > 0 {
            tokio::task::yield_now().await;
        }
        stop.store(true, Ordering::SeqCst);
        for taker in takers {
            taker.await.unwrap();
        }
        let sql = format!("SELECT id FROM {schema}.specs");
        let kept: Vec<Uuid> = app.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
        let kept: BTreeSet<JobId> = kept.into_iter().map(|id| JobId::from_bytes(id.into_bytes())).collect();
        assert_eq!(kept, told);
        assert_eq!(nodes[0].queues().await.unwrap()[0].count(State::Available), ENTRIES);
    });
}

async fn taker(node: Arc<Postgres>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::SeqCst) {
        // A cut may hit the commit, of which nothing is known then; what it left is seen at the end.
        let _ = node.drain_inbox(&reader, 7, now()).await;
    }
}

#[test]
fn what_no_job_can_be_made_of_is_set_aside_with_the_reason_and_holds_up_no_other() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let bad = enqueue(&app, &schema, "'bad'").await;
        let worse = enqueue(&app, &schema, "'worse'").await;
        let huge = enqueue(&app, &schema, "'huge'").await;
        let good = enqueue(&app, &schema, "'good'").await;
        let foreign = format!("INSERT INTO {schema}.inbox SELECT gen_random_uuid(), 1, '{{}}' RETURNING id");
        let foreign: Uuid = app.query_one(&foreign, &[]).await.unwrap().get(0);
        let foreign = JobId::from_bytes(foreign.into_bytes());
        let strict = |entry: &InboxEntry<'_>| match entry.text {
            text if text.contains("\"bad\"") => Err("it is\0bad".to_owned()),
            text if text.contains("\"worse\"") => panic!("a bug of the reader"),
            // The index over the names of queues takes no text that long.
            text if text.contains("\"huge\"") => Ok(job(&incompressible(9_000))),
            _ => reader(entry),
        };
        let taken = node.drain_inbox(&strict, 10, now()).await.unwrap();
        assert_eq!(taken.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [good]);
        let refused: BTreeSet<JobId> = taken.refused.iter().map(|(id, _)| *id).collect();
        assert_eq!(refused, [bad, worse, huge, foreign].into());
        app.execute(&format!("DELETE FROM {schema}.inbox WHERE reason LIKE '%version 7%'"), &[]).await.unwrap();

        let sql = format!("SELECT id, reason FROM {schema}.inbox WHERE refused_us IS NOT NULL ORDER BY id");
        let rows = app.query(&sql, &[]).await.unwrap();
        let reasons: Vec<String> = rows.iter().map(|row| row.get(1)).collect();
        assert!(
            reasons[0].starts_with("it is") && reasons[1].contains("panicked") && reasons[2].contains("index"),
            "{reasons:?}"
        );
        assert_eq!(
            node.drain_inbox(&strict, 10, now()).await.unwrap(),
            Drained::default(),
            "it is not looked at again"
        );

        app.execute(&format!("UPDATE {schema}.inbox SET refused_us = NULL, reason = NULL"), &[]).await.unwrap();
        assert_eq!(drained(&node).await.jobs.len(), 3, "once somebody has seen to it, it is");
    });
}

/// A text that PostgreSQL cannot make shorter.
fn incompressible(length: usize) -> String {
    let mut bits = 7_u64;
    let entry = |_| {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + (bits >> 59) as u8 % 26)
    };
    (0..length).map(entry).collect()
}

#[test]
fn a_key_makes_one_job_and_the_application_gets_its_id() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let keyed = "'a', options => '{\"idempotency_key\": \"order 7\"}'";
        let (first, _second) = (enqueue(&app, &schema, keyed).await, enqueue(&app, &schema, keyed).await);
        let open = |_: &InboxEntry<'_>| Ok(NewJob { idempotency_key: Some("order 7".into()), ..job("q") });
        let taken = node.drain_inbox(&open, 10, now()).await.unwrap();
        assert_eq!((taken.jobs.len(), taken.known, taken.refused.len()), (1, 1, 0));
        assert_eq!(taken.jobs[0].id, first);
        assert_eq!(enqueue(&app, &schema, keyed).await, first, "it is kept already");
        assert_eq!(waiting(&app, &schema).await, 0);
    });
}

#[test]
fn a_job_of_the_wrong_shape_or_size_is_refused_at_once_and_all_of_it_is_listed() {
    let schema = new_schema();
    let _node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let said = refused(&app, &schema, "NULL, '{}', options => '[1]', meta => '\"x\"'").await;
        for part in [
            "type: found nothing; allowed is the type of the job, such as 'email.send'",
            "args: found {}; allowed is an array of arguments",
            "options: found [1]; allowed is an object",
            "meta: found \"x\"; allowed is an object",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
        assert!(refused(&app, &schema, "NULL").await.contains("type: found nothing"));
        let two = refused(&app, &schema, "'a', queue => 'x', options => '{\"queue\": \"y\"}'").await;
        assert!(two.contains("found \"x\", and \"y\" in options"), "{two}");
        assert!(refused(&app, &schema, "'a', NULL").await.contains("args: found null"));
        let long = refused(&app, &schema, "'a', jsonb_build_array(repeat('x', 1048576))").await;
        assert!(long.contains("found 1048") && long.contains("1048576 bytes; store large data elsewhere"), "{long}");
        assert_eq!(waiting(&app, &schema).await, 0);
        enqueue(&app, &schema, "'a', jsonb_build_array(repeat('x', 1048000)), options => NULL, meta => NULL").await;
        assert_eq!(waiting(&app, &schema).await, 1, "what is absent is an empty object");
    });
}

/// The number 7 is not the text "7": what is no key finds no job, and is left to the decoder.
#[test]
fn a_key_that_is_no_text_is_not_looked_up() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let first = enqueue(&app, &schema, "'a', options => '{\"idempotency_key\": \"7\"}'").await;
        let open = |_: &InboxEntry<'_>| Ok(NewJob { idempotency_key: Some("7".into()), ..job("q") });
        node.drain_inbox(&open, 10, now()).await.unwrap();
        let second = enqueue(&app, &schema, "'a', options => '{\"idempotency_key\": 7}'").await;
        assert_ne!(first, second);
        assert_eq!(waiting(&app, &schema).await, 1);
    });
}

/// An application with no privilege but to call the function.
#[test]
fn the_role_of_an_application_can_call_the_function_and_nothing_else() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let role = format!("app_{schema}");
        let set_up = format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT EXECUTE ON FUNCTION {schema}.enqueue TO {role}; GRANT CREATE, TEMPORARY ON DATABASE postgres TO {role}"
        );
        app.batch_execute(&set_up).await.unwrap();
        app.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
        // What it makes itself must not be taken for the tables of the store.
        app.batch_execute("CREATE TEMP TABLE inbox (id uuid, at_us bigint, document jsonb); CREATE TEMP TABLE specs (id uuid, key bytea)")
            .await
            .unwrap();
        let keyed = "'a', options => '{\"idempotency_key\": \"k\"}'";
        let id = enqueue(&app, &schema, keyed).await;
        for forbidden in [
            format!("SELECT count(*) FROM {schema}.inbox"),
            format!("DELETE FROM {schema}.live"),
            format!("INSERT INTO {schema}.inbox SELECT gen_random_uuid(), 1, '{{}}'"),
        ] {
            let error = app.query(&forbidden, &[]).await.expect_err(&forbidden);
            assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{forbidden}: {error}");
        }
        assert_eq!(app.query_one("SELECT count(*) FROM pg_temp.inbox", &[]).await.unwrap().get::<_, i64>(0), 0);
        assert_eq!(drained(&node).await.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [id]);
        let others = format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}");
        app.batch_execute(&others).await.unwrap();
    });
}

#[test]
fn arguments_are_passed_on_unchanged_whatever_they_hold() {
    let schema = new_schema();
    let node = open(&schema);
    runtime().block_on(async {
        let app = plain_client().await;
        let nasty = r#"'); DROP TABLE inbox; -- $1 %s \" \\ ü 🦀 ${x}"#;
        let sql = format!(
            "SELECT {schema}.enqueue($1::text, jsonb_build_array($1::text), meta => jsonb_build_object($1::text, 1))"
        );
        app.query_one(&sql, &[&nasty]).await.unwrap();
        let texts = Mutex::new(Vec::new());
        let open = |entry: &InboxEntry<'_>| {
            texts.lock().unwrap().push(entry.text.to_owned());
            reader(entry)
        };
        node.drain_inbox(&open, 10, now()).await.unwrap();
        let texts = texts.into_inner().unwrap();
        let document: serde_json::Value = serde_json::from_str(&texts[0]).unwrap();
        assert_eq!((&document["type"], &document["args"][0]), (&nasty.into(), &nasty.into()));
        assert_eq!(document["meta"][nasty], 1);
        let wrong = refused(&app, &schema, "NULL, '\"x''); DROP TABLE inbox; --\"'").await;
        assert!(wrong.contains("args: found \"x'); DROP TABLE inbox; --\""), "{wrong}");
    });
}
