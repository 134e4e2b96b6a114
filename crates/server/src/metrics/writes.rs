//! How the store writes.

use super::describe::{counters, histogram};
use prometheus::{Histogram, IntCounterVec, Registry};
use std::time::Duration;

/// In seconds.
const FLUSHES: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0];
const COMPACTIONS: [f64; 8] = [0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0];
/// Jobs.
const SIZES: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 10_000.0];

pub(super) struct WriteMetrics {
    durations: Histogram,
    sizes: Histogram,
    compactions: Histogram,
    outcomes: IntCounterVec,
}

impl WriteMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let outcomes = counters(
            registry,
            "redrive_store_compactions_total",
            "Compactions of the log of the embedded store, by outcome: succeeded or failed.",
            &["outcome"],
        );
        ["succeeded", "failed"].iter().for_each(|outcome| drop(outcomes.with_label_values(&[outcome])));
        Self {
            durations: histogram(
                registry,
                "redrive_store_flush_duration_seconds",
                "Time of one flush of the log; on PostgreSQL, of one batch of calls with its commit.",
                &FLUSHES,
            ),
            sizes: histogram(
                registry,
                "redrive_store_flush_jobs",
                "How many changes of jobs one flush made durable; on PostgreSQL, how many jobs one batch was about.",
                &SIZES,
            ),
            compactions: histogram(
                registry,
                "redrive_store_compaction_duration_seconds",
                "Time of one compaction of the log of the embedded store.",
                &COMPACTIONS,
            ),
            outcomes,
        }
    }

    pub(super) fn flushed(&self, jobs: usize, took: Duration) {
        self.durations.observe(took.as_secs_f64());
        self.sizes.observe(jobs as f64);
    }

    pub(super) fn compacted(&self, took: Duration, succeeded: bool) {
        self.compactions.observe(took.as_secs_f64());
        self.outcomes.with_label_values(&[if succeeded { "succeeded" } else { "failed" }]).inc();
    }
}
