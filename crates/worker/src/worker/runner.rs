//! A running worker: its tasks, and how it stops.

use super::buffer::Buffer;
use super::pauses::Pauses;
use super::{Settings, Summary, Worker, fetcher, heartbeats, settler};
use crate::context::Shared;
use crate::run::Run;
use crate::transport::{Ending, RunReport, Transport};
use crate::worker::registry::Registry;
use crate::{Cancelled, ClientError, Event, Job};
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long the last reports may take when the worker stops and the server does not answer.
const LAST_REPORTS: Duration = Duration::from_secs(5);

/// A worker that runs.
pub(crate) struct Runner<S> {
    pub(super) registry: Arc<Registry<S>>,
    pub(super) shared: Arc<Shared<S>>,
    pub(crate) settings: Settings,
    buffer: Mutex<Buffer>,
    pauses: Mutex<Pauses>,
    /// One permit for each job that may start.
    pub(super) work: Semaphore,
    /// Notified when there is something to report.
    pub(super) reported: Notify,
    /// Notified when the buffer has more room.
    pub(super) room: Notify,
    pub(super) tally: Tally,
    /// When the worker was asked to stop.
    stop_begun: OnceLock<Instant>,
    /// True once what still runs has to end.
    aborted: watch::Sender<bool>,
    /// What the server wants the worker to do.
    pub(super) mode: watch::Sender<Mode>,
}

/// What the server wants the worker to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Work,
    /// Claim no further jobs.
    Quiet,
    Stop,
}

/// What was done so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) done: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) released: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) lost: AtomicU64,
}

impl Tally {
    fn summary(&self) -> Summary {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Summary {
            done: read(&self.done),
            failed: read(&self.failed),
            released: read(&self.released),
            cancelled: read(&self.cancelled),
            lost: read(&self.lost),
        }
    }
}

impl<S: Send + Sync + 'static> Runner<S> {
    pub(crate) fn new(worker: &Worker<S>) -> Arc<Self> {
        Arc::new(Self {
            buffer: Mutex::new(Buffer::new(&worker.registry)),
            pauses: Mutex::default(),
            registry: Arc::clone(&worker.registry),
            shared: Arc::clone(&worker.shared),
            settings: worker.settings.clone(),
            work: Semaphore::new(0),
            reported: Notify::new(),
            room: Notify::new(),
            tally: Tally::default(),
            stop_begun: OnceLock::new(),
            aborted: watch::channel(false).0,
            mode: watch::channel(Mode::Work).0,
        })
    }

    pub(crate) fn transport(&self) -> &dyn Transport {
        &*self.shared.transport
    }

    pub(super) fn buffer(&self) -> MutexGuard<'_, Buffer> {
        // No change under this lock panics half way.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn pauses(&self) -> MutexGuard<'_, Pauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job cannot run here: the worker claims no jobs of its queue for a while.
    pub(super) fn decline(&self, job: &Job, reason: &str, wait: Duration) {
        self.emit(&Event::Declined { job, reason, wait });
        let paused = self.pauses().declined(&job.queue);
        if let Some(wait) = paused {
            self.emit(&Event::Paused { queue: &job.queue, reason, wait });
        }
    }

    pub(super) fn emit(&self, event: &Event<'_>) {
        self.settings.listener.emit(event);
    }

    /// Works until `stop` completes or the server says so, and shuts down gracefully, or quickly once `abort`
    /// completes after that. Everything that it starts ends with this future, also where that is dropped.
    pub(super) async fn run(
        self: Arc<Self>,
        stop: impl Future<Output = ()>,
        abort: impl Future<Output = ()>,
    ) -> Result<Summary, ClientError> {
        let mut executors = JoinSet::new();
        let mut helpers = JoinSet::new();
        helpers.spawn(settler::run(Arc::clone(&self)));
        helpers.spawn(heartbeats::run(Arc::clone(&self)));
        let stopped = async {
            let mut mode = self.mode.subscribe();
            tokio::select! {
                () = stop => {}
                _ = mode.wait_for(|mode| *mode == Mode::Stop) => {}
            }
        };
        let working = async {
            let fetched = fetcher::run(&self, &mut executors, stopped).await;
            self.begin_stop();
            self.shut_down().await;
            fetched
        };
        let fetched = tokio::select! {
            fetched = working => fetched,
            never = self.abort_on(abort) => match never {},
        };
        // Executors that wait for work end; those that block a thread are left behind.
        self.work.close();
        drop((executors, helpers));
        fetched.map(|()| self.tally.summary())
    }

    /// Cancels all handlers once `abort` completes after the stop has begun.
    async fn abort_on(&self, abort: impl Future<Output = ()>) -> Infallible {
        let mut stopping = self.shared.stopping.subscribe();
        // The sender is dropped with the runner.
        let _ = stopping.wait_for(|stopping| *stopping).await;
        abort.await;
        self.cancel_all();
        self.aborted.send_replace(true);
        std::future::pending().await
    }

    /// Cancels every handler.
    fn cancel_all(&self) {
        for run in self.buffer().runs() {
            run.cancellation.cancel(Cancelled::Stopping);
        }
    }

    /// Signals handlers that the worker stops, and releases what has not started.
    pub(super) fn begin_stop(&self) {
        let first = self.stop_begun.set(Instant::now()).is_ok();
        if first {
            self.shared.stopping.send_replace(true);
            self.emit(&Event::Stopping);
        }
        let waiting = self.buffer().take_waiting();
        self.release(waiting);
    }

    /// Releases jobs that have not started.
    pub(super) fn release(&self, runs: Vec<Arc<Run>>) {
        let mut buffer = self.buffer();
        for run in runs {
            buffer.report(RunReport { run, ending: Ending::Released(Duration::ZERO) });
        }
        drop(buffer);
        self.reported.notify_one();
    }

    /// Waits for running handlers, cancels those that take too long, and delivers the last reports.
    async fn shut_down(&self) {
        let begun = self.stop_begun.get().copied().unwrap_or_else(Instant::now);
        let deadline = begun + self.settings.stop_within;
        let mut aborted = self.aborted.subscribe();
        let empty = tokio::select! {
            empty = self.empty_by(deadline) => empty,
            _ = aborted.wait_for(|aborted| *aborted) => false,
        };
        if empty {
            return;
        }
        self.cancel_all();
        let last = Instant::now() + self.settings.cancel_grace + LAST_REPORTS;
        if !self.empty_by(last).await {
            let left = self.buffer().held() as u64;
            self.tally.lost.fetch_add(left, Ordering::Relaxed);
        }
    }

    /// Waits until the buffer is empty; false if it is not by the deadline.
    async fn empty_by(&self, deadline: Instant) -> bool {
        let empty = async {
            loop {
                let room = self.room.notified();
                if self.buffer().held() == 0 {
                    return;
                }
                room.await;
            }
        };
        tokio::time::timeout_at(deadline, empty).await.is_ok()
    }
}
