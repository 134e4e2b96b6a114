//! Executors, each of which runs one handler at a time, from the job to its report.

use super::runner::Runner;
use crate::delay::GrowingDelay;
use crate::handler::Running;
use crate::run::Run;
use crate::transport::{Ending, RunReport};
use crate::{Cancelled, Context, Event, Failure, Job, Outcome};
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// Runs one job after the other until the worker stops.
pub(super) async fn run<S: Send + Sync + 'static>(runner: Arc<Runner<S>>) {
    let mut next = None;
    loop {
        let Some(run) = next.take().or_else(|| runner.buffer().next_if_permitted(&runner.work)) else {
            let Ok(permit) = runner.work.acquire().await else { return };
            permit.forget();
            next = runner.buffer().next();
            continue;
        };
        let started = Instant::now();
        let ending = attempt(&runner, &run).await;
        next = end(&runner, run, ending, started.elapsed());
        // Handlers that never wait would otherwise starve the other tasks of the thread.
        tokio::task::coop::consume_budget().await;
    }
}

/// Records how a run ended; returns a job that waited for it.
fn end<S: Send + Sync + 'static>(
    runner: &Runner<S>,
    run: Arc<Run>,
    ending: Option<Ending>,
    took: Duration,
) -> Option<Arc<Run>> {
    let Some(ending) = ending else {
        let cancelled = run.cancellation.reason() == Some(Cancelled::JobCancelled);
        let count = if cancelled { &runner.tally.cancelled } else { &runner.tally.lost };
        count.fetch_add(1, Ordering::Relaxed);
        let next = runner.buffer().dropped(&run);
        runner.room.notify_one();
        return next;
    };
    match &ending {
        Ending::Done(_) => runner.emit(&Event::Done(&run.job)),
        Ending::Failed(failure) => runner.emit(&Event::Failed(&run.job, failure)),
        Ending::Released(delay) => runner.emit(&Event::Released(&run.job, *delay)),
        Ending::Declined { reason, wait } => runner.decline(&run.job, reason, *wait),
    }
    // A job that could not run does not count in the average, and does not end the pause of its queue.
    let took = if let Ending::Declined { .. } = ending { None } else { Some(took) };
    if took.is_some() {
        runner.pauses().ran(&run.job.queue);
    }
    let next = runner.buffer().ended(RunReport { run, ending }, took);
    runner.reported.notify_one();
    next
}

/// One run. Returns `None` if the lease is lost: then there is nothing to report.
pub(crate) async fn attempt<S: Send + Sync + 'static>(runner: &Runner<S>, run: &Arc<Run>) -> Option<Ending> {
    if run.is_lost() {
        return None;
    }
    let Some(endpoint) = runner.registry.endpoint(&run.job.kind) else {
        return Some(declined(&run.job, no_handler(&run.job.kind)));
    };
    runner.emit(&Event::Started(&run.job));
    let context = Context { run: Arc::clone(run), shared: Arc::clone(&runner.shared) };
    let mut handler = Guarded::start(|| runner.registry.call(endpoint, context));
    let timeout = overdue(runner, run);
    let outcome = tokio::select! {
        biased;
        outcome = handler.outcome() => Some(outcome),
        _ = run.cancellation.cancelled() => None,
        () = timeout => {
            run.cancellation.cancel(Cancelled::TimedOut);
            None
        }
    };
    // The handler may have ended because of the signal before it was seen here.
    let Some(why) = run.cancellation.reason() else { return outcome.map(|outcome| ending_of(run, outcome)) };
    runner.emit(&Event::Cancelled(&run.job, why));
    let late = match outcome {
        Some(outcome) => Some(outcome),
        None => tokio::time::timeout(runner.settings.cancel_grace, handler.outcome()).await.ok(),
    };
    match why {
        Cancelled::LeaseLost | Cancelled::JobCancelled => None,
        Cancelled::TimedOut => {
            Some(late.map_or_else(|| Ending::Failed(timed_out(runner, run)), |late| ending_of(run, late)))
        }
        Cancelled::Stopping => Some(late.map_or(Ending::Released(Duration::ZERO), |late| ending_of(run, late))),
    }
}

/// Completes when the run has taken too long.
async fn overdue<S: Send + Sync + 'static>(runner: &Runner<S>, run: &Run) {
    let own = runner.registry.timeout(&run.job.kind).or(runner.settings.timeout);
    let own = own.and_then(|timeout| Instant::now().checked_add(timeout));
    match [own, run.deadline()].into_iter().flatten().min() {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn timed_out<S: Send + Sync + 'static>(runner: &Runner<S>, run: &Run) -> Failure {
    let own = runner.registry.timeout(&run.job.kind).or(runner.settings.timeout);
    let limit = [own, run.lease.timeout].into_iter().flatten().min().unwrap_or_default();
    Failure::new("timeout", format_args!("the run took longer than {limit:?}"))
}

fn ending_of(run: &Run, outcome: Outcome) -> Ending {
    match outcome {
        Outcome::Done(result) => Ending::Done(result),
        Outcome::Failed(failure) => Ending::Failed(failure),
        Outcome::Snoozed(delay) => Ending::Released(delay),
        Outcome::Declined(reason) => declined(&run.job, reason),
    }
}

fn declined(job: &Job, reason: String) -> Ending {
    Ending::Declined { reason, wait: GrowingDelay::for_others(job.releases) }
}

pub(crate) fn no_handler(kind: &str) -> String {
    format!("this worker has no handler for the type {kind:?}; add one, or keep such jobs in a queue of their own")
}

/// A handler whose panics are failures.
struct Guarded(Option<Running>, Option<Failure>);

impl Guarded {
    fn start(call: impl FnOnce() -> Running) -> Self {
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(running) => Self(Some(running), None),
            Err(panic) => Self(None, Some(panicked(&*panic))),
        }
    }

    /// How it ends. It completes only once.
    async fn outcome(&mut self) -> Outcome {
        poll_fn(|cx| {
            if let Some(failure) = self.1.take() {
                return Poll::Ready(Outcome::Failed(failure));
            }
            let Some(running) = &mut self.0 else { return Poll::Pending };
            match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(outcome)) => {
                    self.drop_quietly();
                    Poll::Ready(outcome)
                }
                Err(panic) => {
                    self.drop_quietly();
                    Poll::Ready(Outcome::Failed(panicked(&*panic)))
                }
            }
        })
        .await
    }

    /// The values of a handler may panic when they are dropped.
    fn drop_quietly(&mut self) {
        let running = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(running)));
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.drop_quietly();
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new("panic", text.unwrap_or("the handler panicked with a value that is not text"))
}
