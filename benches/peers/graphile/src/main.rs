//! graphile_worker, the Rust crate, on PostgreSQL; it works on the tables of the graphile-worker for Node. One worker
//! with a concurrency of 50 and four local queues that fetch up to 250 jobs each, and completions and failures in
//! batches. Its waiting time after a failure, exp(attempts) seconds, stands in its SQL; a trigger of this program pulls
//! the next run back to now, which flatters it.
//!
//! usage: PEER=… JOBS=… peer-graphile URL

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, Worker, WorkerContext, WorkerOptions,
};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

const TABLE: &str = "graphile_rust._private_jobs";
const AT_ONCE: &str = "
    create or replace function graphile_rust.at_once() returns trigger language plpgsql as
        $$ begin new.run_at := now(); return new; end $$;
    create trigger at_once before update on graphile_rust._private_jobs for each row
        when (old.locked_by is not null and new.locked_by is null and new.last_error is not null)
        execute function graphile_rust.at_once()";

static RUNS: AtomicUsize = AtomicUsize::new(0);
/// Whether jobs fail at their first two attempts.
static FAILS: AtomicBool = AtomicBool::new(false);

#[derive(Clone, Serialize, Deserialize)]
struct Job {
    i: usize,
    kind: String,
    note: String,
}

impl Job {
    fn new(i: usize) -> Self {
        Self { i, kind: "bench".to_owned(), note: "x".repeat(64) }
    }
}

impl TaskHandler for Job {
    const IDENTIFIER: &'static str = "job";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        RUNS.fetch_add(1, Relaxed);
        if FAILS.load(Relaxed) && *context.job().attempts() < 3 { Err("planned".to_owned()) } else { Ok(()) }
    }
}

fn report(phase: &str, jobs: usize, took: Duration) {
    let peer = std::env::var("PEER").unwrap_or_else(|_| "graphile-rust".to_owned());
    let seconds = took.as_secs_f64();
    let rate = (jobs as f64 / seconds).round();
    println!(r#"{{"peer":"{peer}","phase":"{phase}","jobs":{jobs},"seconds":{seconds:.3},"rate":{rate}}}"#);
}

/// Ends the program without a figure when something does not add up.
fn expect(what: &str, found: usize, wanted: usize) {
    if found != wanted {
        eprintln!("{what}: found {found}, expected {wanted}");
        std::process::exit(1);
    }
}

async fn run_sql(pool: &PgPool, sql: &'static str) {
    sqlx::raw_sql(sql).execute(pool).await.expect("a statement");
}

async fn stored(pool: &PgPool) -> usize {
    let sql = sqlx::AssertSqlSafe(format!("select count(*) from {TABLE}"));
    let count: i64 = sqlx::query_scalar(sql).fetch_one(pool).await.expect("a count");
    usize::try_from(count).unwrap_or(0)
}

async fn clear(pool: &PgPool) {
    run_sql(pool, "truncate graphile_rust._private_jobs cascade").await;
    run_sql(pool, "vacuum analyze graphile_rust._private_jobs").await;
}

async fn worker(pool: &PgPool) -> Worker {
    let queues = LocalQueueConfig::default().with_size(250).with_queue_count(4);
    let options = WorkerOptions::default().concurrency(50).schema("graphile_rust").define_job::<Job>();
    let options = options.poll_interval(Duration::from_millis(20)).local_queue(queues).pg_pool(pool.clone());
    let options = options.complete_job_batch_delay(Duration::ZERO).fail_job_batch_delay(Duration::ZERO);
    options.listen_os_shutdown_signals(false).init().await.expect("a worker")
}

async fn one_by_one(worker: &Worker, jobs: usize) {
    let lanes = (0..16).map(|lane| {
        let utils = worker.create_utils();
        tokio::spawn(async move {
            for i in (lane..jobs).step_by(16) {
                utils.add_job(Job::new(i), JobSpec::default()).await.expect("a job is stored");
            }
        })
    });
    for lane in lanes.collect::<Vec<_>>() {
        lane.await.expect("a lane ends well");
    }
}

async fn fill(worker: &Worker, jobs: usize) {
    let (utils, spec) = (worker.create_utils(), JobSpec { max_attempts: Some(3), ..JobSpec::default() });
    for start in (0..jobs).step_by(100) {
        let batch: Vec<_> = (start..(start + 100).min(jobs)).map(|i| (Job::new(i), &spec)).collect();
        utils.add_jobs(&batch).await.expect("a batch is stored");
    }
}

/// The time until no job is stored any more.
async fn drained(pool: &PgPool, jobs: usize, fails: bool) -> Duration {
    clear(pool).await;
    let worker = Arc::new(worker(pool).await);
    fill(&worker, jobs).await;
    RUNS.store(0, Relaxed);
    FAILS.store(fails, Relaxed);
    let wanted = if fails { 3 * jobs } else { jobs };
    let started = Instant::now();
    let running = tokio::spawn({
        let worker = Arc::clone(&worker);
        async move { worker.run().await.expect("a good end") }
    });
    while (RUNS.load(Relaxed) < wanted || stored(pool).await > 0) && started.elapsed() < Duration::from_secs(300) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = started.elapsed();
    worker.request_shutdown();
    running.await.expect("the worker ends");
    expect("jobs left", stored(pool).await, 0);
    expect("runs", RUNS.load(Relaxed), wanted);
    took
}

#[tokio::main]
async fn main() {
    let Some(url) = std::env::args().nth(1) else {
        eprintln!("usage: PEER=… JOBS=… peer-graphile URL");
        std::process::exit(2);
    };
    let jobs = std::env::var("JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(10_000);
    let pool = PgPoolOptions::new().max_connections(20).connect(&url).await.expect("a database");
    run_sql(&pool, "drop schema if exists graphile_rust cascade").await;
    let first = worker(&pool).await;

    clear(&pool).await;
    let started = Instant::now();
    one_by_one(&first, jobs).await;
    let took = started.elapsed();
    expect("jobs stored", stored(&pool).await, jobs);
    report("a", jobs, took);

    clear(&pool).await;
    let started = Instant::now();
    fill(&first, jobs).await;
    let took = started.elapsed();
    expect("jobs stored", stored(&pool).await, jobs);
    report("b", jobs, took);

    report("c", jobs, drained(&pool, jobs, false).await);
    run_sql(&pool, AT_ONCE).await;
    let failing = jobs.div_ceil(2);
    report("d", failing, drained(&pool, failing, true).await);
}
