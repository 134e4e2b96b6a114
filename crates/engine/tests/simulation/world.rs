//! What the actors of a simulation share: a server that can crash, a clock, and the ledger.

use super::common::{Seeded, Wrapped};
use super::faults::Faults;
use super::ledger::{Ledger, Seq, When};
use super::server_policies::ServerPolicies;
use redrive_engine::{Clock, Engine, EngineError, Event, ManualClock, Randomness};
use redrive_policy::{Moment, Span};
use redrive_store::Store;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// What came back from a request.
pub(crate) enum Response<T> {
    Answer(T),
    /// The engine says no.
    Refused(EngineError),
    /// Nothing, or that the store did not answer. It may have been done or not.
    Lost,
}

/// A claim that waits for a job.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) queues: Vec<&'static str>,
    /// How many answers had got lost when it began, other than those to claims.
    pub(crate) lost_before: u64,
    /// Since when.
    pub(crate) from: Seq,
}

pub(crate) struct World {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ledger: RefCell<Ledger>,
    pub(crate) policies: ServerPolicies,
    pub(crate) faults: Arc<Faults>,
    /// How many jobs are enqueued at most.
    pub(crate) most_jobs: usize,
    /// Claims that wait, by the worker.
    pub(crate) waiting: RefCell<Vec<Option<Waiting>>>,
    /// Producers that may enqueue the same job again.
    pub(crate) unresolved: Cell<usize>,
    pub(crate) pruning: Cell<bool>,
    random: Seeded,
    engine: RefCell<Option<Rc<Engine>>>,
    /// How often the server was started.
    starts: Cell<u32>,
    in_flight: Cell<usize>,
    turns: Cell<u64>,
    calm: Cell<bool>,
    closing: Cell<bool>,
    parked: RefCell<Vec<Waker>>,
}

impl World {
    pub(crate) fn new(
        start: Moment,
        policies: ServerPolicies,
        faults: Arc<Faults>,
        most_jobs: usize,
        random: Seeded,
    ) -> Self {
        let world = Self {
            clock: Arc::new(ManualClock::at(start)),
            ledger: RefCell::default(),
            policies,
            faults,
            most_jobs,
            waiting: RefCell::default(),
            unresolved: Cell::new(0),
            pruning: Cell::new(false),
            random,
            engine: RefCell::new(None),
            starts: Cell::new(0),
            in_flight: Cell::new(0),
            turns: Cell::new(0),
            calm: Cell::new(false),
            closing: Cell::new(false),
            parked: RefCell::default(),
        };
        world.set_clock(start);
        world
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn set_clock(&self, now: Moment) {
        self.clock.set(now);
        self.ledger.borrow_mut().clock_set(now);
    }

    pub(crate) fn advance(&self, span: Span) {
        self.set_clock(self.now().after(span));
    }

    /// The server comes up on a store.
    pub(crate) fn start(&self, store: Arc<dyn Store>) {
        let store = Arc::new(Wrapped::new(store, Arc::clone(&self.faults)));
        let clock: Arc<dyn Clock> = self.clock.clone();
        let random: Arc<dyn Randomness> = Arc::new(self.random.child());
        let engine = Engine::new(store, clock, random, self.policies.settings());
        *self.engine.borrow_mut() = Some(Rc::new(engine));
    }

    /// The server dies. Callers that wait for an answer get none when they are polled next.
    pub(crate) fn die(&self) {
        self.starts.set(self.starts.get() + 1);
        let engine = self.engine.borrow_mut().take();
        self.ledger.borrow_mut().died(engine.map_or_else(Vec::new, |engine| event_log(&engine)));
    }

    /// The simulation is over: the server has nothing more to say.
    pub(crate) fn end(&self) {
        let log = self.engine.borrow().as_deref().map_or_else(Vec::new, event_log);
        self.ledger.borrow_mut().event_logs.push(log);
    }

    /// How many requests are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// A request. A caller with a timeout in turns hangs up then, wherever the request is.
    pub(crate) async fn ask<T, F>(
        &self,
        timeout: Option<u64>,
        request: impl FnOnce(Rc<Engine>) -> F,
    ) -> (When, Response<T>)
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let from = self.ledger.borrow_mut().mark();
        let engine = self.engine.borrow().clone();
        let response = match engine {
            Some(engine) => self.answer(request(engine), timeout).await,
            None => Response::Lost,
        };
        let mut ledger = self.ledger.borrow_mut();
        ledger.lost += u64::from(matches!(response, Response::Lost));
        (When { from, to: ledger.mark() }, response)
    }

    async fn answer<T>(
        &self,
        request: impl Future<Output = Result<T, EngineError>>,
        timeout: Option<u64>,
    ) -> Response<T> {
        let started = self.starts.get();
        let hangs_up = timeout.map(|turns| self.turns.get() + turns);
        self.in_flight.set(self.in_flight.get() + 1);
        let mut request = Some(Box::pin(request));
        let response = poll_fn(|context| {
            let hangs_up = hangs_up.is_some_and(|turn| self.turns.get() >= turn);
            let Some(under_way) = request.as_mut().filter(|_| !hangs_up && self.starts.get() == started) else {
                request = None;
                return Poll::Ready(Response::Lost);
            };
            under_way.as_mut().poll(context).map(|answer| match answer {
                Ok(answer) => Response::Answer(answer),
                Err(EngineError::Store(_)) => Response::Lost,
                Err(error) => Response::Refused(error),
            })
        })
        .await;
        drop(request);
        self.in_flight.set(self.in_flight.get() - 1);
        response
    }

    /// Another turn of the simulation has begun.
    pub(crate) fn turn(&self) {
        self.turns.set(self.turns.get() + 1);
    }

    /// Does nothing for so many turns.
    pub(crate) async fn idle(&self, turns: u64) {
        for _ in 0..turns {
            let mut polled = false;
            poll_fn(|context| {
                if self.calm.get() {
                    self.parked.borrow_mut().push(context.waker().clone());
                    return Poll::Pending;
                }
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }

    /// While it is calm, no actor begins anything.
    pub(crate) fn set_calm(&self, calm: bool) {
        self.calm.set(calm);
        if !calm {
            self.parked.borrow_mut().drain(..).for_each(Waker::wake);
        }
    }

    /// Every actor finishes what is under way, and leaves.
    pub(crate) fn close(&self) {
        self.closing.set(true);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }
}

/// The whole event log. It is bounded, and the checks of it want all events.
fn event_log(engine: &Engine) -> Vec<Event> {
    let (events, _) = engine.events(0, usize::MAX, |_| true);
    assert!(events.first().is_none_or(|first| first.number == 1), "the simulation outgrew the event log");
    events
}
