//! Jobs that ended at once are stored as one row, and leave it one by one, through any node.

use crate::blocks::{assert_counted, settle};
use crate::subject::{new_schema, open, options, plain_client, runtime};
use crate::work::{claim, failed, job, later, now};
use redrive_policy::{Disposition, Moment, Policy, Span};
use redrive_store::postgres::UnreadableJobs;
use redrive_store::{
    AttemptOutcome, Entry, Filter, JobId, NewJob, Page, Postgres, Redrive, Retention, Spec, State, Store,
};
use std::sync::Arc;
use tokio_postgres::Client;

const RETENTION: Retention = Retention { finished: Span::ZERO, dead: Span::ZERO };

/// The jobs that each row still has, in the order of their ends.
async fn rows(client: &Client, schema: &str) -> Vec<i16> {
    let sql = format!("SELECT jobs FROM {schema}.ended ORDER BY finished_us, ids[1], jobs");
    client.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Jobs of a queue that were run together and acked at this moment, in the order of their ids.
async fn acked(store: &Postgres, queue: &str, count: usize, at: Moment) -> Vec<JobId> {
    let jobs: Vec<NewJob> = (0..count).map(|_| job(queue)).collect();
    let ids = jobs.iter().map(|new| new.id).collect();
    store.enqueue(jobs, now()).await.unwrap().unwrap();
    again(store, queue, count, at).await;
    ids
}

async fn again(store: &Postgres, queue: &str, count: usize, at: Moment) {
    let runs = store.claim(claim(queue, count, 1), now()).await.unwrap().jobs;
    let acks = runs.iter().map(|run| settle(run, AttemptOutcome::Done(None))).collect();
    let answers = store.settle(acks, at).await.unwrap();
    assert!(answers.len() == count && answers.iter().all(Result::is_ok), "{answers:?}");
}

async fn listed(store: &Postgres) -> Vec<JobId> {
    let listed = store.list(Filter::default(), Page::new(0, 100)).await.unwrap();
    listed.jobs.iter().map(|job| job.id).rev().collect()
}

/// One after the other: which of them are there.
async fn found(store: &Postgres, ids: &[JobId]) -> Vec<bool> {
    let mut found = Vec::new();
    for id in ids {
        found.push(store.get(*id).await.unwrap().is_some());
    }
    found
}

#[test]
fn jobs_of_one_row_leave_it_in_every_way_and_through_any_node() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    runtime().block_on(async {
        let client = plain_client().await;
        let ids = acked(&here, "q", 12, later(10)).await;
        assert_eq!(rows(&client, &schema).await, [12]);
        assert_eq!(found(&there, &ids).await, [true; 12]);
        assert_eq!(listed(&there).await, ids);

        there.remove(ids[3]).await.unwrap().unwrap();
        assert_eq!(there.redrive(ids[5], Redrive::default(), later(20)).await.unwrap().unwrap().job.attempt, 0);
        assert!(here.remove(ids[3]).await.unwrap().is_err(), "it is gone");
        assert_eq!(rows(&client, &schema).await, [10]);
        assert_eq!(here.get(ids[5]).await.unwrap().unwrap().state, State::Available);
        assert_counted(&client, &schema).await;

        // The one that was redriven ends once more, and is in another row then.
        again(&here, "q", 1, later(30)).await;
        assert_eq!(rows(&client, &schema).await, [10, 1]);
        let left: Vec<JobId> = ids.iter().copied().filter(|id| *id != ids[3]).collect();
        assert_eq!(listed(&here).await, left);
        there.remove(ids[5]).await.unwrap().unwrap();
        assert_eq!(rows(&client, &schema).await, [10]);

        // Two that cannot be read, of the same row.
        let damage = format!("UPDATE {schema}.ended SET rests[1] = '', rests[9] = ''");
        assert_eq!(client.execute(&damage, &[]).await.unwrap(), 1);
        let page = here.list(Filter::default(), Page::new(0, 100)).await.unwrap();
        assert_eq!(page.jobs.len(), 8);
        assert_eq!(rows(&client, &schema).await, [8]);
        let unreadable = UnreadableJobs::open(options(&schema)).await.unwrap();
        assert_eq!(unreadable.list(9).await.unwrap().total, 2);
        let first = there.list(Filter::default(), Page::new(0, 3)).await.unwrap();
        let rest = there.list(Filter::default(), Page { after: first.next.unwrap().after, ..Page::new(0, 9) });
        assert_eq!(rest.await.unwrap().jobs.len(), 5, "a list goes on behind what was set aside");
        assert_counted(&client, &schema).await;
        assert_eq!(unreadable.restore(None).await.unwrap(), [ids[0], ids[8]]);
        assert_eq!(rows(&client, &schema).await, [1, 8, 1]);
        assert_eq!(unreadable.delete(None).await.unwrap(), []);
        assert_eq!(found(&there, &[ids[0], ids[1], ids[8]]).await, [false, true, false]);
        assert_eq!(unreadable.delete(None).await.unwrap(), [ids[0], ids[8]]);

        for (turn, id) in left.iter().filter(|id| ![ids[0], ids[5], ids[8]].contains(id)).enumerate() {
            let node = if turn % 2 == 0 { &here } else { &there };
            node.remove(*id).await.unwrap().unwrap();
        }
        assert!(rows(&client, &schema).await.is_empty());
        assert_counted(&client, &schema).await;
    });
}

