//! Jobs that cannot be read: damaged ones are set aside, those of newer versions are left to newer nodes.

use crate::subject::{new_schema, open, options, plain_client, runtime};
use crate::work::{claim, failed, job, later, now};
use redrive_store::postgres::{DatabaseSource, UnreadableJobs};
use redrive_store::{
    AttemptOutcome, Claim, Filter, Held, Job, JobId, LeaseRef, NewJob, Page, Postgres, QueueRefusal, Refusal,
    Settlement, Start, Store, StoreError, Token,
};
use std::sync::{Arc, Mutex};
use tokio_postgres::Client;

/// A store with one client that reaches behind it.
struct Database {
    schema: String,
    store: Postgres,
    client: Client,
    reported: Arc<Mutex<Vec<(JobId, String)>>>,
}

impl Database {
    async fn new() -> Self {
        let schema = new_schema();
        let store = open(&schema);
        let reported: Arc<Mutex<Vec<(JobId, String)>>> = Arc::default();
        let list = Arc::clone(&reported);
        store.watch_unreadable(move |id, why| list.lock().unwrap().push((id, why.to_owned())));
        Self { schema, store, client: plain_client().await, reported }
    }

    async fn enqueue(&self, jobs: &[NewJob]) {
        self.store.enqueue(jobs.to_vec(), now()).await.unwrap().unwrap();
    }

    /// Changes the row of one job.
    async fn set(&self, table: &str, id: JobId, change: &str) {
        let sql = format!("UPDATE {}.{table} SET {change} WHERE id = '{id}'", self.schema);
        assert_eq!(self.client.execute(&sql, &[]).await.unwrap(), 1, "{sql}");
    }

    /// Changes what is stored of one job that is active, which must be the only one of its claim.
    async fn set_active(&self, id: JobId, change: &str) {
        let sql = format!("UPDATE {}.claims SET {change} WHERE ids = '{{{id}}}'", self.schema);
        assert_eq!(self.client.execute(&sql, &[]).await.unwrap(), 1, "{sql}");
    }

    /// Changes what is stored of one job that has ended.
    async fn set_ended(&self, id: JobId, change: &str) {
        let rest = format!("rests[array_position(ids, '{id}')]");
        let sql = format!("UPDATE {}.ended SET {rest} = {}", self.schema, change.replace("rest", &rest));
        let sql = format!("{sql} WHERE ids @> '{{{id}}}'");
        assert_eq!(self.client.execute(&sql, &[]).await.unwrap(), 1, "{sql}");
    }

    /// As a newer version would have written it.
    async fn make_newer(&self, table: &str, id: JobId) {
        self.set(table, id, "rest = set_byte(rest, 0, 2)").await;
    }

    async fn claimed(&self, claim: Claim) -> Vec<JobId> {
        ids(&self.store.claim(claim, now()).await.unwrap().jobs)
    }

    async fn aside(&self) -> Vec<(JobId, String)> {
        let list = UnreadableJobs::open(options(&self.schema)).await.unwrap().list(100).await.unwrap();
        assert_eq!(list.total, list.jobs.len());
        list.jobs.into_iter().map(|job| (job.id, job.reason)).collect()
    }

    fn reported(&self) -> Vec<(JobId, String)> {
        let mut reported = self.reported.lock().unwrap().clone();
        reported.sort();
        reported
    }
}

fn ids<T: AsRef<Job>>(jobs: &[T]) -> Vec<JobId> {
    jobs.iter().map(|job| job.as_ref().id).collect()
}

fn settle(job: &Job, report: AttemptOutcome) -> Settlement {
    let token = Token::Lease(job.lease.as_ref().unwrap().token);
    Settlement { lease_ref: LeaseRef { id: job.id, token }, report }
}

#[test]
fn a_damaged_row_is_set_aside_and_delays_no_other() {
    runtime().block_on(async {
        let database = Database::new().await;
        let jobs: Vec<NewJob> = (0..8).map(|_| job("q")).collect();
        database.enqueue(&jobs).await;
        let damages = [
            ("live", "rest = ''", "a record ends too early"),
            ("live", "rest = substring(rest FOR 5)", "a record ends too early"),
            ("live", "rest = rest || '\\x00'", "goes on behind its end"),
            ("live", "rest = set_byte(rest, 0, 0)", "version 0"),
            ("live", "failures = '\\x01ff'", "a record ends too early"),
            ("specs", "policy = 4711", "the policy 4711, which is not stored"),
            ("specs", "policy = NULL, own_policy = '{'", "its policy cannot be read"),
        ];
        for (new, (table, change, _)) in jobs.iter().zip(damages) {
            database.set(table, new.id, change).await;
        }
        // One at a time: the damaged ones come first, and use up no claim.
        assert_eq!(database.claimed(claim("q", 1, 1)).await, [jobs[7].id]);
        let aside = database.aside().await;
        assert_eq!(aside.len(), damages.len());
        for ((new, (_, _, why)), (id, reason)) in jobs.iter().zip(damages).zip(&aside) {
            assert_eq!(new.id, *id);
            assert!(reason.contains(why), "{reason}");
        }
        assert_eq!(database.reported(), aside, "each is reported once");
        assert_eq!(database.claimed(claim("q", 9, 2)).await, []);
        assert_eq!(database.reported().len(), damages.len());
        assert_eq!(database.store.get(jobs[0].id).await.unwrap(), None);
        assert_eq!(database.store.cancel(jobs[0].id, now()).await.unwrap().map(drop), Err(Refusal::NotFound));
    });
}

