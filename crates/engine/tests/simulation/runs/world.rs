//! Two nodes with a program, and what their clients know of runs.

use super::program::{Errands, Plan, QUEUE};
use crate::common::Seeded;
use crate::faults::Faults;
use crate::nodes::{Nodes, Setup};
use redrive_engine::{ManualClock, Program, RunLimits};
use redrive_policy::Moment;
use redrive_store::RunId;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

/// What a client knows of a run.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) plan: Plan,
    /// Whether the start was acknowledged.
    pub(crate) started: bool,
    /// How many notes were sent, and how many of them were acknowledged.
    pub(crate) notes_sent: u64,
    pub(crate) notes: u64,
    pub(crate) cancel_sent: bool,
    /// Whether it was acknowledged that it goes to its end because of that.
    pub(crate) cancelled: bool,
}

pub(crate) struct RunWorld {
    pub(crate) nodes: Rc<Nodes>,
    pub(crate) known: RefCell<BTreeMap<RunId, Known>>,
}

impl RunWorld {
    pub(crate) fn new(start: Moment, faults: Arc<Faults>, rng: Seeded) -> Self {
        let programs = || [Arc::new(Errands) as Arc<dyn Program>];
        let setup = Setup {
            between: Box::new(|store| store),
            equip: Box::new(move |engine| engine.with_programs(programs(), RunLimits::default())),
        };
        let nodes = Nodes::new(Arc::new(ManualClock::at(start)), faults, setup, rng);
        Self { nodes: Rc::new(nodes), known: RefCell::default() }
    }

    pub(crate) fn queues() -> Vec<Arc<str>> {
        vec![QUEUE.into()]
    }
}

impl Deref for RunWorld {
    type Target = Nodes;

    fn deref(&self) -> &Nodes {
        &self.nodes
    }
}
