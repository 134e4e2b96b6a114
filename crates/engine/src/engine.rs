//! The engine: one store, one clock, one source of randomness, and the rules.

use crate::admission::Admission;
use crate::discards::Discards;
use crate::ends::Ends;
use crate::events::EventLog;
use crate::history::History;
use crate::limits::KnownLimits;
use crate::maintenance::{self, MaintenanceProgram};
use crate::observer::Observed;
use crate::policies::Policies;
use crate::progress::Watch;
use crate::rejections::Rejections;
use crate::run::{Program, RunLimits, Runs};
use crate::throttle::Throttle;
use crate::workers::Workers;
use crate::{Clock, EngineError, Layers, Randomness};
use redrive_policy::{Moment, Span};
use redrive_store::{EventBody, Job, JobEvent, JobId, OtherEvent, Refusal, Retention, Store, Transition};
use std::sync::Arc;
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
    /// How long jobs that have ended are stored.
    pub retention: Retention,
    /// How often in a row a job may be released.
    pub most_releases: u32,
    /// How many jobs may wait in a queue for which nothing else is set; absent or zero, any number.
    pub max_depth: Option<u64>,
    /// How many jobs one claim gets at most.
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
            max_depth: None,
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
    pub(crate) policies: Policies,
    pub(crate) admission: Admission,
    pub(crate) known_limits: KnownLimits,
    pub(crate) rejections: Rejections,
    pub(crate) event_log: EventLog,
    pub(crate) discards: Discards,
    pub(crate) ends: Ends,
    pub(crate) history: History,
    pub(crate) maintenance: maintenance::Known,
    pub(crate) throttle: Throttle,
    pub(crate) watch: Watch,
    pub(crate) observer: Observed,
    pub(crate) workers: Workers,
    pub(crate) runs: Runs,
    /// Notified when an application may have written to the inbox.
    pub(crate) inbox: Notify,
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
            policies: Policies::default(),
            admission: Admission::default(),
            known_limits: KnownLimits::default(),
            rejections: Rejections::default(),
            event_log: EventLog::default(),
            discards: Discards::default(),
            ends: Ends::default(),
            history: History::default(),
            maintenance: maintenance::Known::default(),
            throttle: Throttle::default(),
            watch: Watch::default(),
            observer: Observed::default(),
            workers: Workers::default(),
            runs: Runs::default(),
            inbox: Notify::new(),
        }
    }

    /// The same engine with programs, so that it can advance their runs, and what those may not exceed.
    #[must_use]
    pub fn with_programs(mut self, programs: impl IntoIterator<Item = Arc<dyn Program>>, limits: RunLimits) -> Self {
        self.runs.add(Arc::new(MaintenanceProgram));
        programs.into_iter().for_each(|program| self.runs.add(program));
        self.runs.limits = limits;
        self
    }

    /// What the operator has set.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Publishes what happened to everything that listens: the one place through which transitions go.
    pub(crate) fn publish<'a>(&self, transitions: impl Iterator<Item = &'a Transition> + Clone) {
        if transitions.clone().next().is_some() {
            self.throttle.note_event();
        }
        self.event_log.append(transitions.clone());
        if self.runs.has_listeners() {
            let events = transitions.clone().flat_map(|one| JobEvent::of(one, 0));
            let events: Vec<EventBody> = events.map(|event| EventBody::Job(Box::new(event))).collect();
            self.runs.wake_listeners(&events);
        }
        if let Some(observer) = self.observer.get() {
            observer.changed(&mut transitions.clone());
        }
        self.discards.count(transitions.clone());
        self.history.count(transitions.clone(), self.clock.wall().ahead_us);
        self.watch.forget(transitions.clone());
        self.runs.wake(transitions.clone().filter_map(Transition::told_run));
        self.admission.ended(transitions.clone());
        self.ends.tell(transitions.clone());
        self.wake(transitions.map(|transition| &transition.job));
    }

    /// Publishes what happened to something other than a job.
    pub(crate) fn tell(&self, events: impl IntoIterator<Item = OtherEvent>) {
        let events: Vec<EventBody> = events.into_iter().map(EventBody::Other).collect();
        if self.runs.has_listeners() {
            self.runs.wake_listeners(&events);
        }
        self.event_log.tell(events, self.clock.now());
    }

    /// These jobs have changed: admission decides who is woken.
    pub(crate) fn wake<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone) {
        self.admission.changed(jobs);
    }
}

/// The store's answer about a single job, with the id of the job for the message.
pub(crate) fn refused<T>(id: JobId, answer: Result<T, Refusal>) -> Result<T, EngineError> {
    answer.map_err(|refusal| EngineError::Refused(id, refusal))
}