#[test]
fn sweeps_and_lists_pass_over_damaged_rows() {
    runtime().block_on(async {
        let database = Database::new().await;
        let due = |ms| NewJob { start: Start::Scheduled(later(ms)), ..job("due") };
        let expiring = || {
            let new = job("expiring");
            let spec = redrive_store::Spec { expires: Some(later(5)), ..(*new.spec).clone() };
            NewJob { spec: Arc::new(spec), ..new }
        };
        let jobs = [due(1), due(2), expiring(), expiring(), job("run"), job("run")];
        database.enqueue(&jobs).await;
        assert_eq!(database.claimed(claim("run", 2, 1)).await.len(), 2);
        for place in [0, 2] {
            database.set("live", jobs[place].id, "rest = ''").await;
        }
        let damage = format!("UPDATE {}.claims SET rests[1] = ''", database.schema);
        assert_eq!(database.client.execute(&damage, &[]).await.unwrap(), 1, "both are in one claim");
        let moved = database.store.promote(&Held::new(), 10, later(10)).await.unwrap();
        assert_eq!(ids(&moved), [jobs[3].id, jobs[1].id]);
        let overdue =
            database.store.reclaim(&|job, _| crate::work::decision(job, later(20_000)), 10, later(20_000)).await;
        assert_eq!(ids(&overdue.unwrap()), [jobs[5].id]);
        assert_eq!(database.aside().await.len(), 3);

        let finished = settled(&database, 2).await;
        database.set_ended(finished[0], "''").await;
        let listed = database.store.list(Filter::default(), Page::new(0, 100)).await.unwrap();
        assert_eq!(listed.jobs.len(), 4, "{listed:?}");
        assert_eq!(database.aside().await.len(), 4, "a list sets aside what it cannot read");
    });
}

/// Jobs that were run and acked.
async fn settled(database: &Database, count: usize) -> Vec<JobId> {
    let jobs: Vec<NewJob> = (0..count).map(|_| job("done")).collect();
    database.enqueue(&jobs).await;
    let runs = database.store.claim(claim("done", count, 9), now()).await.unwrap().jobs;
    let acks = runs.iter().map(|run| settle(run, AttemptOutcome::Done(None))).collect();
    assert!(database.store.settle(acks, now()).await.unwrap().iter().all(Result::is_ok));
    ids(&runs)
}

#[test]
fn a_job_that_was_set_aside_comes_back_when_its_row_is_repaired() {
    runtime().block_on(async {
        let database = Database::new().await;
        let (new, done) = (job("q"), settled(&database, 1).await[0]);
        database.enqueue(std::slice::from_ref(&new)).await;
        database.set("live", new.id, "rest = set_byte(rest, 9, 99)").await;
        database.set_ended(done, "set_byte(rest, 9, 99)").await;
        for id in [new.id, done] {
            assert_eq!(database.store.get(id).await.unwrap(), None);
        }
        let unreadable = UnreadableJobs::open(options(&database.schema)).await.unwrap();
        assert_eq!(unreadable.restore(Some(&[new.id])).await.unwrap(), [new.id]);
        assert_eq!(database.claimed(claim("q", 1, 1)).await, [], "it is as damaged as before");
        assert_eq!(database.aside().await.len(), 2);

        // State 2 is available, 5 completed.
        for (id, state) in [(new.id, 2), (done, 5)] {
            let sql = format!(
                "UPDATE {}.unreadable SET row = jsonb_set(row, '{{rest}}', \
                 to_jsonb(set_byte((row ->> 'rest')::bytea, 9, {state}))) WHERE id = '{id}'",
                database.schema
            );
            database.client.execute(&sql, &[]).await.unwrap();
        }
        assert_eq!(unreadable.restore(None).await.unwrap().len(), 2);
        assert_eq!(database.claimed(claim("q", 1, 1)).await, [new.id]);
        assert!(database.store.get(done).await.unwrap().is_some());
        assert_eq!(database.aside().await, []);
    });
}

