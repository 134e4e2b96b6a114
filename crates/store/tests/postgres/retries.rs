//! Jobs that fail together and are due together wait in one row, and are promoted, cancelled and expired as others are.

use crate::blocks::{assert_counted, settle};
use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{claim, failed, job, later, now};
use redrive_policy::Moment;
use redrive_store::{
    AttemptOutcome, Bounds, Filter, Held, Job, JobId, Limits, NewJob, OnLimit, OwnLimit, Page, Postgres, Spec, State,
    Store,
};
use std::sync::Arc;
use tokio_postgres::Client;

/// How many rows and jobs of each state there are in `claims`, and how many rows in `live`.
async fn rows(client: &Client, schema: &str) -> (Vec<(i16, i64, i64)>, i64) {
    let together = format!("SELECT state, count(*), sum(jobs)::bigint FROM {schema}.claims GROUP BY 1 ORDER BY 1");
    let together = client.query(&together, &[]).await.unwrap();
    let alone = client.query_one(&format!("SELECT count(*) FROM {schema}.live"), &[]).await.unwrap().get(0);
    (together.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect(), alone)
}

/// Enqueues these jobs, claims all of them, and reports at this time that all have failed.
async fn fail_together(store: &Postgres, jobs: Vec<NewJob>, at: Moment) -> Vec<JobId> {
    let count = jobs.len();
    let ids = jobs.iter().map(|job| job.id).collect();
    store.enqueue(jobs, now()).await.unwrap().unwrap();
    let runs = store.claim(claim("q", count, 1), now()).await.unwrap().jobs;
    assert_eq!(runs.len(), count);
    let reports = runs.iter().map(|run| settle(run, failed(at))).collect();
    assert!(store.settle(reports, at).await.unwrap().iter().all(Result::is_ok));
    ids
}

fn ids(jobs: &[Job]) -> Vec<JobId> {
    jobs.iter().map(|job| job.id).collect()
}

#[test]
fn jobs_that_fail_together_leave_their_row_in_every_way_and_in_order() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    runtime().block_on(async {
        let client = plain_client().await;
        let all = fail_together(&here, (0..12).map(|_| job("q")).collect(), now()).await;
        assert_eq!(rows(&client, &schema).await, (vec![(4, 1, 12)], 0));
        let listed = there.list(Filter::default(), Page::new(0, 20)).await.unwrap().jobs;
        assert_eq!(listed.len(), 12);
        assert!(listed.iter().all(|job| job.state == State::Retryable && job.failures.len() == 1));
        let sql = format!("SELECT count(*) FROM {schema}.jobs WHERE state = 'retryable' AND due_at > created_at");
        assert_eq!(client.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0), 12);
        assert_eq!(there.next_wake(&Held::new()).await.unwrap(), Some(later(1_000)));

        there.cancel(all[1], later(1)).await.unwrap().unwrap();
        assert!(here.promote(&Held::new(), 3, later(999)).await.unwrap().is_empty());
        let promoted = here.promote(&Held::new(), 3, later(1_000)).await.unwrap();
        let moved: Vec<JobId> = promoted.iter().map(|one| one.job.id).collect();
        assert_eq!(moved, [all[0], all[2], all[3]]);
        assert_eq!(rows(&client, &schema).await, (vec![(4, 1, 8)], 3));
        assert_eq!(there.promote(&Held::new(), 4, later(1_000)).await.unwrap().len(), 4);
        assert_eq!(rows(&client, &schema).await, (vec![(4, 1, 4)], 7));
        assert_eq!(there.promote(&Held::new(), 99, later(1_001)).await.unwrap().len(), 4);
        assert_eq!(rows(&client, &schema).await, (Vec::new(), 11));
        assert_counted(&client, &schema).await;

        let first = there.claim(claim("q", 2, 2), later(1_002)).await.unwrap().jobs;
        assert_eq!(ids(&first), [all[0], all[2]]);
        let second = here.claim(claim("q", 7, 3), later(1_002)).await.unwrap().jobs;
        assert_eq!(ids(&second), all[3..10]);
        here.cancel(all[10], later(1_003)).await.unwrap().unwrap();
        let third = there.claim(claim("q", 9, 4), later(1_004)).await.unwrap().jobs;
        assert_eq!(ids(&third), [all[11]]);
        assert_eq!(third[0].failures.len(), 1);
        for run in first.iter().chain(&second).chain(&third) {
            assert_eq!(here.get(run.id).await.unwrap().as_ref(), Some(run));
            let ack = settle(run, AttemptOutcome::Done(None));
            there.settle(vec![ack], later(1_005)).await.unwrap().remove(0).unwrap();
        }
        assert_eq!(rows(&client, &schema).await, (Vec::new(), 0));
        assert_counted(&client, &schema).await;
    });
}

