//! Runs: schedules, workflows, webhooks and what else is above single jobs.

use super::describe::{counters, histograms};
use prometheus::{HistogramVec, IntCounterVec, Registry};
use redrive_policy::Span;

/// In seconds.
const LAGS: [f64; 10] = [0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0, 3_600.0];

pub(super) struct RunMetrics {
    steps: IntCounterVec,
    lags: HistogramVec,
}

impl RunMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            steps: counters(
                registry,
                "redrive_run_steps_total",
                "Steps of runs that were written, by program: schedules, workflows, webhooks and others.",
                &["program"],
            ),
            lags: histograms(
                registry,
                "redrive_run_timer_lag_seconds",
                "How late the timers of runs were carried out; those of schedules have the program cron.",
                &["program"],
                &LAGS,
            ),
        }
    }

    /// A step was written. Programs are those of the server, so that there are only so many.
    pub(super) fn advanced(&self, program: &str, lag: Option<Span>) {
        self.steps.with_label_values(&[program]).inc();
        if let Some(lag) = lag {
            self.lags.with_label_values(&[program]).observe(lag.secs());
        }
    }
}