#[test]
fn retention_deletes_whole_rows_and_of_the_last_one_as_many_jobs_as_are_asked_for() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let client = plain_client().await;
        let first = acked(&store, "q", 5, later(10)).await;
        // Two rows of the same moment, whose ids come in turns.
        let jobs: Vec<NewJob> = (0..8).map(|place| job(if place % 2 == 0 { "even" } else { "odd" })).collect();
        let second: Vec<JobId> = jobs.iter().map(|new| new.id).collect();
        store.enqueue(jobs, now()).await.unwrap().unwrap();
        again(&store, "odd", 4, later(20)).await;
        again(&store, "even", 4, later(20)).await;
        let third = acked(&store, "q", 5, later(30)).await;
        assert_eq!(rows(&client, &schema).await, [5, 4, 4, 5]);
        store.redrive(first[2], Redrive::default(), later(40)).await.unwrap().unwrap();

        assert_eq!(store.prune(RETENTION, 0, later(20)).await.unwrap(), 0);
        assert_eq!(store.prune(RETENTION, 3, later(20)).await.unwrap(), 3);
        assert_eq!(found(&store, &first).await, [false, false, true, false, true]);
        assert_eq!(store.prune(RETENTION, 6, later(20)).await.unwrap(), 6);
        assert_eq!(found(&store, &first).await, [false, false, true, false, false], "one was redriven");
        assert_eq!(found(&store, &second).await, [false, false, false, false, false, true, true, true]);
        assert_eq!(rows(&client, &schema).await, [1, 2, 5]);
        assert_counted(&client, &schema).await;
        assert_eq!(store.prune(RETENTION, 99, later(20)).await.unwrap(), 3);
        assert_eq!(found(&store, &third).await, [true; 5]);
        assert_eq!(store.prune(RETENTION, 99, later(30)).await.unwrap(), 5);
        assert_eq!(listed(&store).await, [first[2]]);
        assert!(rows(&client, &schema).await.is_empty());
        assert_counted(&client, &schema).await;
    });
}

/// A job that becomes a dead letter when it fails.
fn frail(queue: &str) -> NewJob {
    let plain = job(queue);
    let policy = Policy::builder().max_attempts(1).on_stop(Disposition::DeadLetter).build().unwrap();
    NewJob { spec: Arc::new(Spec { policy: Arc::new(policy), ..(*plain.spec).clone() }), ..plain }
}

