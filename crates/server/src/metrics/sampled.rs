//! What is looked at when a scrape comes: how many jobs wait where, and how the store and the server are.

use super::describe::{gauge, gauges, seconds, seconds_by};
use super::labels::{OTHER, queue_label};
use prometheus::{Gauge, GaugeVec, IntGauge, IntGaugeVec, Registry};
use redrive_engine::{STALE_AFTER, Wall, Worker, WorkerState};
use redrive_policy::{Moment, Span};
use redrive_store::embedded::Status;
use redrive_store::{QueueLoad, State};
use std::collections::BTreeMap;

/// What a scrape found.
pub(crate) struct Sample {
    /// The queues; absent where the store did not answer.
    pub(crate) queues: Option<Vec<QueueLoad>>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) wall: Wall,
    pub(crate) now: Moment,
    /// By the clock of the store, as the loads have their times.
    pub(crate) stored_now: Moment,
    pub(crate) uptime: Span,
    /// The embedded store.
    pub(crate) local: Option<Status>,
    pub(crate) connections: usize,
    pub(crate) waiting_fetches: usize,
    pub(crate) streams: usize,
    pub(crate) is_ready: bool,
    pub(crate) maintenance: bool,
}

pub(super) struct SampledMetrics {
    most: usize,
    depth: IntGaugeVec,
    busy: IntGaugeVec,
    dead: IntGaugeVec,
    due: IntGaugeVec,
    paused: IntGaugeVec,
    held: IntGauge,
    oldest_due: GaugeVec,
    oldest_available: GaugeVec,
    queues: IntGauge,
    workers_active: IntGauge,
    workers: IntGaugeVec,
    ready: IntGauge,
    store_up: IntGauge,
    maintenance: IntGauge,
    clock_ahead: Gauge,
    clock_steps: IntGauge,
    uptime: Gauge,
    connections: IntGauge,
    waiting_fetches: IntGauge,
    streams: IntGauge,
    log_bytes: IntGauge,
    snapshot_bytes: IntGauge,
    jobs: IntGauge,
    runs: IntGauge,
}

impl SampledMetrics {
    pub(super) fn new(registry: &Registry, most: usize, backend: &str) -> Self {
        let info = gauges(
            registry,
            "redrive_build_info",
            "Always 1, with the version of the server and its store.",
            &["version", "store"],
        );
        info.with_label_values(&[env!("CARGO_PKG_VERSION"), backend]).set(1);
        let plain = |name: &str, help: &str| gauge(registry, name, help);
        let by_queue = |name: &str, help: &str| gauges(registry, name, help, &["queue"]);
        let seconds_by_queue = |name: &str, help: &str| seconds_by(registry, name, help, &["queue"]);
        Self {
            most,
            depth: gauges(
                registry,
                "ojs_queue_depth",
                "Jobs that are stored, by queue and state.",
                &["queue", "state"],
            ),
            busy: by_queue("ojs_workers_busy", "Jobs that workers are running."),
            dead: by_queue("redrive_dead_letters", "Dead letters that are stored."),
            due: by_queue(
                "redrive_jobs_due",
                "Scheduled and retryable jobs whose time has come and that are not available yet; counted up to 10000 \
                 for each queue.",
            ),
            paused: by_queue("redrive_queue_paused", "1 for a queue that is paused, else 0."),
            held: plain(
                "redrive_jobs_held",
                "Available and due jobs that admission holds: those of paused queues, and all during maintenance.",
            ),
            oldest_due: seconds_by_queue(
                "redrive_oldest_due_seconds",
                "For how long the scheduled or retryable job that is due the longest has been due; 0 if none is.",
            ),
            oldest_available: seconds_by_queue(
                "redrive_oldest_available_seconds",
                "For how long the job that will be claimed next has been available; 0 if none is.",
            ),
            queues: plain("redrive_queues", "Queues that exist."),
            workers_active: plain("ojs_workers_active", "Workers that fetch jobs and were heard of lately."),
            workers: gauges(
                registry,
                "redrive_workers",
                "Workers that this server knows, by state; stale ones were not heard of for a minute.",
                &["state"],
            ),
            ready: plain("redrive_ready", "1 if the server is ready, as GET /ready says, else 0."),
            store_up: plain("redrive_store_up", "1 if the store answered this scrape, else 0."),
            maintenance: plain("redrive_maintenance", "1 during maintenance, else 0."),
            clock_ahead: seconds(
                registry,
                "redrive_clock_ahead_seconds",
                "How far the wall clock is ahead of the time by which leases and delays are measured.",
            ),
            clock_steps: plain("redrive_clock_steps", "How often the wall clock was set since the server started."),
            uptime: seconds(registry, "redrive_uptime_seconds", "For how long the server has been running."),
            connections: plain("redrive_connections", "Open connections."),
            waiting_fetches: plain("redrive_waiting_fetches", "Fetches that wait for a job."),
            streams: plain("redrive_event_streams", "Open event streams."),
            log_bytes: plain("redrive_store_log_bytes", "Bytes of the log behind the snapshot; embedded store."),
            snapshot_bytes: plain("redrive_store_snapshot_bytes", "Bytes of the newest snapshot; embedded store."),
            jobs: plain("redrive_jobs", "Jobs that are stored, in all states."),
            runs: plain("redrive_runs", "Runs that are stored, ended ones included; embedded store."),
        }
    }

