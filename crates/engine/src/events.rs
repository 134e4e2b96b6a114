//! The event log: what happened lately, in memory. It is bounded, and drops the oldest events.

use crate::Engine;
use redrive_policy::{Moment, Span};
use redrive_store::{EventKind, JobId, State, Transition};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many events are stored.
const CAPACITY: usize = 10_000;

/// Something that happened to a job.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Its number since the start of the process, from 1.
    pub number: u64,
    /// When it happened.
    pub at: Moment,
    /// What happened.
    pub kind: EventKind,
    /// The id of the job.
    pub job: JobId,
    /// The type of the job.
    pub job_type: Arc<str>,
    /// The queue of the job.
    pub queue: Arc<str>,
    /// The state of the job after the event.
    pub state: State,
    /// The generation of the job that the event concerns, from 0.
    pub generation: u32,
    /// The attempt that the event concerns, as in [`Transition::attempt`].
    pub attempt: u32,
    /// How long the run took, where the event ended one.
    pub run_time: Option<Span>,
    /// Whether the job is a dead letter after the event.
    pub dead: bool,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    events: Mutex<(u64, VecDeque<Event>)>,
}

impl EventLog {
    /// Appends what happened.
    pub(crate) fn append<'a>(&self, transitions: impl IntoIterator<Item = &'a Transition>) {
        let mut log = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, events) = &mut *log;
        for transition in transitions {
            *last += 1;
            if events.len() == CAPACITY {
                events.pop_front();
            }
            events.push_back(Event::new(*last, transition));
        }
    }
}

impl Event {
    fn new(number: u64, transition: &Transition) -> Self {
        let job = &transition.job;
        Self {
            number,
            at: transition.at,
            kind: transition.event,
            job: job.id,
            job_type: Arc::clone(&job.spec.kind),
            queue: Arc::clone(&job.spec.queue),
            state: job.state,
            generation: transition.generation(),
            attempt: transition.attempt,
            run_time: transition.run_time(),
            dead: job.dead,
        }
    }
}

impl Engine {
    /// What happened after the event of this number and fits, oldest first, at most `limit`; and whether there is
    /// more. Events that the log dropped, and those before the start of this process, are not listed.
    pub fn events(&self, after: u64, limit: usize, fits: impl Fn(&Event) -> bool) -> (Vec<Event>, bool) {
        let log = self.event_log.events.lock().unwrap_or_else(PoisonError::into_inner);
        let start = log.1.partition_point(|event| event.number <= after);
        let mut fitting = log.1.range(start..).filter(|event| fits(event));
        let shown = |event: &Event| Event { at: self.shown(event.at), ..event.clone() };
        let events: Vec<Event> = fitting.by_ref().take(limit).map(shown).collect();
        let more = fitting.next().is_some();
        (events, more)
    }
}
