//! Numbers for Prometheus. They are counted as things happen, so that a scrape counts nothing.

mod describe;
mod jobs;
mod labels;
mod requests;
mod runs;
mod sampled;
mod writes;

pub(crate) use requests::RequestMetrics;
pub(crate) use sampled::Sample;

use crate::limits::Limits;
use jobs::JobMetrics;
use prometheus::{Registry, TextEncoder};
use redrive_engine::Observer;
use redrive_policy::Span;
use redrive_store::{Full, Transition, WriteObserver};
use runs::RunMetrics;
use sampled::SampledMetrics;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use writes::WriteMetrics;

/// The media type of the text format.
pub(crate) const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of a server.
pub(crate) struct Metrics {
    registry: Registry,
    jobs: JobMetrics,
    runs: RunMetrics,
    writes: WriteMetrics,
    pub(crate) requests: RequestMetrics,
    /// Locked while a scrape sets and reads them.
    sampled: tokio::sync::Mutex<SampledMetrics>,
}

impl Metrics {
    /// The metrics of a server with these limits.
    pub(crate) fn new(limits: &Limits, backend: &str) -> Arc<Self> {
        let registry = Registry::new();
        Arc::new(Self {
            jobs: JobMetrics::new(&registry, limits.metric_labels),
            runs: RunMetrics::new(&registry),
            writes: WriteMetrics::new(&registry),
            requests: RequestMetrics::new(&registry),
            sampled: tokio::sync::Mutex::new(SampledMetrics::new(&registry, limits.metric_labels, backend)),
            registry,
        })
    }

    /// All of them as text, with what a sample of the present adds.
    ///
    /// # Errors
    /// There are none that are known: every metric has a name and a value.
    pub(crate) async fn text(&self, sample: &Sample) -> prometheus::Result<String> {
        // Until it is read: a scrape at the same time would reset what this one has set.
        let sampled = self.sampled.lock().await;
        sampled.set(sample);
        let text = TextEncoder::new().encode_to_string(&self.registry.gather());
        drop(sampled);
        text
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Observer for Metrics {
    fn changed(&self, transitions: &mut dyn Iterator<Item = &Transition>) {
        self.jobs.changed(transitions);
    }

    fn enqueued(&self, queue: &Arc<str>, took: Duration) {
        self.jobs.enqueued(queue, took);
    }

    fn rejected(&self, queue: &Arc<str>) {
        self.jobs.rejected(queue);
    }

    fn passed_over(&self, groups: &[Full]) {
        self.jobs.passed_over(groups);
    }

    fn advanced(&self, program: &str, timer_lag: Option<Span>) {
        self.runs.advanced(program, timer_lag);
    }
}

impl WriteObserver for Metrics {
    fn flushed(&self, jobs: usize, took: Duration) {
        self.writes.flushed(jobs, took);
    }

    fn compacted(&self, took: Duration, succeeded: bool) {
        self.writes.compacted(took, succeeded);
    }
}
