//! Claiming jobs.

use super::executor;
use super::runner::{Mode, Runner};
use crate::delay::GrowingDelay;
use crate::transport::{Delivery, FetchRequest, TransportFuture};
use crate::{ClientError, Event};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How much longer than its wait a fetch may take when the worker stops.
const LAST_FETCH: Duration = Duration::from_secs(1);
/// A fetch that should have waited and came back this soon did not wait.
const TOO_SOON: Duration = Duration::from_millis(50);

/// Claims jobs until `stopped` completes.
///
/// # Errors
/// The server refuses the worker before it has delivered a job.
pub(super) async fn run<S: Send + Sync + 'static>(
    runner: &Arc<Runner<S>>,
    executors: &mut JoinSet<()>,
    stopped: impl Future<Output = ()>,
) -> Result<(), ClientError> {
    let mut stopped = pin!(stopped);
    let (mut unreachable, mut idle) = (GrowingDelay::unreachable(), GrowingDelay::idle());
    let mut welcome = false;
    loop {
        let count = tokio::select! {
            biased;
            () = &mut stopped => return Ok(()),
            count = room(runner) => count,
        };
        let open = runner.pauses().open(&runner.settings.queues);
        let queues = match open {
            Ok(queues) => queues,
            Err(until) => {
                tokio::select! {
                    biased;
                    () = &mut stopped => return Ok(()),
                    () = tokio::time::sleep_until(until) => continue,
                }
            }
        };
        let (request, asked) = (fetch_request(runner, queues, count), Instant::now());
        let mut fetch = runner.transport().fetch(&request);
        let answer = tokio::select! {
            biased;
            () = &mut stopped => {
                runner.begin_stop();
                last_fetch(runner, fetch, asked).await;
                return Ok(());
            }
            answer = &mut fetch => answer,
        };
        let wait = match answer {
            Ok(jobs) => {
                welcome = true;
                if unreachable.reset() {
                    runner.emit(&Event::Back);
                }
                let none = jobs.is_empty();
                if none {
                    runner.pauses().empty(&request.queues);
                }
                add(runner, executors, jobs, asked);
                let waited =
                    runner.transport().supports_long_poll() && asked.elapsed() >= TOO_SOON.min(runner.settings.wait);
                if none && !waited {
                    idle.next_delay()
                } else {
                    idle.reset();
                    Duration::ZERO
                }
            }
            Err(error) if !welcome && !error.is_temporary() => return Err(error),
            Err(error) => {
                let wait = unreachable.next_delay();
                runner.emit(&Event::Unreachable(&error, wait));
                wait
            }
        };
        if !wait.is_zero() {
            tokio::select! {
                biased;
                () = &mut stopped => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }
}

/// Waits for the end of a fetch when the worker stops. The server may just be sending jobs, which no other worker
/// could claim until their leases end.
async fn last_fetch<S: Send + Sync + 'static>(
    runner: &Runner<S>,
    fetch: TransportFuture<'_, Vec<Delivery>>,
    asked: Instant,
) {
    if runner.transport().releases_on_drop() {
        return;
    }
    let fetched = tokio::time::timeout_at(asked + runner.settings.wait + LAST_FETCH, fetch).await;
    if let Ok(Ok(jobs)) = fetched {
        runner.buffer().add(jobs, asked);
    }
}

/// Waits until there is room for more jobs; returns for how many.
async fn room<S: Send + Sync + 'static>(runner: &Runner<S>) -> usize {
    let mut mode = runner.mode.subscribe();
    // The sender is dropped with the runner.
    let _ = mode.wait_for(|mode| *mode != Mode::Quiet).await;
    loop {
        let more = runner.room.notified();
        let room = runner.buffer().room(runner.settings.concurrency, runner.settings.max_prefetched);
        if room > 0 {
            return room;
        }
        more.await;
    }
}

fn fetch_request<S>(runner: &Runner<S>, queues: Arc<[Arc<str>]>, count: usize) -> FetchRequest {
    let settings = &runner.settings;
    FetchRequest {
        queues,
        count: count.min(MAX_FETCH),
        wait: settings.wait,
        worker: Arc::clone(&settings.report_defaults.worker),
        lease: settings.lease,
    }
}

/// The largest number of jobs in one request; servers return no more.
const MAX_FETCH: usize = 1_000;

/// Puts jobs into the buffer, and starts executors for them.
fn add<S: Send + Sync + 'static>(
    runner: &Arc<Runner<S>>,
    executors: &mut JoinSet<()>,
    jobs: Vec<Delivery>,
    asked: Instant,
) {
    let count = jobs.len();
    if count == 0 {
        return;
    }
    let could_run = {
        let mut buffer = runner.buffer();
        buffer.add(jobs, asked);
        buffer.could_run()
    };
    for _ in executors.len()..could_run.min(runner.settings.concurrency) {
        executors.spawn(executor::run(Arc::clone(runner)));
    }
    runner.work.add_permits(count);
}
