//! apalis on SQLite (WAL, `synchronous=FULL`), on PostgreSQL or on Redis. One worker with a concurrency of 50 that
//! polls every 5 ms and fetches up to 100 jobs.
//!
//! On Redis the retry waits whole seconds in the library's own script, so that phase d is left out
//! there, and its worker stops with an error on a backlog above a few thousand jobs, so that phase c
//! is kept small.
//!
//! usage: PEER=… JOBS=… peer-apalis sqlite FILE | postgres URL | redis URL

use apalis::prelude::*;
use serde::{Deserialize, Serialize};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// The most jobs that one phase can count.
const MOST: usize = 200_000;

static RUNS: [AtomicU8; MOST] = [const { AtomicU8::new(0) }; MOST];
static FINISHED: AtomicUsize = AtomicUsize::new(0);
static WANTED: AtomicUsize = AtomicUsize::new(0);

fn begin(jobs: usize) {
    RUNS.iter().for_each(|runs| runs.store(0, Relaxed));
    FINISHED.store(0, Relaxed);
    WANTED.store(jobs, Relaxed);
}

fn finish(worker: &WorkerContext) {
    if FINISHED.fetch_add(1, Relaxed) + 1 == WANTED.load(Relaxed) {
        worker.stop().ok();
    }
}

async fn succeeds(job: Job, worker: WorkerContext) -> Result<(), BoxDynError> {
    RUNS[job.i].fetch_add(1, Relaxed);
    finish(&worker);
    Ok(())
}

async fn fails_twice(job: Job, worker: WorkerContext) -> Result<(), BoxDynError> {
    if RUNS[job.i].fetch_add(1, Relaxed) < 2 {
        return Err("planned".into());
    }
    finish(&worker);
    Ok(())
}

