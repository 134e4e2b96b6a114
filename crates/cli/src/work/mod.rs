//! `redrive work`: a shell command for each job, or a worker of Azolla.

mod args;
mod azolla;
mod capture;
mod ending;
pub(crate) mod guard;
mod idle;
mod process;
mod reporter;
mod runnable;
mod size;

pub(crate) use args::Args;

use crate::client::CA_HINT;
use crate::exit::Failed;
use crate::log;
use crate::signals::{self, Signals};
use azolla::AzollaWorkers;
use guard::Guard;
use idle::HeldQueues;
use process::CommandSpec;
use redrive_worker::{Cancelled, Client, ClientError, Context, Event, Outcome, Retry, Worker};
use reporter::Reporter;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How much longer the worker waits than a command may take to end.
const MARGIN: Duration = Duration::from_secs(1);
/// How long one request for jobs waits. A worker that stops waits for the last one: with `--once` and `--drain` that
/// should be short.
const POLL: Duration = Duration::from_secs(2);
const POLL_UNTIL_EMPTY: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args) -> Result<(), Failed> {
    let client = args.client()?;
    log::start(log::Settings::without("redrive_worker"));
    runnable::check(args.command(), args.memory_kib())?;
    let reporter = Arc::new(Reporter::new(args));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::unreachable(format!("cannot start: {error}")))?;
    runtime.block_on(work(args, &client, &reporter))
}

async fn work(args: &Args, client: &Client, reporter: &Arc<Reporter>) -> Result<(), Failed> {
    let (broken, breaks) = watch::channel(None);
    let azolla = match &args.azolla_worker {
        Some(binary) => Some((binary.clone(), AzollaWorkers::start().await?)),
        None => None,
    };
    let task = Arc::new(Task { spec: args.spec(guard()), azolla, reporter: Arc::clone(reporter), broken });
    let worker = build_worker(args, client, args.retry()?.as_ref(), &task).map_err(failed)?;
    let idle = idle::watch(args, reporter)?;
    let signals = signals::count()?;
    let stops =
        StopConditions { signals, breaks, reason: Mutex::new((StopReason::Asked, 2)), reporter: Arc::clone(reporter) };
    reporter.starting(args);
    let summary = worker.run_until_aborted(stops.stop(idle), stops.abort()).await.map_err(failed)?;
    reporter.summary(&summary);
    let (reason, _) = stops.reason().clone();
    reason.result()
}

/// Runs the command for each job.
struct Task {
    spec: CommandSpec,
    /// The worker of Azolla that runs in place of a command.
    azolla: Option<(String, AzollaWorkers)>,
    reporter: Arc<Reporter>,
    /// Why the command cannot run here, once that is known: then the worker stops.
    broken: watch::Sender<Option<String>>,
}

fn build_worker(args: &Args, client: &Client, retry: Option<&Retry>, task: &Arc<Task>) -> Result<Worker, ClientError> {
    let events = Arc::clone(&task.reporter);
    let mut builder = Worker::builder(client)
        .concurrency(args.concurrency())
        // A command takes much longer than a fetch, and a job that waits here could run elsewhere.
        .max_prefetched(0)
        .lease(args.lease())
        .poll(if args.once || args.drain { POLL_UNTIL_EMPTY } else { POLL })
        .stop_within(args.grace())
        .cancel_grace(task.spec.kill_after + MARGIN)
        .on_event(move |event: &Event<'_>| events.event(event));
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

/// The guard. Without it, the commands go on if the worker is killed.
fn guard() -> Option<Arc<Guard>> {
    let started = Guard::start();
    let warn = |error| tracing::warn!("the commands will not be ended if this worker is killed: {error}");
    started.map_err(warn).ok().map(Arc::new)
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
        if let Some((parent, state)) = job.trace() {
            environment.push(("TRACEPARENT", parent));
            environment.extend(state.map(|state| ("TRACESTATE", state)));
        }
        let mut why = None;
        let stop = async { why = Some(context.cancellation().await) };
        let arguments = self.azolla.as_ref().map(|(binary, workers)| workers.arguments(binary, job));
        let spec = CommandSpec { arguments: arguments.unwrap_or_default(), ..self.spec.clone() };
        let ended = process::run(&spec, job.envelope_json().as_bytes(), &environment, stop).await;
        match ended {
            Ok(ended) => {
                if ended.stdout.is_cut() {
                    let (kept, total) = (self.spec.max_output, ended.stdout.total);
                    self.reporter.note(job.id(), format!("output cut: {kept} of {total} bytes stored"));
                }
                let reported = self.azolla.as_ref().and_then(|(_, workers)| workers.outcome(job.id(), &ended));
                let overdue = why == Some(Cancelled::TimedOut);
                let outcome = reported.unwrap_or_else(|| ending::outcome(&ended, &self.spec, overdue));
                if let Outcome::Declined(reason) = &outcome {
                    self.give_up(reason);
                }
                outcome
            }
            Err(error) => {
                let reason = format!("cannot start a shell: {error}");
                // A lack of processes or memory may be temporary.
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
                    "{reason}; the worker stops. Its jobs were released and have spent no attempt: fix --exec or \
                     what it needs, and start the worker again"
                ));
            }
            first
        });
    }
}

/// Why the worker stops.
#[derive(Clone, Debug)]
enum StopReason {
    /// A signal asked for it, or the server did.
    Asked,
    /// There is nothing left to do, except for jobs in paused queues.
    Idle(HeldQueues),
    /// The command cannot run here.
    Broken(String),
}

impl StopReason {
    fn result(self) -> Result<(), Failed> {
        match self {
            Self::Idle(held) if !held.0.is_empty() => Err(Failed::invalid(format!("some jobs were not run: {held}"))),
            Self::Asked | Self::Idle(_) => Ok(()),
            Self::Broken(reason) => Err(Failed::invalid(reason)),
        }
    }
}

/// The conditions that stop the worker.
struct StopConditions {
    signals: watch::Receiver<Signals>,
    breaks: watch::Receiver<Option<String>>,
    /// Why the worker stops, once it does, and the number of the signal that ends everything immediately.
    reason: Mutex<(StopReason, u32)>,
    reporter: Arc<Reporter>,
}

impl StopConditions {
    /// Completes when the worker should stop: at a signal, when there is nothing left to do, or when the
    /// command cannot run.
    async fn stop(&self, idle: impl Future<Output = HeldQueues>) {
        let mut breaks = self.breaks.clone();
        let reason = tokio::select! {
            _ = signals::wait_for(self.signals.clone(), 1) => StopReason::Asked,
            held = idle => StopReason::Idle(held),
            Ok(reason) = breaks.wait_for(Option::is_some) => StopReason::Broken(reason.clone().unwrap_or_default()),
        };
        let last = match reason {
            StopReason::Asked => 2,
            StopReason::Idle(_) | StopReason::Broken(_) => self.signals.borrow().count + 1,
        };
        *self.reason() = (reason, last);
    }

    /// Completes at the signal after that.
    async fn abort(&self) {
        let last = self.reason().1;
        signals::wait_for(self.signals.clone(), last).await;
        self.reporter.aborting();
    }

    fn reason(&self) -> MutexGuard<'_, (StopReason, u32)> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(error: ClientError) -> Failed {
    match error {
        ClientError::Invalid(message) => Failed::usage(message),
        ClientError::Untrusted(message) => Failed::unreachable(format!("{message}; {CA_HINT}")),
        other => Failed::unreachable(other),
    }
}
