//! `redrive work`: a shell command for each job.

mod args;
mod capture;
mod ending;
pub(crate) mod guard;
mod idle;
mod process;
mod size;
mod teller;

pub(crate) use args::Args;

use crate::exit::Failed;
use guard::Guard;
use process::Order;
use redrive_worker::{Cancelled, Client, ClientError, Context, Event, Outcome, Retry, Summary, Worker};
use std::sync::Arc;
use std::time::Duration;
use teller::Teller;
use tokio::signal::unix::{SignalKind, signal};

/// Between the end of a command that was told to end and the worker's giving up on it.
const MARGIN: Duration = Duration::from_secs(1);
/// How long one request for jobs waits. A worker that stops hears the last one out: one that ends by
/// itself should not take long for that.
const POLL: Duration = Duration::from_secs(2);
const POLL_UNTIL_EMPTY: Duration = Duration::from_millis(100);
/// How long a job that this worker does not take is left to others.
const FOR_OTHERS: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.client()?;
    let teller = Arc::new(Teller::new(args));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    let summary = runtime.block_on(work(args, &client, &teller))?;
    teller.summary(&summary);
    Ok(())
}

async fn work(args: &Args, client: &Client, teller: &Arc<Teller>) -> Result<Summary, Failed> {
    let worker = built(args, client, args.retry()?.as_ref(), teller).map_err(failed)?;
    let stop = stop(args)?;
    teller.begins(args);
    worker.run_until(stop).await.map_err(failed)
}

fn built(args: &Args, client: &Client, retry: Option<&Retry>, teller: &Arc<Teller>) -> Result<Worker, ClientError> {
    let order = Arc::new(args.order(guard()));
    let told = Arc::clone(teller);
    let mut builder = Worker::builder(client)
        .concurrency(args.concurrency())
        // A command takes long beside a fetch; a job that waits here could run elsewhere.
        .most_prefetched(0)
        .lease(args.lease())
        .poll(if args.once || args.drain { POLL_UNTIL_EMPTY } else { POLL })
        .stop_within(args.grace())
        .cancel_grace(order.kill_after + MARGIN)
        .on_event(move |event: &Event<'_>| told.event(event));
    for queue in &args.queues {
        builder = builder.queue(queue);
    }
    if let Some(name) = &args.name {
        builder = builder.name(name);
    }
    if let Some(retry) = retry {
        builder = builder.retry(retry);
    }
    let told = Arc::clone(teller);
    let builder = builder.handle_all(move |context: Context| {
        let (order, told) = (Arc::clone(&order), Arc::clone(&told));
        async move {
            if told.takes(context.job().kind()) {
                attempt(&order, &context, &told).await
            } else {
                Outcome::snooze(FOR_OTHERS)
            }
        }
    });
    builder.build()
}

/// The guard; a worker without one works as well, until it is killed.
fn guard() -> Option<Arc<Guard>> {
    let started = Guard::start();
    let told = |error| eprintln!("redrive: nobody ends the commands if this worker is killed: {error}");
    started.map_err(told).ok().map(Arc::new)
}

/// One run of one job.
async fn attempt(order: &Order, context: &Context, teller: &Teller) -> Outcome {
    let job = context.job();
    let mut environment = vec![
        ("REDRIVE_JOB_ID", job.id().to_owned()),
        ("REDRIVE_JOB_TYPE", job.kind().to_owned()),
        ("REDRIVE_JOB_QUEUE", job.queue().to_owned()),
        ("REDRIVE_JOB_ATTEMPT", job.attempt().to_string()),
    ];
    environment.extend(job.max_attempts().map(|most| ("REDRIVE_JOB_MAX_ATTEMPTS", most.to_string())));
    let mut why = None;
    let stop = async { why = Some(context.cancellation().await) };
    let ended = process::run(order, job.envelope_json().as_bytes(), &environment, stop).await;
    match ended {
        Ok(ended) => {
            if ended.stdout.is_cut() {
                teller.note(job.id(), format!("output cut: {} of {} bytes kept", order.max_output, ended.stdout.total));
            }
            ending::outcome(&ended, order, why == Some(Cancelled::TimedOut))
        }
        Err(error) => ending::not_started(&error),
    }
}

/// Completes when the worker should stop: at a signal, or when there is nothing left to do.
fn stop(args: &Args) -> Result<impl Future<Output = ()> + use<>, Failed> {
    let listen = |kind| signal(kind).map_err(|error| Failed::unreachable(format!("cannot wait for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let idle = idle::watch(args)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = idle => {}
        }
    })
}

fn failed(error: ClientError) -> Failed {
    match error {
        ClientError::Invalid(message) => Failed::usage(message),
        other => Failed::unreachable(other),
    }
}
