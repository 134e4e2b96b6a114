//! Several nodes on one database.

use crate::subject::{cut, database_time, new_schema, open, runtime};
use crate::work::{claim, job, now};
use redrive_policy::Span;
use redrive_store::clock::Clock;
use redrive_store::postgres::{Change, Postgres};
use redrive_store::{
    AttemptOutcome, Blob, Enqueued, Job, LeaseRef, Missing, NewJob, NewRun, RunId, RunStep, Settlement, Signal, State,
    Store, Token,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The notifications that a node receives.
fn subscribe(node: &Postgres) -> mpsc::UnboundedReceiver<Change> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let _running = runtime().enter();
    node.listen(move |change| drop(sender.send(change)));
    receiver
}

async fn next(changes: &mut mpsc::UnboundedReceiver<Change>, wanted: impl Fn(&Change) -> bool) -> Change {
    let found = async {
        loop {
            let change = changes.recv().await.expect("the node listens");
            if wanted(&change) {
                return change;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found).await.expect("a notification")
}

/// A notification of another node, not that one may have been missed.
fn is_notification(change: &Change) -> bool {
    !matches!(change, Change::Anything | Change::Nothing)
}

#[test]
fn a_node_is_notified_of_jobs_of_other_nodes_and_not_of_its_own() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    let (mut changes_here, mut changes_there) = (subscribe(&here), subscribe(&there));
    runtime().block_on(async {
        // The first one says that the node listens.
        for changes in [&mut changes_here, &mut changes_there] {
            assert_eq!(next(changes, |_| true).await, Change::Anything);
        }
        here.enqueue(vec![job("mine")], now()).await.unwrap().unwrap();
        let change = next(&mut changes_there, is_notification).await;
        assert_eq!(change, Change::Available("mine".into(), 1));
        there.enqueue(vec![job("yours"), job("yours")], now()).await.unwrap().unwrap();
        let change = next(&mut changes_here, is_notification).await;
        assert_eq!(change, Change::Available("yours".into(), 2));
        there.pause("yours".into(), true, Missing::Create, now()).await.unwrap();
        assert_eq!(next(&mut changes_here, is_notification).await, Change::Pauses);
    });
}

#[test]
fn a_node_is_notified_of_runs_that_have_something_to_do_and_pays_nothing_for_jobs_without_runs() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    let (mut changes, mut other) = (subscribe(&here), subscribe(&there));
    runtime().block_on(async {
        for changes in [&mut changes, &mut other] {
            assert_eq!(next(changes, |_| true).await, Change::Anything);
        }
        let new = NewRun {
            id: RunId::new(now(), 7),
            program: "test".into(),
            version: 1,
            state: Blob::default(),
            key: None,
            parent: None,
            depth: 0,
            seed: 0,
        };
        let run = there.start_runs(vec![new], now()).await.unwrap().unwrap().remove(0);
        assert_eq!(next(&mut changes, is_notification).await, Change::Runs, "a first step");
        let timer = Some(now().after(Span::from_secs(60)));
        let step = RunStep { timer, ..RunStep::of(&run) };
        let advanced = there.advance(vec![step], now()).await.unwrap().remove(0).unwrap();
        assert_eq!(next(&mut changes, is_notification).await, Change::Runs, "a timer");
        let signal = Signal { name: "a".into(), body: Blob::default() };
        there.signal(run.id, signal, now()).await.unwrap().unwrap();
        assert_eq!(next(&mut changes, is_notification).await, Change::Runs, "a message");
        // A run that waits for nothing is told of to nobody, and neither is the end of a job without a run.
        let step = RunStep { timer: None, ..RunStep::of(&advanced.run) };
        there.advance(vec![step], now()).await.unwrap().remove(0).unwrap();
        there.enqueue(vec![job("q")], now()).await.unwrap().unwrap();
        assert_eq!(next(&mut changes, is_notification).await, Change::Available("q".into(), 1));
        let claimed = there.claim(claim("q", 1, 1), now()).await.unwrap().jobs.remove(0);
        there.cancel(claimed.id, now()).await.unwrap().unwrap();
        there.enqueue(vec![job("r")], now()).await.unwrap().unwrap();
        assert_eq!(next(&mut changes, is_notification).await, Change::Available("r".into(), 1));
    });
}