#[test]
fn jobs_that_wait_together_expire_and_rows_whose_ids_overlap_are_promoted_in_the_order_of_ids() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let client = plain_client().await;
        let new = |expires: bool| {
            let plain = job("q");
            let spec = Spec { expires: expires.then(|| later(5_000)), ..(*plain.spec).clone() };
            NewJob { spec: Arc::new(spec), ..plain }
        };
        let all = fail_together(&store, (0..8).map(|place| new(place % 2 == 0)).collect(), now()).await;
        assert_eq!(rows(&client, &schema).await, (vec![(4, 2, 8)], 0));
        assert_eq!(store.promote(&Held::new(), 6, later(1_000)).await.unwrap().len(), 6);
        assert_eq!(rows(&client, &schema).await, (vec![(4, 2, 2)], 6));
        assert_eq!(ids(&store.claim(claim("q", 3, 2), later(1_000)).await.unwrap().jobs), all[..3]);
        // Of those that expire one is available, and one waits for its retry.
        let expired = store.promote(&Held::new(), 99, later(5_000)).await.unwrap();
        let ended: Vec<JobId> =
            expired.iter().filter(|one| one.job.state == State::Discarded).map(|one| one.job.id).collect();
        assert_eq!(ended, [all[4], all[6]]);
        assert_eq!(ids(&store.claim(claim("q", 9, 3), later(5_001)).await.unwrap().jobs), [all[3], all[5], all[7]]);
        assert_counted(&client, &schema).await;
    });
}

#[test]
fn jobs_with_limits_that_wait_together_do_not_count_as_active() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let client = plain_client().await;
        let new = |_| {
            let plain = job("q");
            let bounds = Bounds { concurrency: Some(2), ..Bounds::default() };
            let own = Some(OwnLimit { key: "k".into(), bounds, on_limit: OnLimit::default() });
            let limits = Some(Arc::new(Limits { own, by_kind: false }));
            NewJob { spec: Arc::new(Spec { limits, ..(*plain.spec).clone() }), ..plain }
        };
        let jobs: Vec<NewJob> = (0..4).map(new).collect();
        let all: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        store.enqueue(jobs, now()).await.unwrap().unwrap();
        let runs = store.claim(claim("q", 9, 1), now()).await.unwrap().jobs;
        assert_eq!(ids(&runs), all[..2]);
        let reports = runs.iter().map(|run| settle(run, failed(now()))).collect();
        assert!(store.settle(reports, now()).await.unwrap().iter().all(Result::is_ok));
        assert_eq!(rows(&client, &schema).await, (vec![(4, 1, 2)], 2));
        assert_eq!(ids(&store.claim(claim("q", 9, 2), later(1)).await.unwrap().jobs), all[2..]);
        assert_eq!(store.promote(&Held::new(), 9, later(1_000)).await.unwrap().len(), 2);
        assert!(store.claim(claim("q", 9, 3), later(1_000)).await.unwrap().jobs.is_empty());
        assert_counted(&client, &schema).await;
    });
}