#[test]
fn the_id_the_key_and_the_queue_of_a_job_that_was_set_aside_stay_taken() {
    runtime().block_on(async {
        let database = Database::new().await;
        let new = NewJob { idempotency_key: Some("order 7".into()), ..job("q") };
        database.enqueue(std::slice::from_ref(&new)).await;
        database.set("live", new.id, "rest = ''").await;
        assert_eq!(database.claimed(claim("q", 1, 1)).await, []);

        let again = NewJob { id: job("q").id, ..new.clone() };
        let Err(StoreError::Broken(why)) = database.store.enqueue(vec![again], now()).await else { panic!("two jobs") };
        assert!(why.contains(&new.id.to_string()) && why.contains("redrive store unreadable"), "{why}");
        let same = NewJob { idempotency_key: None, ..new.clone() };
        assert!(database.store.enqueue(vec![same], now()).await.unwrap().is_err(), "the id is taken");
        let age = redrive_policy::Span::ZERO;
        assert!(database.store.prune_queues(age, later(1)).await.unwrap().is_empty());
        let forgotten = database.store.forget_queue("q".into()).await.unwrap();
        assert!(matches!(forgotten, Err(QueueRefusal::HasJobs(_))), "{forgotten:?}");

        drop(database.store);
        let refused = DatabaseSource::open(options(&database.schema)).await.map(drop).unwrap_err().to_string();
        assert!(refused.contains("found 1 jobs") && refused.contains("redrive store unreadable"), "{refused}");
        let unreadable = UnreadableJobs::open(options(&database.schema)).await.unwrap();
        assert_eq!(unreadable.delete(None).await.unwrap(), [new.id]);
        drop(unreadable);
        DatabaseSource::open(options(&database.schema)).await.map(drop).unwrap();
    });
}

#[test]
fn a_row_of_a_newer_version_is_left_to_newer_nodes() {
    runtime().block_on(async {
        let database = Database::new().await;
        let due = NewJob { start: Start::Scheduled(later(1)), ..job("q") };
        let jobs = [job("q"), due, job("q"), job("q")];
        database.enqueue(&jobs).await;
        database.make_newer("live", jobs[0].id).await;
        database.make_newer("live", jobs[1].id).await;
        let runs = database.store.claim(claim("q", 1, 1), now()).await.unwrap().jobs;
        assert_eq!(ids(&runs), [jobs[2].id], "the newer one comes first, and uses up no claim");
        assert_eq!(database.store.promote(&Held::new(), 10, later(5)).await.unwrap(), []);
        let wake = database.store.next_wake(&Held::new()).await.unwrap();
        assert!(wake.is_none_or(|wake| wake > later(1)), "this node does not wait for it: {wake:?}");

        let asked = database.store.get(jobs[0].id).await;
        let Err(StoreError::Unavailable(why)) = asked else { panic!("{asked:?}") };
        assert!(why.contains("a row has version 2") && why.contains("versions up to 1"), "{why}");
        assert!(matches!(database.store.cancel(jobs[0].id, now()).await, Err(StoreError::Unavailable(_))));
        let listed = database.store.list(Filter::default(), Page::new(0, 100)).await.unwrap();
        assert_eq!(listed.jobs.len(), 2);
        let unreadable = UnreadableJobs::open(options(&database.schema)).await.unwrap();
        let list = unreadable.list(10).await.unwrap();
        assert_eq!((list.total, list.newer), (0, 2), "it is not set aside");
        assert_eq!(database.reported(), []);
    });
}

/// The worker's next report goes to a newer node, or comes again.
#[test]
fn the_report_on_a_job_that_a_newer_node_wrote_fails_and_others_in_the_batch_do_not() {
    runtime().block_on(async {
        let database = Database::new().await;
        database.enqueue(&[job("q"), job("q")]).await;
        let mut runs = database.store.claim(claim("q", 1, 1), now()).await.unwrap().jobs;
        runs.extend(database.store.claim(claim("q", 1, 1), now()).await.unwrap().jobs);
        // A newer node has written it.
        let newer = "version = 2, rests[1] = set_byte(rests[1], 0, 2), revision = revision + 1";
        database.set_active(runs[0].id, newer).await;
        let (newer, other) = tokio::join!(
            database.store.settle(vec![settle(&runs[0], failed(now()))], now()),
            database.store.settle(vec![settle(&runs[1], AttemptOutcome::Done(None))], now()),
        );
        assert!(matches!(newer, Err(StoreError::Unavailable(_))), "{newer:?}");
        assert!(other.unwrap()[0].is_ok());
        database.set_active(runs[0].id, "version = 1, rests[1] = set_byte(rests[1], 0, 1)").await;
        let again = database.store.settle(vec![settle(&runs[0], failed(now()))], now()).await.unwrap();
        assert!(again[0].is_ok(), "{again:?}");
    });
}