#[test]
fn dead_letters_are_listed_in_the_order_of_their_ends_whatever_rows_they_are_in() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        let mut expected = Vec::new();
        for (turn, queue) in ["a", "b", "a"].into_iter().enumerate() {
            let at = later(100 + 10 * u32::try_from(turn / 2).unwrap());
            store.enqueue((0..4).map(|_| frail(queue)).collect(), now()).await.unwrap().unwrap();
            let runs = store.claim(claim(queue, 4, 1), now()).await.unwrap().jobs;
            let fail = |run| settle(run, failed(at));
            let ended = store.settle(runs.iter().map(fail).collect(), at).await.unwrap();
            assert!(ended.iter().all(|end| end.as_ref().unwrap().job().dead));
            expected.extend(runs.iter().map(|run| (at, run.id, queue)));
        }
        expected.sort_by_key(|(at, id, _)| std::cmp::Reverse((*at, *id)));
        let removed = expected.remove(5).1;
        store.remove(removed).await.unwrap().unwrap();
        for queue in [None, Some("a"), Some("b")] {
            let filter = Filter { dead: Some(true), queue: queue.map(Into::into), ..Filter::default() };
            let (mut seen, mut page) = (Vec::new(), Page::new(0, 3));
            loop {
                let listed = store.list(filter.clone(), page).await.unwrap();
                seen.extend(listed.jobs.iter().map(|job| job.id));
                let Some(next) = listed.next else { break };
                page.after = next.after;
                assert!(matches!(page.after, Some(Entry { ended: Some(_), .. })));
            }
            let expected = expected.iter().filter(|(.., other)| queue.is_none_or(|queue| queue == *other));
            assert_eq!(seen, expected.map(|(_, id, _)| *id).collect::<Vec<_>>());
        }
        assert_counted(&plain_client().await, &schema).await;
    });
}

#[test]
fn nodes_that_take_jobs_out_of_one_row_at_the_same_time_take_each_once() {
    let schema = new_schema();
    let nodes: Vec<Arc<Postgres>> = (0..3).map(|_| Arc::new(open(&schema))).collect();
    runtime().block_on(async {
        let client = plain_client().await;
        let ids = acked(&nodes[0], "q", 40, later(10)).await;
        assert_eq!(rows(&client, &schema).await, [40]);
        let work = |turn: usize, node: &Arc<Postgres>| {
            let (node, ids) = (Arc::clone(node), ids.clone());
            tokio::spawn(async move {
                let mut done = 0;
                for (place, id) in ids.into_iter().enumerate() {
                    let is_done = match (place + turn) % 2 {
                        0 => node.remove(id).await.unwrap().is_ok(),
                        _ => node.redrive(id, Redrive::default(), later(20)).await.unwrap().is_ok(),
                    };
                    done += usize::from(is_done);
                }
                done + node.prune(RETENTION, 2, later(30)).await.unwrap()
            })
        };
        let working: Vec<_> = nodes.iter().enumerate().map(|(turn, node)| work(turn, node)).collect();
        let mut done = 0;
        for one in working {
            done += one.await.unwrap();
        }
        assert_eq!(done, 40);
        assert!(rows(&client, &schema).await.is_empty());
        assert_counted(&client, &schema).await;
    });
}

/// Large results: who reads one job does not read those of all others.
#[test]
fn large_jobs_are_in_rows_of_their_own() {
    let schema = new_schema();
    let store = open(&schema);
    runtime().block_on(async {
        store.enqueue((0..6).map(|_| job("q")).collect(), now()).await.unwrap().unwrap();
        let runs = store.claim(claim("q", 6, 1), now()).await.unwrap().jobs;
        let result = format!("\"{}\"", "x".repeat(30_000));
        let acks = runs.iter().map(|run| settle(run, AttemptOutcome::Done(Some(result.as_bytes().into()))));
        assert!(store.settle(acks.collect(), later(1)).await.unwrap().iter().all(Result::is_ok));
        assert_eq!(rows(&plain_client().await, &schema).await, [1; 6]);
        for run in &runs {
            assert_eq!(store.get(run.id).await.unwrap().unwrap().result.unwrap().len(), result.len());
        }
    });
}
