//! Jobs per second through the worker, with a handler that does nothing: over HTTP and in-process,
//! every write flushed to disk before its answer.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --bin worker -- [--jobs N] [--concurrency N]`
//! prints one JSON line for each.

use redrive_engine::{Engine, Layers, Settings, SystemClock, SystemRandomness, sweeper};
use redrive_server::{Server, ServerSettings};
use redrive_store::{Embedded, embedded::Options};
use redrive_worker::{Client, Event, Failure, NewJob, Worker};
use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::Notify;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What is measured.
struct Plan {
    jobs: u64,
    concurrency: usize,
    rounds: usize,
}

fn main() -> Outcome<()> {
    let number = |name: &str, default: u64| {
        let mut given = std::env::args().skip_while(|arg| arg != name).skip(1);
        given.next().map_or(Ok(default), |text| text.parse::<u64>())
    };
    let plan = Plan {
        jobs: number("--jobs", 200_000)?,
        concurrency: usize::try_from(number("--concurrency", 50)?)?,
        rounds: usize::try_from(number("--rounds", 3)?)?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(&plan))
}

async fn measure(plan: &Plan) -> Outcome<()> {
    for round in 1..=plan.rounds {
        let folder = folder("in-process")?;
        let client = Client::open(&folder).await?;
        report("in_process", plan, round, drained(&client, plan).await?);
        client.close().await?;
        std::fs::remove_dir_all(&folder)?;
        let folder = self::folder("http")?;
        report("http", plan, round, served(&folder, plan).await?);
        std::fs::remove_dir_all(&folder)?;
    }
    Ok(())
}

fn folder(name: &str) -> Outcome<PathBuf> {
    let folder = std::env::current_dir()?.join(format!("target/bench-worker-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn report(place: &str, plan: &Plan, round: usize, took: Duration) {
    let rate = plan.jobs as f64 / took.as_secs_f64();
    let line = json!({
        "bench": "worker_noop",
        "place": place,
        "round": round,
        "jobs": plan.jobs,
        "concurrency": plan.concurrency,
        "seconds": took.as_secs_f64(),
        "jobs_per_second": rate.round(),
    });
    println!("{line}");
}

/// Through a server on a loopback port of this process.
async fn served(folder: &Path, plan: &Plan) -> Outcome<Duration> {
    let (store, _) = Embedded::open(folder, Options::default())?;
    let store = Arc::new(store);
    let layers = Layers::ojs_default().map_err(|problems| problems.to_string())?;
    let (clock, randomness) = (Arc::new(SystemClock::default()), Arc::new(SystemRandomness::default()));
    let engine = Arc::new(Engine::new(Arc::clone(&store) as _, clock, randomness, Settings::new(layers)));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let server = Server::new(Arc::clone(&engine), ServerSettings::new("embedded"));
    let sweeper = tokio::spawn(sweeper::run(engine, std::future::pending(), |error| eprintln!("{error}")));
    let serving = tokio::spawn(async move { server.serve(listener, std::future::pending()).await });
    let took = drained(&Client::http(&url)?, plan).await;
    serving.abort();
    sweeper.abort();
    let _ = (serving.await, sweeper.await);
    store.close().map_err(|error| error.to_string())?;
    took
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
        let batch = (first..jobs.min(first + BATCH)).map(|number| {
            NewJob::new("bench.noop", json!({ "number": number, "user": "u-1729", "template": "welcome" }))
        });
        client.enqueue_all(batch.collect::<Result<_, _>>()?).await?;
    }
    Ok(())
}
