//! A sweep does not read the jobs of held queues.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{job, later, now};
use redrive_store::{Held, JobId, NewJob, Start, Store};

const HELD: usize = 60_000;

/// A store in its schema, until [`close`].
type Open = (redrive_store::Postgres, String);

/// Ends all connections of a store; returns how many rows of jobs, and entries of their indexes, were ever read,
/// which the database counts when a connection ends.
async fn close((store, schema): Open) -> i64 {
    drop(store);
    let client = plain_client().await;
    let end = "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1";
    let ended: Vec<i32> = client.query(end, &[&schema]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let left = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1)";
    while client.query_one(left, &[&ended]).await.unwrap().get::<_, i64>(0) > 0 {}
    let sql = "SELECT seq_tup_read + idx_tup_fetch + (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes i \
               WHERE i.relid = t.relid) FROM pg_stat_user_tables t WHERE schemaname = $1 AND relname = 'live'";
    client.query_one(sql, &[&schema]).await.unwrap().get(0)
}

fn due(queue: &str, ms: u32) -> NewJob {
    NewJob { start: Start::Scheduled(later(ms)), ..job(queue) }
}

#[test]
fn sixty_thousand_held_jobs_are_not_read_by_a_sweep() {
    runtime().block_on(async {
        let schema = new_schema();
        let store = open(&schema);
        let mut waiting: Vec<JobId> = Vec::new();
        for step in 0..12 {
            let jobs: Vec<NewJob> = (0..HELD / 12).map(|_| due("held", 1 + step)).collect();
            waiting.extend(jobs.iter().map(|job| job.id));
            store.enqueue(jobs, now()).await.unwrap().unwrap();
        }
        let others: Vec<NewJob> = (0..3).map(|_| due("open", 900)).collect();
        let names: Vec<JobId> = others.iter().map(|job| job.id).collect();
        store.enqueue(others, now()).await.unwrap().unwrap();
        let before = close((store, schema.clone())).await;

        let (store, held) = (open(&schema), Held::of_queues(["held".into()]));
        assert_eq!(store.next_wake(&held).await.unwrap(), Some(later(900)));
        let promoted = store.promote(&held, 1_000, later(900)).await.unwrap();
        assert_eq!(promoted.iter().map(|due| due.job.id).collect::<Vec<_>>(), names);
        // The plan must not depend on what the planner knows of the table.
        plain_client().await.batch_execute(&format!("ANALYZE {schema}.live")).await.unwrap();
        for _ in 0..20 {
            assert_eq!(store.promote(&held, 1_000, later(900)).await.unwrap(), []);
            assert_eq!(store.next_wake(&held).await.unwrap(), None);
        }
        let read = close((store, schema.clone())).await - before;
        assert!(read < 500, "{read} rows and entries were read by 21 sweeps, beside {HELD} jobs that are held back");

        let store = open(&schema);
        let promoted = store.promote(&Held::new(), 1_000, later(900)).await.unwrap();
        assert_eq!(promoted.iter().map(|due| due.job.id).collect::<Vec<_>>(), waiting[..1_000], "once they are free");
        let read = close((store, schema)).await - before - read;
        assert!(read < 20_000, "{read} rows and entries were read for a step of 1,000 of {HELD} jobs");
    });
}
