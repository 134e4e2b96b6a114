//! Jobs per second through the client and the worker, in the four phases in which peers are measured through theirs.
//! In-process, where every write is flushed to disk before its answer, or over HTTP.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --bin worker -- [--server URL] [--jobs N] [--concurrency N]`
//! prints one JSON line for each phase; `--phases cd` measures some of them. Without a server the engine is in this
//! process.

use redrive_policy::dialect::Dialect;
use redrive_worker::{Client, Context, Event, Failure, NewJob, Retry, Worker};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

type NewJobs = Result<Vec<NewJob>, redrive_worker::ClientError>;

/// How many callers enqueue at the same time, each one job after another.
const CALLERS: u64 = 16;

/// What is measured.
struct Plan {
    jobs: u64,
    concurrency: usize,
    rounds: usize,
    server: Option<String>,
    phases: String,
}

fn main() -> Outcome<()> {
    let option = |name: &str| std::env::args().skip_while(|arg| arg != name).nth(1);
    let number = |name: &str, default: u64| option(name).map_or(Ok(default), |text| text.parse::<u64>());
    let plan = Plan {
        jobs: number("--jobs", 200_000)?,
        concurrency: usize::try_from(number("--concurrency", 50)?)?,
        rounds: usize::try_from(number("--rounds", 3)?)?,
        server: option("--server"),
        phases: option("--phases").unwrap_or_else(|| "abcd".to_owned()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&plan))
}

async fn measure(plan: &Plan) -> Outcome<()> {
    for round in 1..=plan.rounds {
        if let Some(url) = &plan.server {
            phases("http", plan, round, &Client::http(url)?).await?;
            continue;
        }
        let folder = std::env::current_dir()?.join(format!("target/bench-worker-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let client = Client::open(&folder).await?;
        phases("in-process", plan, round, &client).await?;
        client.close().await?;
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

async fn phases(place: &str, plan: &Plan, round: usize, client: &Client) -> Outcome<()> {
    if plan.phases.contains('a') {
        report("a", place, plan, round, one_by_one(client, plan).await?);
    }
    if plan.phases.contains('b') {
        report("b", place, plan, round, in_batches(client, plan).await?);
    }
    if plan.phases.contains('c') {
        report("c", place, plan, round, drained(client, plan, 0).await?);
    }
    if plan.phases.contains('d') {
        report("d", place, plan, round, drained(client, plan, 2).await?);
    }
    Ok(())
}

fn report(phase: &str, place: &str, plan: &Plan, round: usize, took: Duration) {
    let rate = plan.jobs as f64 / took.as_secs_f64();
    let line = json!({
        "phase": phase,
        "place": place,
        "round": round,
        "jobs": plan.jobs,
        "seconds": took.as_secs_f64(),
        "jobs_per_second": rate.round(),
    });
    println!("{line}");
}

/// The time that it takes to enqueue jobs one by one. They wait in a queue that no worker asks for.
async fn one_by_one(client: &Client, plan: &Plan) -> Outcome<Duration> {
    let (next, jobs) = (Arc::new(AtomicU64::new(0)), plan.jobs);
    let mut callers = JoinSet::new();
    let started = Instant::now();
    for _ in 0..CALLERS {
        let (client, next) = (client.clone(), Arc::clone(&next));
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs {
                    return Ok::<_, redrive_worker::ClientError>(());
                }
                client.enqueue(job(number)?.queue("one-by-one")).await?;
            }
        });
    }
    for outcome in callers.join_all().await {
        outcome?;
    }
    Ok(started.elapsed())
}

fn job(number: u64) -> Result<NewJob, redrive_worker::ClientError> {
    NewJob::new("bench.noop", json!({ "i": number, "kind": "bench", "note": "x".repeat(64) }))
}

/// The time that it takes to enqueue jobs in batches of 100, one after another.
async fn in_batches(client: &Client, plan: &Plan) -> Outcome<Duration> {
    const BATCH: u64 = 100;
    let started = Instant::now();
    for first in (0..plan.jobs).step_by(BATCH as usize) {
        let batch = (first..plan.jobs.min(first + BATCH)).map(|number| Ok(job(number)?.queue("batches")));
        client.enqueue_all(batch.collect::<NewJobs>()?).await?;
    }
    Ok(started.elapsed())
}

/// The time from the start of a worker to the end of the last job. Each job fails so many times before it succeeds, and
/// is retried without a delay.
async fn drained(client: &Client, plan: &Plan, failures: u32) -> Outcome<Duration> {
    fill(client, plan.jobs, failures).await?;
    let (left, last) = (AtomicU64::new(plan.jobs), Arc::new(Notify::new()));
    let ended = Arc::clone(&last);
    let worker = Worker::builder(client)
        .concurrency(plan.concurrency)
        .handle("bench.noop", move |_: Value, context: Context| async move {
            if context.job().attempt() <= failures { Err(Failure::new("planned", "a planned failure")) } else { Ok(()) }
        })
        .on_event(move |event| {
            let completed = matches!(event, Event::Settled { state: "completed", .. });
            if completed && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                ended.notify_one();
            }
        })
        .build()?;
    let started = Instant::now();
    let mut took = Duration::ZERO;
    let summary = worker
        .run_until(async {
            last.notified().await;
            took = started.elapsed();
        })
        .await?;
    if summary.done != plan.jobs {
        return Err(format!("{} of {} jobs were done", summary.done, plan.jobs).into());
    }
    Ok(took)
}

async fn fill(client: &Client, jobs: u64, failures: u32) -> Outcome<()> {
    const BATCH: u64 = 1_000;
    let retry = at_once(failures + 1)?;
    for first in (0..jobs).step_by(BATCH as usize) {
        let batch = (first..jobs.min(first + BATCH)).map(|number| {
            let new = job(number)?;
            Ok(if failures > 0 { new.retry(retry.clone()) } else { new })
        });
        client.enqueue_all(batch.collect::<NewJobs>()?).await?;
    }
    Ok(())
}

/// The policy of `redrive bench` for jobs that fail: retried without a delay.
fn at_once(attempts: u32) -> Result<Retry, redrive_worker::ClientError> {
    let document = json!({
        "stop": { "max_attempts": attempts },
        "wait": { "strategy": "fixed", "delay": 0 },
        "retry": { "include_errors": ["planned"] },
    });
    Retry::written(Dialect::Azolla, document)
}
