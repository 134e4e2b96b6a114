//! What happened, as those who follow it learn of it: events of jobs, and of queues, schedules, workflows and workers.

use crate::{Blob, EventKind, Job, JobId, State, Transition};
use redrive_policy::{Moment, Policy, Span};
use std::sync::Arc;

/// An event that does not concern a single job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherEvent {
    /// Its type, such as `workflow.completed`.
    pub event_type: Arc<str>,
    /// What it concerns: the name of a queue, a schedule or a worker, or the id of a run.
    pub subject: Arc<str>,
    /// The queue, where it concerns one.
    pub queue: Option<Arc<str>>,
    /// The type of a job, where it concerns one.
    pub job_type: Option<Arc<str>>,
    /// What is told of it: one JSON object.
    pub data: Blob,
}

/// An event of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobEvent {
    /// Its type, such as `job.completed`.
    pub event_type: &'static str,
    /// Whether this is the event of the change itself. A failure has a second one beside it: `job.retrying` after
    /// `job.failed`, or `job.failed` before `job.discarded`.
    pub is_main: bool,
    /// What happened.
    pub kind: EventKind,
    /// The id of the job.
    pub job: JobId,
    /// The type of the job.
    pub job_type: Arc<str>,
    /// The queue of the job.
    pub queue: Arc<str>,
    /// The priority of the job.
    pub priority: i32,
    /// The state of the job before the event; absent for a new job.
    pub from: Option<State>,
    /// The state of the job after the event.
    pub state: State,
    /// The generation of the job that the event concerns, from 0.
    pub generation: u32,
    /// The attempt that the event concerns, as in [`Transition::attempt`].
    pub attempt: u32,
    /// How many attempts the policy allows, where a run failed and there is a limit.
    pub most_attempts: Option<u32>,
    /// How long the run took, where the event ended one.
    pub run_time: Option<Span>,
    /// Whether the job is a dead letter after the event.
    pub dead: bool,
    /// The worker of the run that the event started or ended; empty where the worker gave no name.
    pub worker: Option<Arc<str>>,
    /// When the job was enqueued.
    pub created: Moment,
    /// The time that the job waits for.
    pub due: Option<Moment>,
    /// When the job expires.
    pub expires: Option<Moment>,
    /// The error, where a run failed. One that is too large is left out.
    pub error: Option<Blob>,
    /// What the handler returned, where a run succeeded. A result that is too large is left out.
    pub result: Option<Blob>,
}

/// What an event tells.
#[derive(Clone, Debug, PartialEq)]
pub enum EventBody {
    /// Something happened to a job.
    Job(Box<JobEvent>),
    /// Something else happened.
    Other(OtherEvent),
}

impl EventBody {
    /// Its type.
    #[must_use]
    pub fn event_type(&self) -> &str {
        match self {
            Self::Job(event) => event.event_type,
            Self::Other(event) => &event.event_type,
        }
    }

    /// The queue that it concerns.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        match self {
            Self::Job(event) => Some(&event.queue),
            Self::Other(event) => event.queue.as_deref(),
        }
    }

    /// The type of the job that it concerns.
    #[must_use]
    pub fn job_type(&self) -> Option<&str> {
        match self {
            Self::Job(event) => Some(&event.job_type),
            Self::Other(event) => event.job_type.as_deref(),
        }
    }

    /// The event of a job.
    #[must_use]
    pub const fn job(&self) -> Option<&JobEvent> {
        match self {
            Self::Job(event) => Some(event),
            Self::Other(_) => None,
        }
    }
}

/// How the names of queues begin that only the server itself uses. What happens to their jobs is told as what happens
/// to deliveries of events.
pub const RESERVED_QUEUES: &str = "webhook:";

/// The types of the events of deliveries.
pub const DELIVERY_EVENT_TYPES: [&str; 3] = ["webhook.delivered", "webhook.failed", "webhook.dead"];

