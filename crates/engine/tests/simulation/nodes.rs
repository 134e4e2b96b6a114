//! Two nodes on one store, with a clock that is moved by hand.

use crate::common::{Seeded, Wrapped};
use crate::faults::Faults;
use redrive_engine::{Clock, Engine, EngineError, Layers, ManualClock, Randomness, Settings};
use redrive_policy::{Moment, Span};
use redrive_store::Store;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// How many nodes there are.
pub(crate) const NODES: usize = 2;

/// How often each thing happened.
pub(crate) type Tally = BTreeMap<&'static str, u64>;

/// Puts something around a store.
type Around = Box<dyn Fn(Arc<dyn Store>) -> Arc<dyn Store>>;

/// How a node is set up on its store, which fails as `Faults` says.
pub(crate) struct Setup {
    /// What stands between the faults and the store.
    pub(crate) between: Around,
    /// What an engine has besides its store, before its first request.
    pub(crate) equip: Box<dyn Fn(Engine) -> Engine>,
}

pub(crate) struct Nodes {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) tally: RefCell<Tally>,
    setup: Setup,
    rng: Seeded,
    nodes: RefCell<Vec<Rc<Engine>>>,
    /// How often each node was started.
    starts: [Cell<u32>; NODES],
    in_flight: Cell<usize>,
    closing: Cell<bool>,
}

impl Nodes {
    pub(crate) fn new(clock: Arc<ManualClock>, faults: Arc<Faults>, setup: Setup, rng: Seeded) -> Self {
        Self {
            clock,
            faults,
            tally: RefCell::default(),
            setup,
            rng,
            nodes: RefCell::default(),
            starts: Default::default(),
            in_flight: Cell::new(0),
            closing: Cell::new(false),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn advance(&self, span: Span) {
        self.clock.set(self.now().after(span));
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.tally.borrow_mut().entry(what).or_default() += 1;
    }

    /// All nodes come up on a store.
    pub(crate) fn start(&self, store: &Arc<dyn Store>) {
        *self.nodes.borrow_mut() = (0..NODES).map(|_| self.node(store)).collect();
    }

    fn node(&self, store: &Arc<dyn Store>) -> Rc<Engine> {
        let store = (self.setup.between)(Arc::clone(store));
        let store = Arc::new(Wrapped::new(store, Arc::clone(&self.faults)));
        let clock: Arc<dyn Clock> = self.clock.clone();
        let random: Arc<dyn Randomness> = Arc::new(self.rng.child());
        let settings = Settings::new(Layers::ojs_default().expect("the defaults are valid"));
        Rc::new((self.setup.equip)(Engine::new(store, clock, random, settings)))
    }

    /// A node is lost, and another takes its place. Callers that wait for its answer get none.
    pub(crate) fn lose(&self, node: usize, store: &Arc<dyn Store>) {
        self.starts[node].set(self.starts[node].get() + 1);
        let new = self.node(store);
        self.nodes.borrow_mut()[node] = new;
    }

    /// All nodes are gone.
    pub(crate) fn die(&self) {
        self.starts.iter().for_each(|starts| starts.set(starts.get() + 1));
        self.nodes.borrow_mut().clear();
    }

    /// How many requests are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    pub(crate) fn close(&self) {
        self.closing.set(true);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.get()
    }

    /// A request to some node. `None` where no answer comes: it may have been carried out or not.
    pub(crate) async fn ask<T, F>(&self, request: impl FnOnce(Rc<Engine>) -> F) -> Option<Result<T, EngineError>>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        self.ask_node(self.rng.below(NODES as u64) as usize, request).await
    }

    /// A request to this node.
    pub(crate) async fn ask_node<T, F>(
        &self,
        node: usize,
        request: impl FnOnce(Rc<Engine>) -> F,
    ) -> Option<Result<T, EngineError>>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let engine = self.nodes.borrow().get(node).cloned()?;
        let started = self.starts[node].get();
        self.in_flight.set(self.in_flight.get() + 1);
        let mut request = Some(Box::pin(request(engine)));
        let answer = poll_fn(|context| {
            let Some(under_way) = request.as_mut().filter(|_| self.starts[node].get() == started) else {
                request = None;
                return Poll::Ready(None);
            };
            under_way.as_mut().poll(context).map(|answer| match answer {
                Err(EngineError::Store(_)) => None,
                answer => Some(answer),
            })
        })
        .await;
        drop(request);
        self.in_flight.set(self.in_flight.get() - 1);
        answer
    }

    /// Does nothing for so many turns.
    pub(crate) async fn idle(&self, turns: u64) {
        for _ in 0..turns {
            let mut polled = false;
            poll_fn(|context| {
                if std::mem::replace(&mut polled, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    }
}
