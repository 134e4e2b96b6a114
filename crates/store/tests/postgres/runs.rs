//! Runs on several nodes, and what the database shows of them.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{claim, job, later, now};
use redrive_policy::Span;
use redrive_store::{
    AttemptOutcome, LeaseRef, MessageBody, NewRun, PendingRuns, Postgres, Run, RunId, RunStep, Settlement, Signal,
    Store, Token,
};
use std::sync::Arc;

fn run(number: u128) -> NewRun {
    NewRun {
        id: RunId::new(now(), number),
        program: "flow".into(),
        version: 1,
        state: Arc::from(*b"{}"),
        key: Some(format!("key {number}").into()),
        parent: None,
        depth: 0,
        seed: 7,
    }
}

async fn started(store: &Postgres, number: u128) -> Run {
    store.start_runs(vec![run(number)], now()).await.unwrap().unwrap().remove(0)
}

async fn stepped(store: &Postgres, step: RunStep) -> Run {
    store.advance(vec![step], later(1)).await.unwrap().remove(0).unwrap().run
}

fn pending(only: Option<Vec<RunId>>) -> PendingRuns {
    PendingRuns { programs: vec![("flow".into(), 1)], only, limit: 100, messages: 1_000 }
}

#[test]
fn the_view_shows_runs_in_words() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let (goes_on, failed) = (started(&store, 1).await, started(&store, 2).await);
        let signal = Signal { name: "go".into(), body: Arc::default() };
        store.signal(goes_on.id, signal, later(2)).await.unwrap().unwrap();
        stepped(&store, RunStep { end: Some((false, Arc::from(*b"{}"))), ..RunStep::of(&failed) }).await;
        let client = plain_client().await;
        let shown =
            format!("SELECT id::text, program, state, steps, key, messages, ended_at FROM {schema}.runs ORDER BY id");
        let rows = client.query(&shown, &[]).await.unwrap();
        let word = |row: &tokio_postgres::Row| {
            let (id, program, state): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let (steps, key, messages): (i64, Option<String>, i64) = (row.get(3), row.get(4), row.get(5));
            let ended = row.get::<_, Option<std::time::SystemTime>>(6).is_some();
            format!("{id} {program} {state} {steps} {key:?} {messages} {ended}")
        };
        let words: Vec<String> = rows.iter().map(word).collect();
        let expected = [
            format!("{} flow running 0 Some(\"key 1\") 1 false", goes_on.id),
            format!("{} flow failed 1 None 0 true", failed.id),
        ];
        assert_eq!(words, expected);
    });
}

#[test]
fn jobs_that_end_on_one_node_are_told_to_runs_that_advance_on_another() {
    let schema = new_schema();
    let (one, other) = (open(&schema), open(&schema));
    runtime().block_on(async {
        let new = started(&one, 1).await;
        let jobs = (0..40).map(|child| (child, job("q"))).collect();
        let mut run = stepped(&one, RunStep { jobs, ..RunStep::of(&new) }).await;
        let claimed = one.claim(claim("q", 40, 3), later(1)).await.unwrap().jobs;
        let done = |job: &redrive_store::Job| Settlement {
            lease_ref: LeaseRef { id: job.id, token: Token::Lease(job.lease.as_ref().unwrap().token) },
            report: AttemptOutcome::Done(None),
        };
        // Ten at a time: by the node that claimed them, and by the other, while that advances the run.
        let mut told = Vec::new();
        for (turn, some) in claimed.chunks(10).enumerate() {
            let store = if turn % 2 == 0 { &one } else { &other };
            let settled = store.settle(some.iter().map(done).collect(), later(2));
            let found = other.pending_runs(pending(Some(vec![run.id])), later(2));
            let (settled, found) = tokio::join!(settled, found);
            assert!(settled.unwrap().iter().all(Result::is_ok));
            for found in found.unwrap() {
                let consumed = found.messages.iter().map(|message| message.number).collect();
                run = stepped(&other, RunStep { consumed, ..RunStep::of(&found.run) }).await;
                told.extend(found.messages);
            }
        }
        // None, where the last look came after the last report.
        let left = other.pending_runs(pending(None), later(2)).await.unwrap();
        told.extend(left.into_iter().flat_map(|found| found.messages));
        let child = |body: MessageBody| if let MessageBody::JobEnded { child, .. } = body { child } else { u64::MAX };
        let mut children: Vec<u64> = told.into_iter().map(|message| child(message.body)).collect();
        children.sort_unstable();
        assert_eq!(children, (0..40).collect::<Vec<u64>>());
    });
}

#[test]
fn a_message_whose_run_was_deleted_meanwhile_is_deleted_too() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let new = started(&store, 1).await;
        stepped(&store, RunStep { end: Some((true, Arc::default())), ..RunStep::of(&new) }).await;
        let client = plain_client().await;
        let lost = format!("INSERT INTO {schema}.run_messages (run, at_us, body) VALUES (gen_random_uuid(), 1, '')");
        client.batch_execute(&lost).await.unwrap();
        assert_eq!(store.pending_runs(pending(None), later(2)).await.unwrap(), []);
        assert_eq!(store.next_run(vec![("flow".into(), 1)]).await.unwrap(), None);
        assert_eq!(store.prune_runs(Span::ZERO, 10, later(2)).await.unwrap(), 1);
        let left = client.query_one(&format!("SELECT count(*) FROM {schema}.run_messages"), &[]).await.unwrap();
        assert_eq!(left.get::<_, i64>(0), 0);
    });
}
