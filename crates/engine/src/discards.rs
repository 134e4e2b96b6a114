//! Jobs that were discarded and are no dead letters, counted for the log.

use crate::Engine;
use redrive_store::{JobEnd, Transition};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many groups are counted separately. What comes beyond them is counted together.
const GROUPS: usize = 100;

/// Jobs of one type and queue that were discarded for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Discarded {
    /// What kind of work they were; absent for the rest, beyond the groups that are counted separately.
    pub kind: Option<Arc<str>>,
    /// Their queue; absent as above.
    pub queue: Option<Arc<str>>,
    /// Why they are no dead letters.
    pub why: &'static str,
}

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Discards(Mutex<BTreeMap<Discarded, u64>>);

impl Discards {
    /// Counts the jobs that were discarded and are no dead letters.
    pub(crate) fn count<'a>(&self, transitions: impl Iterator<Item = &'a Transition>) {
        for transition in transitions {
            let last = match transition.end() {
                Some(JobEnd::Failed { failure, dead: false }) => Some(failure),
                Some(JobEnd::Expired { last_failure, dead: false }) => last_failure,
                _ => continue,
            };
            let job = &transition.job;
            let why = job.spec.policy.why_discarded(last.map(|last| &last.verdict));
            let group =
                Discarded { kind: Some(Arc::clone(&job.spec.kind)), queue: Some(Arc::clone(&job.spec.queue)), why };
            let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let known = counts.len() < GROUPS || counts.contains_key(&group);
            let group = if known { group } else { Discarded { kind: None, queue: None, why } };
            *counts.entry(group).or_default() += 1;
        }
    }
}

impl Engine {
    /// How many jobs were discarded and are no dead letters since the last call, by type, queue and reason.
    pub fn take_discarded(&self) -> Vec<(Discarded, u64)> {
        let mut counts = self.discards.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *counts).into_iter().collect()
    }
}
