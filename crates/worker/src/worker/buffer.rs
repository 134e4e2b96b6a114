//! The jobs of a worker: those that wait, those that run, and those whose reports are not delivered yet.

use super::registry::Registry;
use crate::run::Run;
use crate::transport::{Delivery, RunReport};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The worker prefetches as many jobs as its handlers complete in this time.
const AHEAD: Duration = Duration::from_millis(20);
/// If all handlers are busy and none has ended for this long, no job is prefetched.
const STUCK: Duration = Duration::from_millis(100);
/// The weight of one run in the mean.
const WEIGHT: f64 = 0.05;

/// The claimed jobs of a worker, and their reports.
pub(super) struct Buffer {
    /// All claimed jobs, from the fetch to the answer to their report.
    slots: Vec<Option<Arc<Run>>>,
    free: Vec<usize>,
    /// What may start.
    ready: VecDeque<Arc<Run>>,
    /// The types with a limit of their own.
    limited: HashMap<Box<str>, Limited>,
    reports: Vec<RunReport>,
    /// How many handlers run.
    running: usize,
    /// When the last of them ended.
    last_end: Instant,
    /// The moving average of the duration of a run, in seconds; absent before the first.
    mean_run_secs: Option<f64>,
}

struct Limited {
    most: usize,
    running: usize,
    /// Jobs that wait for one of their type to end.
    waiting: VecDeque<Arc<Run>>,
}

impl Buffer {
    pub(super) fn new<S>(registry: &Registry<S>) -> Self {
        let limited = registry.kinds.iter().filter_map(|(name, kind)| {
            let most = kind.concurrency?;
            Some((name.clone(), Limited { most, running: 0, waiting: VecDeque::new() }))
        });
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            limited: limited.collect(),
            reports: Vec::new(),
            running: 0,
            last_end: Instant::now(),
            mean_run_secs: None,
        }
    }

    /// How many jobs are claimed.
    pub(super) fn held(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All claimed jobs.
    pub(super) fn runs(&self) -> impl Iterator<Item = &Arc<Run>> {
        self.slots.iter().flatten()
    }

    /// How many handlers could run concurrently for the buffered jobs.
    pub(super) fn could_run(&self) -> usize {
        self.running + self.ready.len()
    }

    /// How many jobs to request now; 0 while it is not worth a request.
    pub(super) fn room(&self, concurrency: usize, max_prefetched: usize) -> usize {
        let ahead = self.mean_run_secs.map_or(0.0, |mean| AHEAD.as_secs_f64() * concurrency as f64 / mean.max(1e-9));
        // The average means nothing while every handler is busy with something slow.
        let stuck = self.running >= concurrency && self.last_end.elapsed() > STUCK;
        // The conversion saturates.
        let prefetch = if stuck { 0 } else { (ahead as usize).min(max_prefetched) };
        let capacity = concurrency + prefetch;
        // Jobs of a type that is at its limit do not block others, up to a limit.
        let aside: usize = self.limited.values().map(|limited| limited.waiting.len()).sum();
        let room = capacity.saturating_sub(self.held() - aside.min(capacity));
        let worth = (capacity / 4).min(prefetch).max(1);
        // At most half, so that fetching and reporting overlap.
        if room < worth { 0 } else { room.min(capacity.div_ceil(2).max(concurrency)) }
    }

    /// Adds claimed jobs.
    pub(super) fn add(&mut self, deliveries: Vec<Delivery>, asked: Instant) {
        for Delivery { job, lease } in deliveries {
            let slot = self.free.pop().unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            });
            let run = Arc::new(Run::new(job, lease, slot, asked));
            self.slots[slot] = Some(Arc::clone(&run));
            self.ready.push_back(run);
        }
    }

    /// The next job that may start; `None` if there is none, or if it has to wait for its type.
    pub(super) fn next(&mut self) -> Option<Arc<Run>> {
        let run = self.ready.pop_front()?;
        match self.limited.get_mut(&*run.job.kind) {
            Some(limited) if limited.running >= limited.most => {
                limited.waiting.push_back(run);
                None
            }
            limited => {
                if let Some(limited) = limited {
                    limited.running += 1;
                }
                self.running += 1;
                Some(run)
            }
        }
    }

    /// The same for an executor that did not wait: it also takes a permit.
    pub(super) fn next_if_permitted(&mut self, work: &Semaphore) -> Option<Arc<Run>> {
        loop {
            work.try_acquire().ok()?.forget();
            if let Some(run) = self.next() {
                return Some(run);
            }
        }
    }

    /// Records the end of a run, and how long it took if it did run; returns a job of the same type that waited
    /// for it.
    pub(super) fn ended(&mut self, report: RunReport, took: Option<Duration>) -> Option<Arc<Run>> {
        if let Some(secs) = took.map(|took| took.as_secs_f64()) {
            let mean = self.mean_run_secs.get_or_insert(secs);
            *mean += WEIGHT * (secs - *mean);
        }
        let next = self.finish_run(&report.run);
        self.reports.push(report);
        next
    }

    /// Records the end of a run that is not reported.
    pub(super) fn dropped(&mut self, run: &Run) -> Option<Arc<Run>> {
        self.forget(run);
        self.finish_run(run)
    }

    fn finish_run(&mut self, run: &Run) -> Option<Arc<Run>> {
        self.last_end = Instant::now();
        let limited = self.limited.get_mut(&*run.job.kind);
        let next = limited.and_then(|limited| {
            let next = limited.waiting.pop_front();
            limited.running -= usize::from(next.is_none());
            next
        });
        self.running -= usize::from(next.is_none());
        next
    }

    /// Reports to deliver, at most `most`, oldest first.
    pub(super) fn reports(&mut self, most: usize) -> Vec<RunReport> {
        if self.reports.len() <= most {
            return std::mem::take(&mut self.reports);
        }
        self.reports.drain(..most).collect()
    }

    /// A report that needs no executor.
    pub(super) fn report(&mut self, report: RunReport) {
        self.reports.push(report);
    }

    /// Removes the jobs that have waited too long because every handler is busy: they may run elsewhere.
    pub(super) fn take_overdue(&mut self, is_overdue: impl Fn(&Run) -> bool) -> Vec<Arc<Run>> {
        let (overdue, ready): (Vec<_>, Vec<_>) = self.ready.drain(..).partition(|run| is_overdue(run));
        self.ready.extend(ready);
        overdue
    }

    /// Removes all jobs that have not started.
    pub(super) fn take_waiting(&mut self) -> Vec<Arc<Run>> {
        let aside = self.limited.values_mut().flat_map(|limited| limited.waiting.drain(..));
        self.ready.drain(..).chain(aside).collect()
    }

    /// Removes a job.
    pub(super) fn forget(&mut self, run: &Run) {
        if self.slots.get_mut(run.slot).and_then(Option::take).is_some() {
            self.free.push(run.slot);
        }
    }
}
