//! What a store may contain after a crash: the state after some number of operations, none of them half done.

use crate::sim::SimDisk;
use crate::workload::{Op, Workload, everything};
use redrive_store::embedded::{Embedded, Opened, Options};
use redrive_store::{Memory, Store, StoreError};
use std::sync::Arc;

/// Operations, and everything that the reference model contains after each of them.
pub(crate) struct History {
    pub(crate) ops: Vec<Op>,
    states: Vec<String>,
    workload_after: Vec<Op>,
}

/// How far a store came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// How many operations were acknowledged.
    pub(crate) acknowledged: usize,
    /// How many were called.
    pub(crate) called: usize,
}

impl History {
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let mut workload = Workload::new(seed);
        let ops = workload.ops(count);
        let model = Memory::new();
        let mut states = vec![everything(&model).unwrap()];
        for op in &ops {
            op.play(&model).unwrap();
            states.push(everything(&model).unwrap());
        }
        Self { ops, states, workload_after: workload.ops(20) }
    }

    /// Calls the operations on a store until it stops answering: several at a time, without waiting in between.
    pub(crate) fn play(&self, store: &dyn Store, random: &mut fastrand::Rng) -> Reached {
        let mut reached = Reached { acknowledged: 0, called: 0 };
        while reached.called < self.ops.len() {
            let some = &self.ops[reached.called..self.ops.len().min(reached.called + random.usize(1..5))];
            let answers: Vec<_> = some.iter().map(|op| op.call(store)).collect();
            reached.called += some.len();
            let mut stopped = false;
            for answer in answers {
                match redrive_store::conformance::block_on(answer) {
                    Ok(_) => {
                        assert!(!stopped, "a later verb was acknowledged and an earlier one was not");
                        reached.acknowledged += 1;
                    }
                    Err(StoreError::Unavailable(_)) => stopped = true,
                    Err(error) => panic!("{error}"),
                }
            }
            if stopped {
                break;
            }
        }
        reached
    }

    /// How many operations the store contains: all that were acknowledged, and none of the others half done.
    pub(crate) fn place_of(&self, store: &dyn Store, reached: Reached) -> Result<usize, String> {
        let shown = everything(store).map_err(|error| error.to_string())?;
        let possible = reached.acknowledged..=reached.called;
        let place = possible.clone().find(|place| self.states[*place] == shown);
        place.ok_or_else(|| {
            let elsewhere = self.states.iter().position(|state| *state == shown);
            format!("the state after {elsewhere:?} verbs, possible are {possible:?}; {shown}")
        })
    }

    /// Opens a copy that was taken after so many operations: it needs no repair, shows them all, and goes on.
    pub(crate) fn check_copy(&self, disk: &SimDisk, dir: &str, options: Options, verbs: usize) -> Opened {
        let (copy, opened) = Embedded::open_on(Arc::new(disk.clone()), dir, options).unwrap();
        assert!(opened.repairs.is_empty(), "{opened:?}");
        assert_eq!(self.place_of(&copy, Reached { acknowledged: verbs, called: verbs }), Ok(verbs));
        self.go_on(&copy, verbs);
        opened
    }

    /// Continues with other operations on the store and on the reference model after the first `place`.
    pub(crate) fn go_on(&self, store: &dyn Store, place: usize) {
        let model = Memory::new();
        for op in &self.ops[..place] {
            op.play(&model).unwrap();
        }
        for op in &self.workload_after {
            assert_eq!(op.play(store), op.play(&model), "{op:?}");
        }
        assert_eq!(everything(store), everything(&model));
    }
}