fn report(phase: &str, jobs: usize, took: Duration) {
    let peer = std::env::var("PEER").unwrap_or_else(|_| "apalis".to_owned());
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

/// How often all jobs ran.
fn all_runs() -> usize {
    RUNS.iter().map(|runs| usize::from(runs.load(Relaxed))).sum()
}

/// The storages have types of their own and no common name; `$open` makes one, `$clear` empties it,
/// `$waiting` and `$done` count what is in it.
macro_rules! measure {
    ($open:expr, $clear:expr, $waiting:expr, $done:expr, $jobs:expr, drain $drain:expr, fail $fail:expr) => {{
        let fill = |jobs: usize| async move {
            let mut storage = $open();
            for start in (0..jobs).step_by(100) {
                let batch = (start..(start + 100).min(jobs)).map(Job::new).collect();
                storage.push_bulk(batch).await.expect("a batch is stored");
            }
        };
        macro_rules! drain {
            ($handler:expr) => {{
                let storage = $open().poll_with_interval(Duration::from_millis(5));
                let worker = WorkerBuilder::new(format!("peer-{}-{}", stringify!($handler), std::process::id())).backend(storage);
                let running = worker.concurrency(50).parallelize(tokio::spawn).build($handler).run();
                let started = Instant::now();
                tokio::time::timeout(Duration::from_secs(300), running).await.expect("in time").expect("a good end");
                started.elapsed()
            }};
        }

        $clear().await;
        let started = Instant::now();
        let tasks: Vec<_> = (0..16)
            .map(|first| {
                let mut storage = $open();
                tokio::spawn(async move {
                    for i in (first..$jobs).step_by(16) {
                        storage.push(Job::new(i)).await.expect("a job is stored");
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.expect("a task ends well");
        }
        report("a", $jobs, started.elapsed());
        expect("jobs stored", $waiting().await, $jobs);

        $clear().await;
        let started = Instant::now();
        fill($jobs).await;
        report("b", $jobs, started.elapsed());
        expect("jobs stored", $waiting().await, $jobs);

        $clear().await;
        begin($drain);
        fill($drain).await;
        let took = drain!(succeeds);
        expect("jobs done", $done().await, $drain);
        expect("runs", all_runs(), $drain);
        report("c", $drain, took);

        if let Some(jobs) = $fail {
            $clear().await;
            begin(jobs);
            fill(jobs).await;
            let took = drain!(fails_twice);
            expect("jobs done", $done().await, jobs);
            expect("runs", all_runs(), 3 * jobs);
            report("d", jobs, took);
        }
        $clear().await;
    }};
}

async fn on_sqlite(file: &str, jobs: usize) {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(30))
        .pragma("journal_mode", "WAL");
    // The set-up switches its own connection to `synchronous=OFF`; the measured ones are opened anew.
    let first = sqlx::SqlitePool::connect_with(options.clone()).await.expect("a database");
    apalis_sqlite::SqliteStorage::setup(&first).await.expect("tables");
    first.close().await;
    let options = options.pragma("synchronous", "FULL");
    let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.expect("a database");
    let config = apalis_sqlite::Config::default().queue("peers").batch_size(100);
    let (pool, config) = (&pool, &config);
    let open = || apalis_sqlite::SqliteStorage::<Job>::new(pool).with_config(config.clone());
    let clear = || async { drop(sqlx::query("delete from Jobs").execute(pool).await.expect("an empty table")) };
    let count = |text: &'static str| async move {
        let count: i64 = sqlx::query_scalar(text).fetch_one(pool).await.expect("a count");
        usize::try_from(count).unwrap_or(0)
    };
    let stored = || count("select count(*) from Jobs");
    let done = || count("select count(*) from Jobs where status = 'Done'");
    measure!(open, clear, stored, done, jobs, drain jobs, fail Some(jobs / 2));
}

async fn on_postgres(url: &str, jobs: usize) {
    let pool = PgPoolOptions::new().max_connections(20).connect(url).await.expect("a database");
    apalis_postgres::PostgresStorage::setup(&pool).await.expect("tables");
    let config = apalis_postgres::Config::default().queue("peers").batch_size(100);
    let (pool, config) = (&pool, &config);
    let open = || apalis_postgres::PostgresStorage::<Job>::new(pool).with_config(config.clone());
    let clear = || async { drop(sqlx::query("truncate apalis.jobs").execute(pool).await.expect("an empty table")) };
    let count = |text: &'static str| async move {
        let count: i64 = sqlx::query_scalar(text).fetch_one(pool).await.expect("a count");
        usize::try_from(count).unwrap_or(0)
    };
    let stored = || count("select count(*) from apalis.jobs");
    let done = || count("select count(*) from apalis.jobs where status = 'Done'");
    measure!(open, clear, stored, done, jobs, drain jobs, fail Some(jobs / 2));
}

async fn on_redis(url: &str, jobs: usize) {
    let connection = apalis_redis::connect(url).await.expect("a connection");
    let config = apalis_redis::Config::default().queue("peers").batch_size(100);
    let (connection, config) = (&connection, &config);
    let open = || apalis_redis::RedisStorage::<Job>::new(connection.clone()).with_config(config.clone());
    let clear = || async {
        redis::cmd("FLUSHDB").query_async::<()>(&mut connection.clone()).await.expect("an empty database");
    };
    let size = |command: &'static str, key: String| async move {
        redis::cmd(command).arg(key).query_async::<usize>(&mut connection.clone()).await.expect("a count")
    };
    let stored = || size("HLEN", config.job_data_hash());
    let done = || size("SCARD", config.done_jobs_set());
    measure!(open, clear, stored, done, jobs, drain jobs.min(5_000), fail None::<usize>);
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let jobs = std::env::var("JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(10_000).min(MOST);
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "sqlite", file] => on_sqlite(file, jobs).await,
        [_, "postgres", url] => on_postgres(url, jobs).await,
        [_, "redis", url] => on_redis(url, jobs).await,
        _ => {
            eprintln!("usage: PEER=… JOBS=… peer-apalis sqlite FILE | postgres URL | redis URL");
            std::process::exit(2);
        }
    }
}
