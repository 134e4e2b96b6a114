//! The engine: one store, one clock, one source of randomness, and the rules.

use crate::discards::Discards;
use crate::events::Chronicle;
use crate::gate::Gates;
use crate::progress::Watch;
use crate::waiting::Waiting;
use crate::{Clock, EngineError, Layers, Randomness};
use redrive_policy::{Moment, Span};
use redrive_store::{Event, Job, JobId, Refusal, Retention, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::sync::Notify;

/// What an operator can set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which policy applies to which job.
    pub layers: Layers,
    /// How long a lease lasts, where neither job nor worker says.
    pub lease: Span,
    /// How long a run may take, where the job does not say.
    pub timeout: Option<Span>,
    /// How long ended jobs are kept.
    pub retention: Retention,
    /// How often in a row a job may be given back unfinished.
    pub most_releases: u32,
    /// How many jobs one claim hands out at most.
    pub most_claimed: usize,
    /// How many jobs one sweep touches in a single step.
    pub sweep_step: usize,
}

impl Settings {
    /// The defaults: what OJS says, and a day for what has ended, a month for dead letters.
    #[must_use]
    pub fn new(layers: Layers) -> Self {
        Self {
            layers,
            lease: Span::from_secs(1_800),
            timeout: Some(Span::from_secs(1_800)),
            retention: Retention { finished: Span::from_secs(86_400), dead: Span::from_secs(30 * 86_400) },
            most_releases: 100,
            most_claimed: 1_000,
            sweep_step: 1_000,
        }
    }
}

/// The engine. Commands are methods, one file each.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Arc<dyn Randomness>,
    pub(crate) settings: Settings,
    pub(crate) gates: Gates,
    pub(crate) chronicle: Chronicle,
    pub(crate) discards: Discards,
    pub(crate) waiting: Waiting,
    pub(crate) watch: Watch,
    /// Rung when something has to happen earlier than the sweeper plans to look.
    pub(crate) earlier: Notify,
    /// Rung when an application may have left something in the store.
    pub(crate) inbox: Notify,
    /// When the sweeper looks next, in microseconds; the end of time while it is looking, so that
    /// whatever comes in between rings.
    pub(crate) planned: AtomicI64,
    /// When it was made.
    pub(crate) begun: Moment,
}

impl Engine {
    /// An engine on a store.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        randomness: Arc<dyn Randomness>,
        settings: Settings,
    ) -> Self {
        Self {
            store,
            begun: clock.now(),
            clock,
            randomness,
            settings,
            gates: Gates::default(),
            chronicle: Chronicle::default(),
            discards: Discards::default(),
            waiting: Waiting::default(),
            watch: Watch::default(),
            earlier: Notify::new(),
            inbox: Notify::new(),
            planned: AtomicI64::new(i64::MAX),
        }
    }

    /// What the operator has set.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Rings for those who wait, after these jobs have changed: workers where one may run, the sweeper
    /// where it has to look earlier than it plans.
    pub(crate) fn wake<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone) {
        let planned = self.planned.load(Ordering::Acquire);
        let held = self.gates.held();
        let next = |job: &Job| next_change(job, held.lease_refs(&job.spec));
        if jobs.clone().any(|job| next(job).is_some_and(|next| next.micros() < planned)) {
            self.earlier.notify_one();
        }
        self.waiting.wake_for(jobs);
    }
}

/// When something happens to a job by itself next. Where its queue is held, it is not opened when it is due.
fn next_change(job: &Job, held: bool) -> Option<Moment> {
    let expires = job.state.after(Event::Expire).and(job.spec.expires);
    let lease = job.lease.as_ref();
    let ends = [lease.map(|lease| lease.until), lease.and_then(|lease| lease.deadline)];
    [job.due.filter(|_| !held), expires].into_iter().chain(ends).flatten().min()
}

/// The answer about a single job: the store's, with the job's name for the message.
pub(crate) fn refused<T>(id: JobId, answer: Result<T, Refusal>) -> Result<T, EngineError> {
    answer.map_err(|refusal| EngineError::Refused(id, refusal))
}
