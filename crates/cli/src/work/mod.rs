//! `redrive work`: a shell command for each job.

mod args;
mod capture;
mod ending;
pub(crate) mod guard;
mod idle;
mod process;
mod runnable;
mod size;
mod teller;

pub(crate) use args::Args;

use crate::exit::Failed;
use crate::log;
use guard::Guard;
use process::Order;
use redrive_worker::{Cancelled, Client, ClientError, Context, Event, Outcome, Retry, Worker};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use teller::Teller;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Between the end of a command that was told to end and the worker's giving up on it.
const MARGIN: Duration = Duration::from_secs(1);
/// How long one request for jobs waits. A worker that stops hears the last one out: one that ends by
/// itself should not take long for that.
const POLL: Duration = Duration::from_secs(2);
const POLL_UNTIL_EMPTY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.client()?;
    runnable::check(&args.exec, args.memory_kib())?;
    let teller = Arc::new(Teller::new(args));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    runtime.block_on(work(args, &client, &teller))
}

async fn work(args: &Args, client: &Client, teller: &Arc<Teller>) -> Result<(), Failed> {
    let (broken, breaks) = watch::channel(None);
    let task = Arc::new(Task { order: args.order(guard()), teller: Arc::clone(teller), broken });
    let worker = built(args, client, args.retry()?.as_ref(), &task).map_err(failed)?;
    let stop = stop(args, breaks.clone())?;
    teller.begins(args);
    let summary = worker.run_until(stop).await.map_err(failed)?;
    teller.summary(&summary);
    let broken = breaks.borrow().clone();
    broken.map_or(Ok(()), |reason| Err(Failed::invalid(reason)))
}

/// What is done for each job.
struct Task {
    order: Order,
    teller: Arc<Teller>,
    /// Why the command cannot run here, once that is known: then the worker takes no further jobs.
    broken: watch::Sender<Option<String>>,
}

fn built(args: &Args, client: &Client, retry: Option<&Retry>, task: &Arc<Task>) -> Result<Worker, ClientError> {
    let told = Arc::clone(&task.teller);
    let mut builder = Worker::builder(client)
        .concurrency(args.concurrency())
        // A command takes long beside a fetch; a job that waits here could run elsewhere.
        .most_prefetched(0)
        .lease(args.lease())
        .poll(if args.once || args.drain { POLL_UNTIL_EMPTY } else { POLL })
        .stop_within(args.grace())
        .cancel_grace(task.order.kill_after + MARGIN)
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
    let task = Arc::clone(task);
    let handler = move |context: Context| {
        let task = Arc::clone(&task);
        async move { task.attempt(&context).await }
    };
    if args.types.is_empty() {
        return builder.handle_all(handler).build();
    }
    let kinds = args.types.iter();
    kinds.fold(builder, |builder, kind| builder.handle_whole(kind, handler.clone())).build()
}

/// The guard; a worker without one works as well, until it is killed.
fn guard() -> Option<Arc<Guard>> {
    let started = Guard::start();
    let told = |error| log::warn(format_args!("nobody ends the commands if this worker is killed: {error}"));
    started.map_err(told).ok().map(Arc::new)
}

impl Task {
    /// One run of one job.
    async fn attempt(&self, context: &Context) -> Outcome {
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
        let ended = process::run(&self.order, job.envelope_json().as_bytes(), &environment, stop).await;
        match ended {
            Ok(ended) => {
                if ended.stdout.is_cut() {
                    let (kept, total) = (self.order.max_output, ended.stdout.total);
                    self.teller.note(job.id(), format!("output cut: {kept} of {total} bytes kept"));
                }
                let outcome = ending::outcome(&ended, &self.order, why == Some(Cancelled::TimedOut));
                if let Outcome::Declined(reason) = &outcome {
                    self.give_up(reason);
                }
                outcome
            }
            Err(error) => {
                let reason = format!("cannot start a shell: {error}");
                // Too many processes, or too little memory, may pass.
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) {
                    self.give_up(&reason);
                }
                Outcome::decline(reason)
            }
        }
    }

    /// The command cannot run here, whatever the job: the worker stops.
    fn give_up(&self, reason: &str) {
        self.broken.send_if_modified(|broken| {
            let first = broken.is_none();
            if first {
                *broken = Some(format!(
                    "{reason}; the worker stops. Its jobs were given back and have spent no attempt: mend --exec or \
                     what it needs, and start the worker again"
                ));
            }
            first
        });
    }
}

/// Completes when the worker should stop: at a signal, when there is nothing left to do, or when the command
/// cannot run.
fn stop(args: &Args, mut breaks: watch::Receiver<Option<String>>) -> Result<impl Future<Output = ()> + use<>, Failed> {
    let listen = |kind| signal(kind).map_err(|error| Failed::unreachable(format!("cannot wait for signals: {error}")));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let idle = idle::watch(args)?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = idle => {}
            _ = breaks.wait_for(Option::is_some) => {}
        }
    })
}

fn failed(error: ClientError) -> Failed {
    match error {
        ClientError::Invalid(message) => Failed::usage(message),
        other => Failed::unreachable(other),
    }
}
