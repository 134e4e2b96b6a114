//! A real deadlock: the store waits for another session, which waits for the store.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{claim, job, now};
use redrive_store::postgres::Postgres;
use redrive_store::{AttemptOutcome, JobId, LeaseRef, NewJob, Settlement, State, Store, Token};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// The longest time that a test waits for anything, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

async fn until(client: &Client, sql: &str, what: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while !client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < deadline, "waited {TIMEOUT:?} in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Locks these jobs in the open transaction.
fn lock(schema: &str, ids: &[JobId]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("'{id}'")).collect();
    format!("SELECT FROM {schema}.claims WHERE ids[1] IN ({}) FOR UPDATE", ids.join(", "))
}

/// Settles three jobs while another session has locked the second one and then locks the others: whichever the store
/// locks first, both wait for each other.
async fn settled_against_another_session(schema: &str, claims: &Postgres, settles: &Arc<Postgres>) {
    let jobs: Vec<NewJob> = (0..3).map(|_| job("q")).collect();
    let ids: Vec<JobId> = jobs.iter().map(|new| new.id).collect();
    claims.enqueue(jobs, now()).await.unwrap().unwrap();
    for _ in 0..3 {
        assert_eq!(claims.claim(claim("q", 1, 1), now()).await.unwrap().jobs.len(), 1, "each in a claim of its own");
    }

    let (watcher, other) = (plain_client().await, plain_client().await);
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let before: i64 = watcher.query_one(deadlocks, &[]).await.unwrap().get(0);
    // The session that detects the deadlock first is cancelled: not this one.
    other.batch_execute("BEGIN; SET LOCAL deadlock_timeout = '100s'").await.unwrap();
    other.batch_execute(&lock(schema, &ids[1..2])).await.unwrap();
    let settlements = ids.iter().map(|id| {
        let lease_ref = LeaseRef { id: *id, token: Token::Worker("ada".into()) };
        Settlement { lease_ref, report: AttemptOutcome::Done(None) }
    });
    let (node, settlements) = (Arc::clone(settles), settlements.collect());
    let settling = tokio::spawn(async move { node.settle(settlements, now()).await });
    let waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name";
    until(&watcher, &format!("{waits} = '{schema}'"), "the store waits for the other").await;
    other.batch_execute(&lock(schema, &[ids[0], ids[2]])).await.unwrap();
    let counted = format!("SELECT deadlocks > {before} FROM pg_stat_database WHERE datname = current_database()");
    until(&watcher, &counted, "the database has seen a deadlock").await;
    other.batch_execute("COMMIT").await.unwrap();

    for answer in settling.await.unwrap().unwrap() {
        assert_eq!(answer.unwrap().job().state, State::Completed);
    }
}

#[test]
fn a_deadlock_is_overcome_by_the_node_that_the_jobs_were_claimed_from_and_by_any_other() {
    let schema = new_schema();
    let [here, there] = [Arc::new(open(&schema)), Arc::new(open(&schema))];
    runtime().block_on(async {
        settled_against_another_session(&schema, &here, &here).await;
        settled_against_another_session(&schema, &here, &there).await;
    });
}
