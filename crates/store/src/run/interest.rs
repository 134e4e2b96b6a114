//! What a run wants to learn of beside its own jobs.

use crate::{EventBody, JobEvent, OtherEvent, RESERVED_QUEUES, Transition};
use std::sync::Arc;

/// The largest error or result in the message of an event, in bytes.
const LARGEST_PART: usize = 64 << 10;

/// Which events a run wants. The store leaves a message for each of them in its inbox, in the atomic step of what
/// happens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interest {
    /// Types, or the beginnings of types with a `*` behind them.
    pub types: Vec<Arc<str>>,
    /// Only of these queues; empty for all, and for events that concern no queue.
    pub queues: Vec<Arc<str>>,
    /// Only of jobs of these types; empty for all, and for events that concern none.
    pub job_types: Vec<Arc<str>>,
}

impl Interest {
    /// Whether an event is wanted. What happens to jobs of reserved queues, and what is told of them, is never: a run
    /// that enqueues a job for each event would have no end.
    #[must_use]
    pub fn fits(&self, event: &EventBody) -> bool {
        let one_of = |wanted: &[Arc<str>], found: Option<&str>| {
            wanted.is_empty() || found.is_some_and(|found| wanted.iter().any(|wanted| **wanted == *found))
        };
        self.wants_type(event.event_type())
            && !event.queue().is_some_and(|queue| queue.starts_with(RESERVED_QUEUES))
            && one_of(&self.queues, event.queue())
            && one_of(&self.job_types, event.job_type())
    }

    fn wants_type(&self, event_type: &str) -> bool {
        let fits = |wanted: &Arc<str>| match wanted.strip_suffix('*') {
            Some(begin) => event_type.starts_with(begin),
            None => **wanted == *event_type,
        };
        !event_type.starts_with("webhook.") && self.types.iter().any(fits)
    }
}

/// The events of a change, as messages have them.
pub(crate) fn events_of(transition: &Transition) -> impl Iterator<Item = EventBody> {
    JobEvent::of(transition, LARGEST_PART).map(|event| EventBody::Job(Box::new(event)))
}

/// A queue was paused or resumed.
pub(crate) fn queue_paused(queue: &Arc<str>, paused: bool) -> OtherEvent {
    let event_type = if paused { "queue.paused" } else { "queue.resumed" };
    let data = serde_json::json!({ "queue": &**queue }).to_string().into_bytes();
    OtherEvent {
        event_type: event_type.into(),
        subject: Arc::clone(queue),
        queue: Some(Arc::clone(queue)),
        job_type: None,
        data: data.into(),
    }
}
