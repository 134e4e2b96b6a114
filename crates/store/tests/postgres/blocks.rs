//! Jobs that were claimed at once are stored as one row, and leave it one by one, through any node.

use crate::subject::{new_schema, open, plain_client, runtime};
use crate::work::{claim, decision, failed, job, later, now};
use redrive_policy::Span;
use redrive_store::{
    AttemptOutcome, Job, JobId, LeaseRef, Missing, NewJob, Postgres, Settlement, Spec, State, Store, Token,
};
use std::sync::Arc;
use tokio_postgres::Client;

pub(crate) fn settle(job: &Job, report: AttemptOutcome) -> Settlement {
    Settlement { lease_ref: lease_ref(job), report }
}

fn lease_ref(job: &Job) -> LeaseRef {
    LeaseRef { id: job.id, token: Token::Lease(job.lease.as_ref().unwrap().token) }
}

async fn state(store: &Postgres, id: JobId) -> State {
    store.get(id).await.unwrap().unwrap().state
}

/// The number of rows of jobs that are active.
async fn claims(client: &Client, schema: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {schema}.claims WHERE state = 3"), &[]).await.unwrap().get(0)
}

/// The view of queues says what is in the tables.
pub(crate) async fn assert_counted(client: &Client, schema: &str) {
    let stored = format!(
        "SELECT queue, state, count(*) FROM {schema}.jobs GROUP BY 1, 2 \
         UNION ALL SELECT queue, 'dead_letters', count(*) FROM {schema}.jobs WHERE dead_letter GROUP BY 1 ORDER BY 1, 2"
    );
    let seen = format!(
        "SELECT q.name, s.state, s.jobs FROM {schema}.queues q CROSS JOIN LATERAL (VALUES ('scheduled', scheduled), \
           ('pending', pending), ('available', available), ('active', active), ('retryable', retryable), \
           ('completed', completed), ('cancelled', cancelled), ('discarded', discarded), \
           ('dead_letters', dead_letters)) AS s (state, jobs) WHERE s.jobs <> 0 ORDER BY 1, 2"
    );
    let mut rows = Vec::new();
    for sql in [stored, seen] {
        let found = client.query(&sql, &[]).await.unwrap();
        let row = |row: &tokio_postgres::Row| (row.get(0), row.get(1), row.get(2));
        rows.push(found.iter().map(row).collect::<Vec<(String, String, i64)>>());
    }
    assert_eq!(rows[0], rows[1]);
}

#[test]
fn jobs_of_one_claim_leave_it_in_every_way_and_through_any_node() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    runtime().block_on(async {
        let client = plain_client().await;
        here.enqueue((0..20).map(|_| job("q")).collect(), now()).await.unwrap().unwrap();
        let runs = here.claim(claim("q", 20, 1), now()).await.unwrap().jobs;
        assert_eq!((runs.len(), claims(&client, &schema).await), (20, 1));
        for (place, node) in [&here, &there, &here, &there, &there].into_iter().enumerate() {
            let report = if place == 2 { failed(now()) } else { AttemptOutcome::Done(None) };
            node.settle(vec![settle(&runs[place], report)], now()).await.unwrap().remove(0).unwrap();
        }
        let again = here.settle(vec![settle(&runs[1], AttemptOutcome::Done(None))], now()).await.unwrap().remove(0);
        assert!(again.unwrap().transition().is_none(), "this node takes note that another one has settled it");
        assert_eq!(state(&here, runs[2].id).await, State::Retryable);
        assert_eq!(claims(&client, &schema).await, 1);

        // Heartbeats take jobs out of it, too, those of one call together.
        there.extend(vec![lease_ref(&runs[5]), lease_ref(&runs[6])], None, later(5_000)).await.unwrap();
        here.extend(vec![lease_ref(&runs[7])], Some(Span::from_millis(60_000)), later(5_000)).await.unwrap();
        assert_eq!(claims(&client, &schema).await, 3);
        there.cancel(runs[8].id, later(5_000)).await.unwrap().unwrap();
        let stale =
            here.settle(vec![settle(&runs[8], AttemptOutcome::Done(None))], later(5_000)).await.unwrap().remove(0);
        assert!(stale.is_err(), "{stale:?}");
        let last: Vec<Settlement> = runs[9..12].iter().map(|run| settle(run, AttemptOutcome::Done(None))).collect();
        assert!(here.settle(last, later(5_000)).await.unwrap().iter().all(Result::is_ok));

        // Eight are overdue at 10 s, two at 15 s; one is not before 65 s.
        let overdue = there.reclaim(&|job, _| decision(job, later(11_000)), 3, later(11_000)).await.unwrap();
        assert_eq!(overdue.iter().map(|end| end.job.id).collect::<Vec<_>>(), [runs[12].id, runs[13].id, runs[14].id]);
        assert_eq!(here.next_wake(&redrive_store::Held::new()).await.unwrap(), Some(later(1_000)), "the retry");
        let overdue = here.reclaim(&|job, _| decision(job, later(20_000)), 99, later(20_000)).await.unwrap();
        assert_eq!(overdue.len(), 7);
        assert_eq!(claims(&client, &schema).await, 1);
        assert_eq!(state(&there, runs[7].id).await, State::Active);
        there
            .settle(vec![settle(&runs[7], AttemptOutcome::Done(None))], later(20_000))
            .await
            .unwrap()
            .remove(0)
            .unwrap();
        assert_eq!(claims(&client, &schema).await, 0);
        assert_counted(&client, &schema).await;
    });
}

