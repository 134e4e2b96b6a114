//! The metrics of jobs and queues, each with its name, its help and its buckets.

use super::super::describe::{counters, histograms};
use super::series::{JobSeries, QueueSeries};
use prometheus::{HistogramVec, IntCounterVec, Registry};
use std::cell::OnceCell;

/// Those that Open Job Spec recommends, in seconds.
const DURATIONS: [f64; 15] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const QUEUE_TIMES: [f64; 13] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0, 1_800.0, 3_600.0];
/// In seconds.
const ENQUEUES: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];
const DELAYS: [f64; 11] = [0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 86_400.0];
const TIMES_TO_SUCCESS: [f64; 11] = [0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0, 14_400.0, 86_400.0, 604_800.0];
/// Attempts.
const ATTEMPTS_TO_SUCCESS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 25.0];

const BY_JOB: [&str; 2] = ["queue", "type"];

/// Makes a struct of counters by queue and type, with their names and helps.
macro_rules! job_families {
    ($($field:ident $name:literal $help:literal)*) => {
        /// The metrics by queue and type.
        pub(super) struct JobFamilies {
            $($field: IntCounterVec,)*
            pub(super) durations: HistogramVec,
            queue_time: HistogramVec,
            time_to_success: HistogramVec,
            attempts_to_success: HistogramVec,
        }

        impl JobFamilies {
            pub(super) fn new(registry: &Registry) -> Self {
                Self {
                    $($field: counters(registry, $name, $help, &BY_JOB),)*
                    durations: histograms(
                        registry,
                        "ojs_job_duration_seconds",
                        "Time of attempts from claim to end, by the state of the job after it.",
                        &["queue", "type", "state"],
                        &DURATIONS,
                    ),
                    queue_time: histograms(
                        registry,
                        "ojs_job_queue_time_seconds",
                        "Time from enqueue to the start of the first attempt, with the delay of scheduled jobs.",
                        &BY_JOB,
                        &QUEUE_TIMES,
                    ),
                    time_to_success: histograms(
                        registry,
                        "redrive_job_time_to_success_seconds",
                        "Time from enqueue to completion, with all retries and their delays.",
                        &BY_JOB,
                        &TIMES_TO_SUCCESS,
                    ),
                    attempts_to_success: histograms(
                        registry,
                        "redrive_job_attempts_to_success",
                        "How many attempts completed jobs needed, since they were enqueued or redriven.",
                        &BY_JOB,
                        &ATTEMPTS_TO_SUCCESS,
                    ),
                }
            }

            pub(super) fn series(&self, queue: &str, kind: &str) -> JobSeries {
                let by = &[queue, kind];
                JobSeries {
                    labels: (queue.into(), kind.into()),
                    $($field: self.$field.with_label_values(by),)*
                    durations: [const { OnceCell::new() }; 8],
                    queue_time: self.queue_time.with_label_values(by),
                    time_to_success: self.time_to_success.with_label_values(by),
                    attempts_to_success: self.attempts_to_success.with_label_values(by),
                }
            }
        }
    };
}

job_families! {
    enqueued "ojs_job_enqueued_total" "Jobs that were enqueued."
    completed "ojs_job_completed_total" "Jobs that completed."
    failed "ojs_job_failed_total" "Jobs that were discarded after their last attempt, dead letters included."
    retried "ojs_job_retried_total" "Attempts that failed and are retried."
    cancelled "ojs_job_cancelled_total" "Jobs that were cancelled."
    expired "ojs_job_expired_total" "Jobs that expired before an attempt succeeded."
    attempts "redrive_attempts_total" "Attempts that were started."
    failures "redrive_attempt_failures_total" "Attempts that failed, whether they are retried or not."
    leases_expired "redrive_leases_expired_total" "Attempts that were ended because their worker sent no heartbeat."
    timed_out "redrive_attempts_timed_out_total" "Attempts that were ended because they took longer than their timeout."
    released "redrive_jobs_released_total" "Attempts that their worker gave back, or snoozed."
    dead "redrive_jobs_dead_lettered_total" "Jobs that became dead letters."
    redriven "redrive_jobs_redriven_total" "Jobs that were redriven after they had ended."
}

/// The metrics by queue.
pub(super) struct QueueFamilies {
    enqueue: HistogramVec,
    retry_delay: HistogramVec,
    wait: HistogramVec,
    rejected: IntCounterVec,
}

impl QueueFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        let by = &["queue"];
        Self {
            enqueue: histograms(
                registry,
                "ojs_job_enqueue_duration_seconds",
                "Time of an enqueue in the store, flush included; a batch counts once for each of its queues.",
                by,
                &ENQUEUES,
            ),
            retry_delay: histograms(
                registry,
                "redrive_retry_delay_seconds",
                "Delays that retries were given.",
                by,
                &DELAYS,
            ),
            wait: histograms(
                registry,
                "redrive_job_wait_seconds",
                "Time that jobs were available before a worker claimed them, for every attempt.",
                by,
                &QUEUE_TIMES,
            ),
            rejected: counters(
                registry,
                "redrive_enqueues_rejected_total",
                "Requests to enqueue that were refused because the queue was full.",
                by,
            ),
        }
    }

    pub(super) fn series(&self, queue: &str) -> QueueSeries {
        let by = &[queue];
        QueueSeries {
            enqueue: self.enqueue.with_label_values(by),
            retry_delay: self.retry_delay.with_label_values(by),
            wait: self.wait.with_label_values(by),
            rejected: self.rejected.with_label_values(by),
        }
    }
}