#[test]
fn a_listener_that_is_cut_off_comes_back_and_says_that_it_may_have_missed_something() {
    let schema = new_schema();
    let (here, there) = (open(&schema), open(&schema));
    let (mut changes, mut other) = (subscribe(&here), subscribe(&there));
    runtime().block_on(async {
        for changes in [&mut changes, &mut other] {
            assert_eq!(next(changes, |_| true).await, Change::Anything);
        }
        assert_eq!(cut(&format!("redrive listener {schema}")).await, 2, "each node has a listener");
        let again = next(&mut changes, |change| *change != Change::Nothing).await;
        assert_eq!(again, Change::Anything, "a pause may have been missed");
        for _ in 0..100 {
            // Repeated until it is received: the test cannot see when the connection is up again.
            there.enqueue(vec![job("q")], now()).await.unwrap().unwrap();
            if matches!(next(&mut changes, |_| true).await, Change::Available(..)) {
                return;
            }
        }
        panic!("the listener does not come back");
    });
}

/// The first of them creates the tables.
#[test]
fn nodes_that_start_at_once_on_an_empty_database_all_start() {
    for _ in 0..4 {
        let schema = new_schema();
        let nodes: Vec<Postgres> = std::thread::scope(|scope| {
            let starting: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&schema))).collect();
            starting.into_iter().map(|node| node.join().unwrap()).collect()
        });
        runtime().block_on(async {
            let new = job("q");
            nodes[0].enqueue(vec![new.clone()], now()).await.unwrap().unwrap();
            assert!(nodes[3].get(new.id).await.unwrap().is_some());
        });
    }
}

/// Four nodes claim and settle all jobs, as fast as they can.
#[test]
fn nodes_share_the_work_and_every_job_is_done_once() {
    const JOBS: usize = 400;
    let schema = new_schema();
    let nodes: Vec<Arc<Postgres>> = (0..4).map(|_| Arc::new(open(&schema))).collect();
    runtime().block_on(async {
        let jobs: Vec<NewJob> = (0..JOBS).map(|_| job("q")).collect();
        let names: BTreeSet<_> = jobs.iter().map(|new| new.id).collect();
        nodes[0].enqueue(jobs, now()).await.unwrap().unwrap();
        let workers: Vec<_> =
            (0..8).map(|number| tokio::spawn(worker(Arc::clone(&nodes[number % 4]), number as u64))).collect();
        let mut done = Vec::new();
        for worker in workers {
            done.extend(worker.await.unwrap());
        }
        assert_eq!(done.len(), JOBS, "each job is claimed once");
        assert_eq!(done.into_iter().map(|job: Job| job.id).collect::<BTreeSet<_>>(), names);
        let queues = nodes[3].queues().await.unwrap();
        assert_eq!(queues[0].count(State::Completed), JOBS);
    });
}

/// Claims and settles until there is nothing left.
async fn worker(node: Arc<Postgres>, seed: u64) -> Vec<Job> {
    let mut done = Vec::new();
    loop {
        let jobs = node.claim(claim("q", 7, seed), now()).await.unwrap().jobs;
        if jobs.is_empty() {
            return done;
        }
        let settle = |job: &Job| {
            let token = job.lease.as_ref().map(|lease| lease.token).expect("a claimed job has a lease");
            Settlement {
                lease_ref: LeaseRef { id: job.id, token: Token::Lease(token) },
                report: AttemptOutcome::Done(None),
            }
        };
        for answer in node.settle(jobs.iter().map(settle).collect(), now()).await.unwrap() {
            done.push(answer.expect("a worker may settle its job").into_job());
        }
    }
}

/// Two nodes enqueue jobs under the same keys at the same time.
#[test]
fn a_key_is_one_job_on_all_nodes() {
    let schema = new_schema();
    let nodes = [open(&schema), open(&schema)];
    runtime().block_on(async {
        for round in 0..40 {
            let keyed = || NewJob { idempotency_key: Some(format!("key {round}").into()), ..job("q") };
            let calls = (nodes[0].enqueue(vec![keyed()], now()), nodes[1].enqueue(vec![keyed()], now()));
            let (first, second) = tokio::join!(calls.0, calls.1);
            let created = [first, second].map(|answer| answer.unwrap().unwrap().remove(0));
            let jobs = created.clone().map(Enqueued::into_job);
            assert_eq!(jobs[0], jobs[1], "both callers get the same job");
            assert_eq!(created.iter().filter(|answer| matches!(answer, Enqueued::Created(_))).count(), 1);
        }
    });
}

/// Due times and leases go by the database, whatever the clocks of the nodes say.
#[test]
fn nodes_share_the_clock_of_the_database() {
    let schema = new_schema();
    let nodes = [open(&schema), open(&schema)];
    let database = runtime().block_on(database_time());
    let shown = nodes.each_ref().map(|node| node.clock().now().micros());
    for shown in shown {
        // The three were read one after the other, on a machine that may be busy.
        assert!((shown - database).abs() < 5_000_000, "the node shows {shown}, the database says {database}");
    }
}
