//! The event log: what happened lately, in memory. It is bounded, and drops the oldest events.

use crate::Engine;
use redrive_policy::Moment;
use redrive_store::{EventBody, EventKind, JobEvent, Transition};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// How many events are stored.
pub const EVENTS_STORED: usize = 10_000;

/// The largest error or result of an event that is stored, in bytes.
const LARGEST_PART: usize = 4_096;

/// Something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Its number since the start of the process, from 1.
    pub number: u64,
    /// When it happened.
    pub at: Moment,
    /// What happened.
    pub body: EventBody,
}

impl Event {
    /// What happened to a job, where this is the event of the change itself.
    #[must_use]
    pub fn change(&self) -> Option<&JobEvent> {
        self.body.job().filter(|event| event.is_main)
    }
}

/// What [`Engine::events_since`] found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecentEvents {
    /// How many events after the given one are not stored any more, or lie too far back. Whether they would have
    /// fitted is not known.
    pub missed: u64,
    /// Those that fit, oldest first.
    pub events: Vec<Event>,
    /// The number of the last event that was looked at: from here it goes on.
    pub seen: u64,
}

/// How many runs end in a minute.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Throughput {
    /// Runs that succeeded.
    pub completed: f64,
    /// Runs that failed.
    pub failed: f64,
}

/// The log.
#[derive(Debug)]
pub(crate) struct EventLog {
    events: Mutex<(u64, VecDeque<Event>)>,
    /// The number of the latest event, for those who wait for the next.
    latest: watch::Sender<u64>,
}

impl Default for EventLog {
    fn default() -> Self {
        Self { events: Mutex::default(), latest: watch::Sender::new(0) }
    }
}

impl EventLog {
    /// Appends what happened.
    pub(crate) fn append<'a>(&self, transitions: impl IntoIterator<Item = &'a Transition>) {
        let events = transitions.into_iter().flat_map(|transition| {
            let told = JobEvent::of(transition, LARGEST_PART);
            told.map(|event| (transition.at, EventBody::Job(Box::new(event))))
        });
        self.store(events);
    }

    /// Appends what happened to something other than a job.
    pub(crate) fn tell(&self, events: Vec<EventBody>, at: Moment) {
        self.store(events.into_iter().map(|event| (at, event)));
    }

    fn store(&self, bodies: impl Iterator<Item = (Moment, EventBody)>) {
        let mut log = self.log();
        let (last, events) = &mut *log;
        for (at, body) in bodies {
            *last += 1;
            if events.len() == EVENTS_STORED {
                events.pop_front();
            }
            events.push_back(Event { number: *last, at, body });
        }
        // Those who wait have subscribed before they looked: either they found these events, or they are counted here.
        if self.latest.receiver_count() > 0 {
            self.latest.send_replace(*last);
        }
    }

    /// Wakes those who wait for events, for something that is not one.
    pub(crate) fn announce(&self) {
        if self.latest.receiver_count() > 0 {
            self.latest.send_modify(|_| {});
        }
    }

    fn log(&self) -> MutexGuard<'_, (u64, VecDeque<Event>)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// What happened after the event of this number and fits, oldest first, at most `limit`; and whether there is
    /// more. Events that the log dropped, and those before the start of this process, are not listed.
    pub fn events(&self, after: u64, limit: usize, fits: impl Fn(&Event) -> bool) -> (Vec<Event>, bool) {
        let log = self.event_log.log();
        let start = log.1.partition_point(|event| event.number <= after);
        let mut fitting = log.1.range(start..).filter(|event| fits(event));
        let events: Vec<Event> = fitting.by_ref().take(limit).map(|event| self.shown_event(event)).collect();
        let more = fitting.next().is_some();
        (events, more)
    }

    /// The number of the latest event; 0 where nothing has happened since the start of this process.
    #[must_use]
    pub fn latest_event(&self) -> u64 {
        self.event_log.log().0
    }

    /// What happened after the event of this number and fits, oldest first, at most `limit`. What lies more than
    /// `most_behind` events back is left out, and so is what is not stored any more; the answer counts both.
    pub fn events_since(
        &self,
        after: u64,
        most_behind: usize,
        limit: usize,
        fits: impl Fn(&Event) -> bool,
    ) -> RecentEvents {
        let log = self.event_log.log();
        let (last, stored) = &*log;
        let behind = most_behind.min(stored.len()) as u64;
        let from = after.max(last.saturating_sub(behind));
        let start = stored.partition_point(|event| event.number <= from);
        let (mut events, mut seen) = (Vec::new(), *last);
        for event in stored.range(start..).filter(|event| fits(event)) {
            if events.len() == limit {
                break;
            }
            events.push(self.shown_event(event));
        }
        if let Some(full) = events.last().filter(|_| events.len() == limit) {
            seen = full.number;
        }
        RecentEvents { missed: from - after.min(from), events, seen: seen.max(after) }
    }

    /// Changes whenever something happens, or the progress of a run is reported. To miss nothing, subscribe first, and
    /// then look.
    #[must_use]
    pub fn watch_events(&self) -> watch::Receiver<u64> {
        self.event_log.latest.subscribe()
    }

    /// How many runs succeeded and how many failed in the last minute, of one queue or of all. Where the stored events
    /// cover less, the numbers are those of the time covered, multiplied accordingly.
    #[must_use]
    pub fn throughput(&self, queue: Option<&str>) -> Throughput {
        const MINUTE_MS: f64 = 60_000.0;
        let now = self.clock.now();
        let age_ms = |event: &Event| now.since(event.at).ms();
        let log = self.event_log.log();
        let covered_ms = match log.1.front().filter(|_| log.1.len() == EVENTS_STORED) {
            Some(oldest) => age_ms(oldest).clamp(1_000.0, MINUTE_MS),
            None => MINUTE_MS,
        };
        let is_counted = |event: &&JobEvent| queue.is_none_or(|queue| *event.queue == *queue);
        let (mut completed, mut failed) = (0.0, 0.0);
        let lately = log.1.iter().rev().take_while(|event| age_ms(event) < MINUTE_MS);
        for event in lately.filter_map(Event::change).filter(is_counted) {
            match event.kind {
                EventKind::Completed => completed += MINUTE_MS / covered_ms,
                EventKind::RetryScheduled | EventKind::Discarded => failed += MINUTE_MS / covered_ms,
                _ => {}
            }
        }
        Throughput { completed, failed }
    }

    fn shown_event(&self, event: &Event) -> Event {
        let mut event = Event { at: self.shown(event.at), ..event.clone() };
        if let EventBody::Job(body) = &mut event.body {
            body.times_mut().for_each(|at| *at = self.shown(*at));
        }
        event
    }
}