/// One row has jobs that are alike.
#[test]
fn jobs_that_differ_are_claimed_at_once_into_rows_of_their_own() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    runtime().block_on(async {
        let new = |queue: &str, priority: i32| {
            let plain = job(queue);
            let spec = Spec {
                priority,
                lease: Some(Span::from_millis(1_000 * (9 - priority).unsigned_abs())),
                timeout: (priority == 2).then(|| Span::from_millis(700)),
                expires: (priority == 1).then(|| later(90_000)),
                ..(*plain.spec).clone()
            };
            NewJob { spec: Arc::new(spec), ..plain }
        };
        here.enqueue(vec![new("a", 1), new("b", 2), new("a", 3)], now()).await.unwrap().unwrap();
        let both = redrive_store::Claim { queues: vec!["b".into(), "a".into()], ..claim("a", 9, 4) };
        let runs = here.claim(both, now()).await.unwrap().jobs;
        assert_eq!(runs.iter().map(|run| run.spec.priority).collect::<Vec<_>>(), [2, 3, 1]);
        let client = plain_client().await;
        assert_eq!(claims(&client, &schema).await, 3);
        assert_counted(&client, &schema).await;
        for run in &runs {
            assert_eq!(there.get(run.id).await.unwrap().as_ref(), Some(run));
        }
        let wake = |ms| Some(later(ms));
        for (id, ms) in [(runs[0].id, 700), (runs[1].id, 6_000), (runs[2].id, 8_000)] {
            assert_eq!(there.next_wake(&redrive_store::Held::new()).await.unwrap(), wake(ms));
            let stop = |job: &Job, _| redrive_store::Decision { due: later(99_000), ..decision(job, later(ms)) };
            let overdue = there.reclaim(&stop, 9, later(ms)).await.unwrap();
            assert_eq!(overdue.iter().map(|end| end.job.id).collect::<Vec<_>>(), [id]);
        }
        assert_eq!(claims(&client, &schema).await, 0);
        assert_counted(&client, &schema).await;
    });
}

#[test]
fn sums_of_what_was_counted_stay_the_same_when_nodes_add_them_up() {
    let schema = new_schema();
    let nodes = [Arc::new(open(&schema)), Arc::new(open(&schema))];
    runtime().block_on(async {
        let client = plain_client().await;
        let mut workers = Vec::new();
        for (seed, node) in nodes.iter().cycle().take(4).enumerate() {
            let node = Arc::clone(node);
            workers.push(tokio::spawn(async move {
                for round in 0..700 {
                    let queue = format!("q{}", round % 3);
                    node.enqueue(vec![job(&queue)], now()).await.unwrap().unwrap();
                    for run in node.claim(claim(&queue, 2, seed as u64), now()).await.unwrap().jobs {
                        node.settle(vec![settle(&run, AttemptOutcome::Done(None))], now()).await.unwrap();
                    }
                }
            }));
        }
        for worker in workers {
            worker.await.unwrap();
        }
        nodes[0].pause("q1".into(), true, Missing::Refuse, now()).await.unwrap();
        let rows = format!("SELECT count(*) FROM {schema}.counts");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while client.query_one(&rows, &[]).await.unwrap().get::<_, i64>(0) > 5_000 {
            assert!(std::time::Instant::now() < deadline, "no node has added up what was counted");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_counted(&client, &schema).await;
        let jobs: usize = nodes[1].queues().await.unwrap().iter().map(|queue| queue.jobs()).sum();
        assert_eq!(jobs, 2_800);
    });
}