/// The types of the events of jobs.
pub const JOB_EVENT_TYPES: [&str; 13] = [
    "job.enqueued",
    "job.scheduled",
    "job.available",
    "job.started",
    "job.completed",
    "job.failed",
    "job.retrying",
    "job.discarded",
    "job.expired",
    "job.released",
    "job.cancelled",
    "dead_letter.retried",
    "dead_letter.deleted",
];

/// The type of the event of a change, and of those that are told before and after it.
const fn types_of(kind: EventKind, state: State) -> (Option<&'static str>, &'static str, Option<&'static str>) {
    match kind {
        EventKind::Enqueued if matches!(state, State::Scheduled) => (None, "job.scheduled", None),
        EventKind::Enqueued => (None, "job.enqueued", None),
        EventKind::Due | EventKind::Activated => (None, "job.available", None),
        EventKind::Claimed => (None, "job.started", None),
        EventKind::Completed => (None, "job.completed", None),
        EventKind::RetryScheduled => (None, "job.failed", Some("job.retrying")),
        EventKind::Discarded => (Some("job.failed"), "job.discarded", None),
        EventKind::Expired => (None, "job.expired", None),
        EventKind::Released | EventKind::Snoozed => (None, "job.released", None),
        EventKind::Cancelled => (None, "job.cancelled", None),
        EventKind::Redriven => (None, "dead_letter.retried", None),
        EventKind::Removed => (None, "dead_letter.deleted", None),
    }
}

/// The type of the event of a delivery, where it has one.
const fn of_delivery(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::Completed => Some("webhook.delivered"),
        EventKind::RetryScheduled => Some("webhook.failed"),
        EventKind::Discarded => Some("webhook.dead"),
        _ => None,
    }
}

impl JobEvent {
    /// The events of a change, in their order. Errors and results of more than `most_bytes` are left out.
    pub fn of(transition: &Transition, most_bytes: usize) -> impl Iterator<Item = Self> {
        let types = if transition.job.spec.queue.starts_with(RESERVED_QUEUES) {
            [None, of_delivery(transition.event).map(|one| (one, true)), None]
        } else {
            let (before, main, after) = types_of(transition.event, transition.job.state);
            [before.map(|one| (one, false)), Some((main, true)), after.map(|one| (one, false))]
        };
        types.into_iter().flatten().map(move |(one, is_main)| Self::new(one, is_main, transition, most_bytes))
    }

    /// The event of the change itself.
    #[must_use]
    pub fn main(transition: &Transition, most_bytes: usize) -> Self {
        let (_, main, _) = types_of(transition.event, transition.job.state);
        Self::new(main, true, transition, most_bytes)
    }

    fn new(event_type: &'static str, is_main: bool, transition: &Transition, most_bytes: usize) -> Self {
        let Job { id, spec, state, dead, times, due, result, .. } = &transition.job;
        let small = |blob: &&Blob| blob.len() <= most_bytes;
        let ends_well = transition.event == EventKind::Completed;
        Self {
            event_type,
            is_main,
            kind: transition.event,
            job: *id,
            job_type: Arc::clone(&spec.kind),
            queue: Arc::clone(&spec.queue),
            priority: spec.priority,
            from: transition.from,
            state: *state,
            generation: transition.generation(),
            attempt: transition.attempt,
            most_attempts: transition.failure().and(transition.decided_by()).and_then(most_attempts),
            run_time: transition.run_time(),
            dead: *dead,
            worker: transition.worker().map(Arc::clone),
            created: times.created,
            due: *due,
            expires: spec.expires,
            error: transition.failure().map(|failure| &failure.error).filter(small).cloned(),
            result: result.as_ref().filter(|_| ends_well).filter(small).cloned(),
        }
    }

    /// Its times, to be moved to another clock.
    pub fn times_mut(&mut self) -> impl Iterator<Item = &mut Moment> {
        [Some(&mut self.created), self.due.as_mut(), self.expires.as_mut()].into_iter().flatten()
    }
}

/// How many attempts a policy allows.
fn most_attempts(policy: &Policy) -> Option<u32> {
    let retries = policy.rules.first().and_then(|rule| policy.max_retries(rule));
    retries.map(|retries| retries.saturating_add(1))
}
