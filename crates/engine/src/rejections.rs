//! Jobs that were not enqueued because their queue was full, as they are told.

use crate::Engine;
use redrive_policy::{Moment, Span};
use redrive_store::{OtherEvent, QueueFull};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How long a queue is silent after it was told that it is full: producers that call again and again would displace all
/// other events.
const SILENCE: Span = Span::from_secs(1);
/// How many queues are told apart. Beyond that, those that were told of the longest time ago are told again too early.
const MOST_QUEUES: usize = 1_000;

/// When which queue was told to be full, and how many requests were refused since.
#[derive(Debug, Default)]
pub(crate) struct Rejections(Mutex<HashMap<Arc<str>, (Moment, u64)>>);

impl Rejections {
    /// Counts a request. How many there were since a queue was last told to be full, where it is to be told again.
    fn count(&self, queue: &Arc<str>, now: Moment) -> Option<u64> {
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !queues.contains_key(queue) && queues.len() >= MOST_QUEUES {
            let oldest = queues.iter().min_by_key(|(_, (told, _))| *told).map(|(queue, _)| Arc::clone(queue));
            oldest.and_then(|oldest| queues.remove(&oldest));
        }
        match queues.get_mut(queue) {
            Some((told, refused)) if now >= *told && now < told.after(SILENCE) => {
                *refused = refused.saturating_add(1);
                None
            }
            Some((told, refused)) => {
                *told = now;
                Some(std::mem::take(refused).saturating_add(1))
            }
            None => {
                queues.insert(Arc::clone(queue), (now, 0));
                Some(1)
            }
        }
    }
}

impl Engine {
    /// Tells that a job of this type was refused because its queue is full.
    pub(crate) fn rejected(&self, full: &QueueFull, kind: Option<&Arc<str>>, now: Moment) {
        if let Some(observer) = self.observer.get() {
            observer.rejected(&full.queue);
        }
        let Some(requests) = self.rejections.count(&full.queue, now) else { return };
        let QueueFull { queue, depth, bound, .. } = full;
        let data = json!({
            "queue": &**queue,
            "depth": depth,
            "bound": bound,
            "job_type": kind.map(|kind| &**kind),
            "requests": requests,
        });
        self.tell([OtherEvent {
            event_type: "backpressure.rejected".into(),
            subject: Arc::clone(queue),
            queue: Some(Arc::clone(queue)),
            job_type: kind.cloned(),
            data: Arc::from(data.to_string().into_bytes()),
        }]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_told_once_a_second_with_all_requests_since() {
        let (rejections, queue) = (Rejections::default(), Arc::from("mail"));
        let at = |ms: i64| Moment::from_micros(ms * 1_000);
        let told = [0, 1, 999, 1_000, 1_001, 5_000].map(|ms| rejections.count(&queue, at(ms)));
        assert_eq!(told, [Some(1), None, None, Some(3), None, Some(2)]);
        assert_eq!(rejections.count(&queue, at(4_000)), Some(1), "the clock was set back");
        for other in 0..2 * MOST_QUEUES {
            assert_eq!(rejections.count(&format!("queue-{other}").into(), at(5_000)), Some(1));
        }
        assert_eq!(rejections.0.lock().unwrap().len(), MOST_QUEUES);
    }
}
