//! What happens to jobs, by queue and type.

mod families;
mod series;

use super::describe::counters;
use super::labels::{ByPair, queue_label};
use families::{JobFamilies, QueueFamilies};
use prometheus::{IntCounterVec, Registry};
use redrive_store::{EventKind, Full, Group, Transition};
use serde::Deserialize;
use series::{JobSeries, QueueSeries};
use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The counters of jobs. The handles of each queue and type are stored, so that nothing is looked up by name twice.
pub(super) struct JobMetrics {
    families: JobFamilies,
    queue_families: QueueFamilies,
    errors: IntCounterVec,
    passed_over: IntCounterVec,
    folded: IntCounterVec,
    known: Mutex<Known>,
}

struct Known {
    jobs: ByPair<JobSeries>,
    queues: ByPair<QueueSeries>,
    /// The counters of errors by queue and the type of the error.
    errors: ByPair<prometheus::IntCounter>,
}

impl JobMetrics {
    pub(super) fn new(registry: &Registry, most: usize) -> Self {
        let folded = counters(
            registry,
            "redrive_metrics_folded_total",
            "Observations counted under the value _other because there are more values than limits.metric_labels; \
             by what there is too much of: job (pairs of queue and type), queue, or error.",
            &["values"],
        );
        ["job", "queue", "error"].iter().for_each(|values| drop(folded.with_label_values(&[values])));
        let passed_over = counters(
            registry,
            "redrive_claims_limited_total",
            "Claims that passed jobs over because a limit allowed no further attempt, by what is limited: queue, type \
             or key.",
            &["limit"],
        );
        ["queue", "type", "key"].iter().for_each(|limit| drop(passed_over.with_label_values(&[limit])));
        Self {
            families: JobFamilies::new(registry),
            queue_families: QueueFamilies::new(registry),
            errors: counters(
                registry,
                "redrive_errors_total",
                "Attempts that failed, by queue and the type of the error.",
                &["queue", "error"],
            ),
            passed_over,
            folded,
            known: Mutex::new(Known { jobs: ByPair::new(most), queues: ByPair::new(most), errors: ByPair::new(most) }),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changed(&self, transitions: &mut dyn Iterator<Item = &Transition>) {
        let mut known = self.known();
        for transition in transitions {
            let (queue, kind) = (queue_label(&transition.job.spec.queue), &*transition.job.spec.kind);
            let (series, own) = known.jobs.get(queue, kind, |queue, kind| self.families.series(queue, kind));
            series.count(&self.families, transition);
            self.note_folded(own, "job");
            if let Some(delay) = transition.delay().filter(|_| transition.event == EventKind::RetryScheduled) {
                self.in_queue(&mut known, queue, |series| series.retry_delay.observe(delay.secs()));
            }
            if let Some(wait) = transition.wait_time() {
                self.in_queue(&mut known, queue, |series| series.wait.observe(wait.secs()));
            }
            if let Some(failure) = transition.failure() {
                let error = error_type(&failure.error);
                let make = |queue: &str, error: &str| self.errors.with_label_values(&[queue, error]);
                let (errors, own) = known.errors.get(queue, &error, make);
                errors.inc();
                self.note_folded(own, "error");
            }
        }
    }

    pub(super) fn enqueued(&self, queue: &str, took: Duration) {
        let seconds = took.as_secs_f64();
        self.in_queue(&mut self.known(), queue_label(queue), |series| series.enqueue.observe(seconds));
    }

    pub(super) fn rejected(&self, queue: &str) {
        self.in_queue(&mut self.known(), queue_label(queue), |series| series.rejected.inc());
    }

    pub(super) fn passed_over(&self, groups: &[Full]) {
        let limit = |group: &Group| match group {
            Group::Queue(_) => "queue",
            Group::Kind(_) => "type",
            Group::Key(_) => "key",
        };
        for kind in ["queue", "type", "key"] {
            if groups.iter().any(|full| limit(&full.group) == kind) {
                self.passed_over.with_label_values(&[kind]).inc();
            }
        }
    }

    fn in_queue(&self, known: &mut Known, queue: &str, count: impl FnOnce(&QueueSeries)) {
        let (series, own) = known.queues.get(queue, "", |queue, _| self.queue_families.series(queue));
        count(series);
        self.note_folded(own, "queue");
    }

    fn note_folded(&self, own: bool, values: &str) {
        if !own {
            self.folded.with_label_values(&[values]).inc();
        }
    }
}

/// The longest type of an error that is told apart, in bytes.
const LONGEST_ERROR: usize = 128;

/// The type of an error as it is stored: the first member of the object.
fn error_type(error: &[u8]) -> Cow<'_, str> {
    let Some(rest) = error.strip_prefix(b"{\"type\":") else { return Cow::Borrowed("") };
    let mut values = serde_json::Deserializer::from_slice(rest);
    let name = Cow::<str>::deserialize(&mut values).unwrap_or_default();
    if name.len() > LONGEST_ERROR { Cow::Borrowed(super::labels::OTHER) } else { name }
}

#[cfg(test)]
mod tests {
    use super::error_type;

    #[test]
    fn the_type_of_an_error_is_read_without_the_rest() {
        assert_eq!(error_type(br#"{"type":"Timeout","message":"x"}"#), "Timeout");
        assert_eq!(error_type(br#"{"type":"a\"b","message":"x"}"#), "a\"b");
        assert_eq!(error_type(br#"{"message":"x","type":"late"}"#), "");
        assert_eq!(error_type(b"not JSON"), "");
        let long = format!("{{\"type\":\"{}\"}}", "x".repeat(129));
        assert_eq!(error_type(long.as_bytes()), "_other");
    }
}
