//! Jobs per second through the client and the worker: jobs that are enqueued one by one by 16 callers, and jobs that do
//! nothing, run by a worker. In-process, where every write is flushed to disk before its answer, or over HTTP.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --bin worker -- [--server URL] [--jobs N] [--concurrency N]`
//! prints one JSON line for each phase; `--phases a` or `--phases c` measures one of them. Without a server the
//! engine is in this process.

use redrive_worker::{Client, Event, Failure, NewJob, Worker};
use serde_json::{Value, json};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

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
        phases: option("--phases").unwrap_or_else(|| "ac".to_owned()),
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
    if plan.phases.contains('c') {
        report("c", place, plan, round, drained(client, plan).await?);
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

/// The time from the start of a worker to the end of the last job.
async fn drained(client: &Client, plan: &Plan) -> Outcome<Duration> {
    fill(client, plan.jobs).await?;
    let (left, last) = (AtomicU64::new(plan.jobs), Arc::new(Notify::new()));
    let ended = Arc::clone(&last);
    let worker = Worker::builder(client)
        .concurrency(plan.concurrency)
        .handle("bench.noop", |_: Value| async { Ok::<(), Failure>(()) })
        .on_event(move |event| {
            if matches!(event, Event::Settled { .. }) && left.fetch_sub(1, Ordering::Relaxed) == 1 {
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

async fn fill(client: &Client, jobs: u64) -> Outcome<()> {
    const BATCH: u64 = 1_000;
    for first in (0..jobs).step_by(BATCH as usize) {
        let batch = (first..jobs.min(first + BATCH)).map(job);
        client.enqueue_all(batch.collect::<Result<_, _>>()?).await?;
    }
    Ok(())
}
