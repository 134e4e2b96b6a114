//! `redrive serve`: clock, randomness, store, engine and server, put together.

use crate::config::{self, Built, Flags};
use crate::exit::Failed;
use redrive_engine::{Engine, SystemClock, SystemRandomness, pace};
use redrive_server::{Log, Server, ServerSettings};
use redrive_store::{Memory, Queue, State, Store};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
}

const EXAMPLES: &str = "\
Examples:
  redrive serve --listen 127.0.0.1:8080 --data ./redrive-data
  redrive serve --listen 0.0.0.0:8080 --data /var/lib/redrive --api-key-file /etc/redrive.keys
  REDRIVE_LIMITS_BATCH=5000 redrive serve --config redrive.toml

Settings come from flags, else from REDRIVE_* in the environment, else from redrive.toml;
`redrive config` lists them. SIGTERM and SIGINT stop the server in good order.";

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let built = config::load(&args.flags)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(built.threads).enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start threads: {error}")))?;
    runtime.block_on(serve(built))
}

async fn serve(built: Built) -> Result<(), Failed> {
    let stop = stop_signal()?;
    let store = open(&built)?;
    let clock = Arc::new(SystemClock::default());
    let randomness = Arc::new(SystemRandomness::default());
    let engine = Arc::new(Engine::new(store, clock, randomness, built.engine));
    let failed = |error: redrive_engine::EngineError| Failed::unreachable(error);
    engine.recall_pauses().await.map_err(failed)?;
    let queues = engine.queues().await.map_err(failed)?;
    let listener = TcpListener::bind(built.listen)
        .await
        .map_err(|error| Failed::unreachable(format!("cannot listen on {}: {error}", built.listen)))?;
    let address = listener.local_addr().unwrap_or(built.listen);
    let keys = if built.keys.is_empty() { "no key needed" } else { "callers need a key" };
    log(&format!("redrive {} on http://{address} ({keys})", env!("CARGO_PKG_VERSION")));
    log("store: memory; what it holds is gone when the server stops");
    log(&found(&queues));

    let server = Server::new(
        Arc::clone(&engine),
        ServerSettings { limits: built.limits, keys: built.keys, backend: "memory", log: Log::to(log) },
    );
    let (over, ended) = watch::channel(false);
    let sweeper = tokio::spawn(pace::run(engine, wait_for(ended), |error| log(&format!("sweep: {error}"))));
    server.serve(listener, wait_for(stop)).await;
    log("stopping: no new connections; running requests are answered");
    over.send_replace(true);
    let _ = sweeper.await;
    log("stopped");
    Ok(())
}

fn open(built: &Built) -> Result<Arc<dyn Store>, Failed> {
    std::fs::create_dir_all(&built.data)
        .map_err(|error| Failed::unreachable(format!("cannot make {}: {error}", built.data.display())))?;
    Ok(Arc::new(Memory::new()))
}

/// What the store held when the server started, in a line.
fn found(queues: &[Queue]) -> String {
    let count = |state: State| queues.iter().map(|queue| queue.count(state)).sum::<usize>();
    let total: usize = State::ALL.into_iter().map(count).sum();
    let parts: Vec<String> = State::ALL
        .into_iter()
        .filter(|state| count(*state) > 0)
        .map(|state| format!("{} {state}", count(state)))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    format!("found {total} jobs in {} queues{parts}", queues.len())
}

/// Becomes true at the first SIGTERM or SIGINT.
fn stop_signal() -> Result<watch::Receiver<bool>, Failed> {
    let listen = |kind| signal(kind).map_err(|error| Failed::unreachable(format!("cannot wait for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        sender.send_replace(true);
        // Kept, so that whoever waits is told by the value and not by the end of the channel.
        sender.closed().await;
    });
    Ok(receiver)
}

async fn wait_for(mut flag: watch::Receiver<bool>) {
    let _ = flag.wait_for(|set| *set).await;
}

/// One line for people on standard error.
fn log(line: &str) {
    eprintln!("redrive: {line}");
}
