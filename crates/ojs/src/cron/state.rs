//! What a schedule remembers: the state of its run.

use super::{Definition, Slots};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// The state of a run of [`super::Cron`]. Times are microseconds since 1970, by the wall clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) definition: Definition,
    #[serde(flatten)]
    pub(super) slots: Slots,
    /// When a job was last enqueued, and how many were.
    pub(super) last_run: Option<i64>,
    pub(super) runs: u64,
    /// The last slot that was skipped because a job had not ended, and how many were.
    pub(super) last_skipped: Option<i64>,
    pub(super) skipped: u64,
    /// Slots whose jobs have not ended, the latest of them.
    pub(super) alive: BTreeSet<i64>,
    /// Slots whose jobs are enqueued when the one before has ended.
    pub(super) waiting: VecDeque<i64>,
    /// Why a job was last refused.
    pub(super) last_error: Option<Refused>,
}

/// A slot whose job could not be enqueued.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Refused {
    pub(super) slot: i64,
    pub(super) why: String,
}

impl State {
    pub(super) fn new(definition: Definition) -> Self {
        Self {
            definition,
            slots: Slots::default(),
            last_run: None,
            runs: 0,
            last_skipped: None,
            skipped: 0,
            alive: BTreeSet::new(),
            waiting: VecDeque::new(),
            last_error: None,
        }
    }

    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("the state of the schedule cannot be read: {error}"))
    }

    pub(super) fn written(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(self).map_err(|error| format!("the state of the schedule cannot be written: {error}"))
    }
}
