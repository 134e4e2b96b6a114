//! How long requests take.

use super::describe::{counters, histograms};
use super::labels::OTHER;
use axum::http::{Method, StatusCode};
use prometheus::{HistogramVec, IntCounterVec, Registry};
use std::time::Duration;

/// In seconds: an answer waits for a flush, or for a job.
const BUCKETS: [f64; 13] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

/// Requests by endpoint.
pub(crate) struct RequestMetrics {
    durations: HistogramVec,
    errors: IntCounterVec,
}

impl RequestMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        Self {
            durations: histograms(
                registry,
                "redrive_http_request_duration_seconds",
                "Time from the head of a request to the head of its response; fetches may wait for a job.",
                &["method", "route", "status"],
                &BUCKETS,
            ),
            errors: counters(
                registry,
                "redrive_http_errors_total",
                "Requests that were answered with an error, by its code.",
                &["code"],
            ),
        }
    }

    /// A request was answered. The route is that of the endpoint, so that there are only so many.
    pub(crate) fn answered(&self, method: &Method, route: Option<&str>, status: StatusCode, took: Duration) {
        let method = match *method {
            Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::PATCH | Method::DELETE => method.as_str(),
            _ => OTHER,
        };
        let class = match status.as_u16() / 100 {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        self.durations.with_label_values(&[method, route.unwrap_or(OTHER), class]).observe(took.as_secs_f64());
    }

    /// A request was refused or failed, with an error of this code.
    pub(crate) fn failed(&self, code: &str) {
        self.errors.with_label_values(&[code]).inc();
    }
}