    pub(super) fn set(&self, sample: &Sample) {
        self.set_queues(sample);
        self.set_workers(sample);
        self.ready.set(sample.is_ready.into());
        self.store_up.set(sample.queues.is_some().into());
        self.maintenance.set(sample.maintenance.into());
        self.clock_ahead.set(sample.wall.ahead_us as f64 / 1e6);
        self.clock_steps.set(i64::try_from(sample.wall.steps).unwrap_or(i64::MAX));
        self.uptime.set(sample.uptime.secs());
        self.connections.set(number(sample.connections));
        self.waiting_fetches.set(number(sample.waiting_fetches));
        self.streams.set(number(sample.streams));
        if let Some(status) = &sample.local {
            self.log_bytes.set(i64::try_from(status.log_bytes).unwrap_or(i64::MAX));
            self.snapshot_bytes.set(i64::try_from(status.snapshot_bytes).unwrap_or(i64::MAX));
            self.runs.set(number(status.runs));
        }
    }

    fn set_queues(&self, sample: &Sample) {
        for family in [&self.depth, &self.busy, &self.dead, &self.due, &self.paused] {
            family.reset();
        }
        self.oldest_due.reset();
        self.oldest_available.reset();
        let Some(queues) = &sample.queues else { return };
        let age = |at: Option<Moment>| at.map_or(0.0, |at| sample.stored_now.since(at).secs());
        let (mut held, mut jobs) = (0, 0);
        for (label, loads) in self.by_label(queues) {
            let sum = |count: fn(&QueueLoad) -> usize| number(loads.iter().map(|load| count(load)).sum());
            for state in State::ALL {
                let count = loads.iter().map(|load| load.queue.count(state)).sum();
                self.depth.with_label_values(&[label, state.name()]).set(number(count));
            }
            jobs += sum(|load| load.queue.jobs());
            let by = &[label];
            self.busy.with_label_values(by).set(sum(|load| load.queue.count(State::Active)));
            self.dead.with_label_values(by).set(sum(|load| load.dead));
            self.due.with_label_values(by).set(sum(|load| load.due));
            self.paused.with_label_values(by).set(loads.iter().any(|load| load.queue.paused).into());
            let oldest = |of: fn(&QueueLoad) -> Option<Moment>| age(loads.iter().filter_map(|load| of(load)).min());
            self.oldest_due.with_label_values(by).set(oldest(|load| load.first_due));
            self.oldest_available.with_label_values(by).set(oldest(|load| load.next_available));
            let is_held = |load: &&&QueueLoad| load.queue.paused || sample.maintenance;
            let waiting = |load: &&QueueLoad| load.queue.count(State::Available) + load.due;
            held += loads.iter().filter(is_held).map(waiting).sum::<usize>();
        }
        self.queues.set(number(queues.len()));
        self.jobs.set(jobs);
        self.held.set(number(held));
    }

    /// The queues by the value that they are shown under: the fullest ones are told apart.
    fn by_label<'q>(&self, queues: &'q [QueueLoad]) -> BTreeMap<&'q str, Vec<&'q QueueLoad>> {
        let mut fullest: Vec<&QueueLoad> = queues.iter().collect();
        if fullest.len() > self.most {
            fullest.sort_by_cached_key(|load| (std::cmp::Reverse(load.queue.jobs()), load.queue.name.clone()));
        }
        let mut labels: BTreeMap<&str, Vec<&QueueLoad>> = BTreeMap::new();
        for (place, load) in fullest.into_iter().enumerate() {
            let label = if place < self.most { queue_label(&load.queue.name) } else { OTHER };
            labels.entry(label).or_default().push(load);
        }
        labels
    }

    fn set_workers(&self, sample: &Sample) {
        self.workers.reset();
        let stale = sample.workers.iter().filter(|worker| worker.is_stale(sample.now)).count();
        self.workers.with_label_values(&["stale"]).set(number(stale));
        for state in WorkerState::ALL {
            let of_state = |worker: &&Worker| worker.state() == state && !worker.is_stale(sample.now);
            let count = number(sample.workers.iter().filter(of_state).count());
            self.workers.with_label_values(&[state.name()]).set(count);
            if state == WorkerState::Running {
                self.workers_active.set(count);
            }
        }
    }
}

const _: () = assert!(STALE_AFTER.ms() as u64 == 60_000, "the help of redrive_workers says a minute");

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
