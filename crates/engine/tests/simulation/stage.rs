//! Actors around two nodes: one after the other goes on, and now and then something happens that none of them decides.
//! Nodes are lost, the server dies, the clock leaps and steps back.

use crate::common::Seeded;
use crate::nodes::{NODES, Nodes, Tally};
use crate::scheduler::Scheduler;
use crate::store_kind::StoreKind;
use redrive_policy::{Moment, Span};
use redrive_store::Store;
use std::rc::Rc;
use std::sync::Arc;

/// The first second of 2026.
pub(crate) const START: Moment = Moment::from_micros(1_767_225_600_000_000);

pub(crate) struct Stage<'a> {
    pub(crate) nodes: Rc<Nodes>,
    pub(crate) scheduler: Scheduler,
    pub(crate) rng: Seeded,
    store_kind: &'a mut dyn StoreKind,
    store: Option<Arc<dyn Store>>,
}

impl<'a> Stage<'a> {
    /// The nodes come up on a new store.
    pub(crate) fn new(nodes: Rc<Nodes>, store_kind: &'a mut dyn StoreKind, rng: Seeded) -> Self {
        let store = store_kind.open();
        nodes.start(&store);
        Self { nodes, scheduler: Scheduler::new(rng.child()), rng, store_kind, store: Some(store) }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.store.as_ref().expect("the server is up")
    }

    /// So many turns.
    pub(crate) fn play(&mut self, turns: u64) {
        for _ in 0..turns {
            self.turn();
        }
    }

    /// All actors leave, and from now on everything works.
    pub(crate) fn close(&mut self) {
        self.nodes.close();
        self.nodes.faults.end();
        while !self.scheduler.is_empty() {
            self.step();
        }
    }

    /// An actor goes on.
    pub(crate) fn step(&mut self) {
        if !self.scheduler.step() {
            self.scheduler.wake_all();
        }
    }

    /// An actor goes on, and now and then something happens that no actor decides.
    fn turn(&mut self) {
        self.step();
        if self.rng.permille(60) {
            match self.rng.below(8) {
                0..=4 => self.nodes.advance(Span::from_millis(self.rng.below(4_000) as u32)),
                5 => self.nodes.advance(Span::from_secs(self.rng.below(120) as u32)),
                6 => self.nodes.advance(Span::from_secs(self.rng.below(100_000) as u32)),
                _ => {
                    let back = self.rng.below(20_000_000) as i64;
                    self.nodes.clock.set(Moment::from_micros(self.nodes.now().micros() - back));
                    self.nodes.count("steps back");
                }
            }
        }
        if self.rng.permille(3) {
            self.nodes.lose(self.rng.below(NODES as u64) as usize, self.store());
            self.scheduler.wake_all();
            self.nodes.count("nodes lost");
        }
        if self.rng.permille(2) {
            self.restart();
        }
    }

    /// The server dies and comes back on what its store kept.
    fn restart(&mut self) {
        self.nodes.die();
        self.store_kind.cut();
        self.scheduler.wake_all();
        while self.nodes.in_flight() > 0 {
            self.scheduler.step();
        }
        if let Some(store) = self.store.take() {
            assert_eq!(Arc::strong_count(&store), 1, "a task still holds the store of the server that died");
        }
        let store = self.store_kind.reopen();
        self.nodes.start(&store);
        self.store = Some(store);
        self.nodes.count("restarts");
    }
}

/// What a simulation found: what is wrong, and what happened how often.
pub(crate) type Found = (Vec<String>, Tally);

/// Tries seeds, or the one that `single` names in the environment. All of `always` must happen.
pub(crate) fn prove(seeds: u64, (single, filter): (&str, &str), always: &[&str], mut run: impl FnMut(u64) -> Found) {
    let asked = std::env::var(single).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let seeds = asked.map_or(0..seeds, |seed| seed..seed + 1);
    let mut tally = Tally::new();
    for seed in seeds {
        let (violations, counted) = run(seed);
        let again = format!("{single}={seed} cargo test -p redrive-engine --test simulation {filter}");
        assert!(violations.is_empty(), "seed {seed}, to be had again with {again}: {violations:#?}");
        counted.into_iter().for_each(|(what, count)| *tally.entry(what).or_default() += count);
    }
    eprintln!("{tally:#?}");
    let never: Vec<_> = always.iter().filter(|what| !tally.contains_key(**what)).collect();
    assert!(asked.is_some() || never.is_empty(), "in all simulations there were no {never:?}");
}

/// The first thing that one of so many simulations finds.
pub(crate) fn first_found(most: u64, mut run: impl FnMut(u64) -> Found) -> Option<(u64, String)> {
    (0..most).find_map(|seed| run(seed).0.into_iter().next().map(|violation| (seed, violation)))
}
