//! Connections that break, and a database that stops and comes back.

use crate::cluster::Cluster;
use crate::subject::{cut, new_schema, open, runtime};
use crate::work::{claim, job, now};
use redrive_store::clock::Clock;
use redrive_store::postgres::{Options, Postgres};
use redrive_store::{AttemptOutcome, Held, Job, JobId, LeaseRef, Settlement, State, Store, StoreError, Token};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything that a worker on an unreliable network knows for certain.
#[derive(Default)]
struct Acknowledged {
    kept: BTreeSet<JobId>,
    done: Vec<JobId>,
    failures: usize,
}

/// A result; or `None` if the store is unavailable, which is the only error that is allowed.
fn told<T>(answer: Result<T, StoreError>, failures: &mut usize) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(StoreError::Unavailable(_)) => {
            *failures += 1;
            None
        }
        Err(broken) => panic!("a lost connection is not damage: {broken}"),
    }
}

fn done(job: &Job) -> Settlement {
    let token = job.lease.as_ref().map(|lease| lease.token).expect("a claimed job has a lease");
    Settlement { lease_ref: LeaseRef { id: job.id, token: Token::Lease(token) }, report: AttemptOutcome::Done(None) }
}

/// Enqueues, claims and settles, whatever happens to the connections.
async fn worker(store: Arc<Postgres>, seed: u64, stop: Arc<AtomicBool>) -> Acknowledged {
    let mut record = Acknowledged::default();
    while !stop.load(Ordering::SeqCst) {
        let new = job("q");
        if told(store.enqueue(vec![new.clone()], now()).await, &mut record.failures).is_some() {
            record.kept.insert(new.id);
        }
        let claimed =
            told(store.claim(claim("q", 2, seed), now()).await, &mut record.failures).unwrap_or_default().jobs;
        let settlements = claimed.iter().map(done).collect();
        for answer in told(store.settle(settlements, now()).await, &mut record.failures).unwrap_or_default() {
            record.done.push(answer.expect("a worker may settle its job").job().id);
        }
    }
    record
}

#[test]
fn what_was_acknowledged_survives_every_cut() {
    let schema = new_schema();
    let store = Arc::new(open(&schema));
    runtime().block_on(async {
        let stop = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> =
            (0..4).map(|seed| tokio::spawn(worker(Arc::clone(&store), seed, Arc::clone(&stop)))).collect();
        let mut cuts = 0;
        for _ in 0..25 {
            cuts += cut(&schema).await;
            // An operation that succeeds shows that the store has recovered by itself.
            while store.next_wake(&Held::new()).await.is_err() {}
        }
        stop.store(true, Ordering::SeqCst);
        let (mut kept, mut done) = (BTreeSet::new(), Vec::new());
        for worker in workers {
            let record = worker.await.unwrap();
            kept.extend(record.kept);
            done.extend(record.done);
        }
        assert!(cuts > 25 && !done.is_empty(), "{cuts} connections were cut, {} jobs done", done.len());
        assert_eq!(done.len(), done.iter().collect::<BTreeSet<_>>().len(), "no run ends twice");
        for id in kept {
            assert!(store.get(id).await.unwrap().is_some(), "the job {id} was acknowledged and is lost");
        }
        for id in done {
            assert_eq!(store.get(id).await.unwrap().map(|job| job.state), Some(State::Completed), "{id}");
        }
    });
}

#[test]
fn a_database_that_crashes_is_reported_and_found_again_with_all_that_was_stored() {
    let mut cluster = Cluster::start();
    runtime().block_on(async {
        let store = Postgres::open(Options::read(&cluster.address).unwrap()).await.unwrap();
        let waiting = job("q");
        store.enqueue(vec![waiting.clone(), job("q")], now()).await.unwrap().unwrap();
        let held = store.claim(claim("q", 1, 7), now()).await.unwrap().jobs;
        let before = store.clock().now();

        tokio::task::block_in_place(|| cluster.order("stop"));
        let gone = [
            store.enqueue(vec![job("q")], now()).await.err(),
            store.claim(claim("q", 1, 8), now()).await.err(),
            store.get(waiting.id).await.err(),
        ];
        for error in gone {
            assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
        }
        assert!(store.clock().now() >= before, "the clock goes on");

        tokio::task::block_in_place(|| cluster.order("start"));
        let settled = store.settle(held.iter().map(done).collect(), now()).await.unwrap();
        assert_eq!(settled[0].as_ref().map(|settled| settled.job().state), Ok(State::Completed));
        let left = store.claim(claim("q", 9, 9), now()).await.unwrap().jobs;
        assert_eq!(left.len(), 1, "one job was left, and nothing of what was refused is there");
    });
}
