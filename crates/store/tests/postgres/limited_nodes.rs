//! Several nodes on one database hold the same limits, and the same bounds on the depth of queues.

use crate::subject::{new_schema, open, runtime};
use crate::work::{claim, failed, job, later, now};
use redrive_policy::Span;
use redrive_store::postgres::Postgres;
use redrive_store::{
    AttemptOutcome, Bounds, Claim, EnqueueRefusal, Group, Job, LeaseRef, Limits, NewJob, Rate, Setting, Settlement,
    Spec, State, Store, Token,
};
use std::sync::Arc;
use tokio::task::JoinSet;

const NODES: usize = 3;
/// How many callers each node has.
const CALLERS: usize = 4;

fn nodes() -> Vec<Arc<Postgres>> {
    let schema = new_schema();
    (0..NODES).map(|_| Arc::new(open(&schema))).collect()
}

fn limited(queue: &str, bounds: Bounds) -> NewJob {
    let new = job(queue);
    let spec = Spec { limits: Some(Arc::new(Limits::own("api", bounds))), ..Spec::clone(&new.spec) };
    NewJob { spec: Arc::new(spec), ..new }
}

/// All callers of all nodes claim at once, each until it finds nothing. What they have, all together.
async fn claimed_by_all(nodes: &[Arc<Postgres>], queue: &str, later_ms: u32) -> Vec<Job> {
    let mut callers = JoinSet::new();
    for (place, node) in (0..CALLERS).flat_map(|_| nodes.iter().enumerate()) {
        let (node, request) = (Arc::clone(node), claim(queue, 2, place as u64));
        callers.spawn(async move {
            let mut jobs: Vec<Job> = Vec::new();
            loop {
                let request = Claim { seed: jobs.len() as u64, ..request.clone() };
                let claimed = node.claim(request, later(later_ms)).await.unwrap();
                if claimed.jobs.is_empty() {
                    return jobs;
                }
                jobs.extend(claimed.jobs);
            }
        });
    }
    callers.join_all().await.concat()
}

fn done(job: &Job) -> Settlement {
    let token = Token::Lease(job.lease.as_ref().unwrap().token);
    Settlement { lease_ref: LeaseRef { id: job.id, token }, report: AttemptOutcome::Done(None) }
}

#[test]
fn nodes_that_claim_at_once_start_no_more_than_a_limit_allows() {
    let (nodes, minute) = (nodes(), Span::from_secs(60));
    let bounds = Bounds { concurrency: Some(9), rate: Some(Rate { limit: 14, period: minute }), throttle: None };
    runtime().block_on(async {
        let jobs = (0..60).map(|index| limited(["one", "two"][index % 2], bounds)).collect();
        nodes[0].enqueue(jobs, now()).await.unwrap().unwrap();
        // Jobs of one key in two queues share its limits.
        let mut first = claimed_by_all(&nodes, "one", 0).await;
        first.extend(claimed_by_all(&nodes, "two", 0).await);
        assert_eq!(first.len(), 9, "so many at once");
        nodes[1].settle(first.iter().take(8).map(done).collect(), later(1)).await.unwrap();
        let second = claimed_by_all(&nodes, "two", 2).await;
        assert_eq!(second.len(), 5, "so many in a minute");
        let (rest, ends) = (claimed_by_all(&nodes, "two", 59_999), first.iter().skip(8).chain(&second).map(done));
        assert_eq!(rest.await.len(), 0, "before the first minute is over");
        nodes[2].settle(ends.collect(), later(59_999)).await.unwrap();
        let third = claimed_by_all(&nodes, "two", 60_000).await;
        assert_eq!(third.len(), 9, "in the next minute");
    });
}

#[test]
fn nodes_hold_the_limit_of_a_queue_that_another_node_has_set() {
    let nodes = nodes();
    runtime().block_on(async {
        let jobs = (0..40).map(|_| job("mail")).collect();
        nodes[0].enqueue(jobs, now()).await.unwrap().unwrap();
        let before = nodes[1].claim(claim("mail", 1, 7), now()).await.unwrap().jobs;
        let setting = Setting { bounds: Bounds { concurrency: Some(4), ..Bounds::default() }, ..Setting::default() };
        nodes[2].set_limit(Group::Queue("mail".into()), Some(setting), now()).await.unwrap();
        assert_eq!(claimed_by_all(&nodes, "mail", 0).await.len() + before.len(), 4);
    });
}

/// All callers of all nodes enqueue at once. How many jobs were acknowledged.
async fn enqueued_by_all(nodes: &[Arc<Postgres>], bound: u64) -> usize {
    let mut callers = JoinSet::new();
    for node in (0..CALLERS).flat_map(|_| nodes) {
        let node = Arc::clone(node);
        callers.spawn(async move {
            let mut stored = 0;
            for size in [1, 2, 1, 3, 1] {
                let batch = (0..size).map(|_| NewJob { depth: Some(bound), ..job("mail") }).collect();
                match node.enqueue(batch, now()).await.unwrap() {
                    Ok(answers) => stored += answers.len(),
                    Err(EnqueueRefusal::QueueFull { full, .. }) => assert!(full.depth + full.jobs > bound, "{full}"),
                    Err(other) => panic!("{other}"),
                }
            }
            stored
        });
    }
    callers.join_all().await.into_iter().sum()
}

#[test]
fn nodes_that_enqueue_at_once_fill_a_queue_exactly() {
    const BOUND: u64 = 40;
    let nodes = nodes();
    runtime().block_on(async {
        // 96 jobs are offered, and callers with one job come last.
        assert_eq!(enqueued_by_all(&nodes, BOUND).await, 40);
        assert_eq!(depth(&nodes[1]).await, 40);
        let taken = nodes[2].claim(claim("mail", 10, 1), now()).await.unwrap().jobs;
        assert_eq!(enqueued_by_all(&nodes, BOUND).await, 10, "there is room for as many as were claimed");
        // A retry is never refused, and no job is enqueued beside it.
        let failures = taken.iter().take(4).map(|job| Settlement { report: failed(now()), ..done(job) });
        for settled in nodes[0].settle(failures.collect(), now()).await.unwrap() {
            assert_eq!(settled.unwrap().job().state, State::Retryable);
        }
        assert_eq!(depth(&nodes[1]).await, 44);
        assert_eq!(enqueued_by_all(&nodes, BOUND).await, 0);
        let left: Vec<Job> = nodes[0].claim(claim("mail", 5, 2), now()).await.unwrap().jobs;
        assert_eq!((left.len(), enqueued_by_all(&nodes, BOUND).await), (5, 1));
    });
}

async fn depth(node: &Postgres) -> usize {
    let queues = node.queues().await.unwrap();
    let waits = [State::Scheduled, State::Pending, State::Available, State::Retryable];
    queues.iter().flat_map(|queue| waits.map(|state| queue.count(state))).sum()
}
