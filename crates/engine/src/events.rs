//! What happened lately, in memory: a bounded ring that forgets the oldest.

use crate::Engine;
use redrive_policy::Moment;
use redrive_store::{Job, JobId, State};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many events are remembered.
const REMEMBERED: usize = 10_000;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A job was handed in.
    Enqueued,
    /// A job may run from now on: its time has come, or somebody activated it.
    Available,
    /// A worker has begun a run.
    Started,
    /// A run succeeded.
    Completed,
    /// A run failed, and the job runs again.
    Retrying,
    /// A run failed, and the job does not run again.
    Discarded,
    /// The time to live of a job was over before it ran.
    Expired,
    /// A run was given back unfinished.
    Released,
    /// A job was called off.
    Cancelled,
    /// A job was taken back from where it ended.
    Redriven,
    /// A job was forgotten at somebody's wish.
    Removed,
}

/// Something that happened to a job.
#[derive(Clone, Debug)]
pub struct Occurrence {
    /// Its number since the start of the process, from 1.
    pub number: u64,
    /// When.
    pub at: Moment,
    /// What.
    pub what: Happening,
    /// To which job.
    pub job: JobId,
    /// What kind of work it is.
    pub kind: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// Its state since.
    pub state: State,
    /// Its attempt since.
    pub attempt: u32,
    /// When the run began that this is about.
    pub started: Option<Moment>,
    /// Whether it is a dead letter since.
    pub dead: bool,
}

/// The ring.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    ring: Mutex<(u64, VecDeque<Occurrence>)>,
}

impl Chronicle {
    /// Takes note of what happened to jobs.
    pub(crate) fn note<'a>(&self, at: Moment, happened: impl IntoIterator<Item = (Happening, &'a Job)>) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, events) = &mut *ring;
        for (what, job) in happened {
            *last += 1;
            if events.len() == REMEMBERED {
                events.pop_front();
            }
            events.push_back(Occurrence {
                number: *last,
                at,
                what,
                job: job.id,
                kind: Arc::clone(&job.spec.kind),
                queue: Arc::clone(&job.spec.queue),
                state: job.state,
                attempt: job.attempt,
                started: job.times.started,
                dead: job.dead,
            });
        }
    }
}

impl Engine {
    /// What happened after the event of this number and fits, oldest first, at most `limit`; and
    /// whether there is more. What is older than the ring is gone, and what happened before this
    /// process started too.
    pub fn events(&self, after: u64, limit: usize, fits: impl Fn(&Occurrence) -> bool) -> (Vec<Occurrence>, bool) {
        let ring = self.chronicle.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let start = ring.1.partition_point(|event| event.number <= after);
        let mut fitting = ring.1.range(start..).filter(|event| fits(event));
        let shown = |event: &Occurrence| {
            let (at, started) = (self.shown(event.at), event.started.map(|at| self.shown(at)));
            Occurrence { at, started, ..event.clone() }
        };
        let events: Vec<Occurrence> = fitting.by_ref().take(limit).map(shown).collect();
        let more = fitting.next().is_some();
        (events, more)
    }
}

/// What the end of a run, or of a wait, was, judged by the job since.
pub(crate) fn outcome(job: &Job) -> Happening {
    match job.state {
        State::Completed => Happening::Completed,
        State::Retryable if job.releases > 0 => Happening::Released,
        State::Retryable => Happening::Retrying,
        State::Discarded => Happening::Discarded,
        State::Cancelled => Happening::Cancelled,
        State::Available | State::Scheduled | State::Pending | State::Active => Happening::Released,
    }
}
