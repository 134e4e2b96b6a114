//! Jobs that leave their timing to the worker (TaskHarbor: "A per-job limit" and "A worker retry
//! policy").

use crate::{AttemptLimit, Parts, Policy};
use serde::{Deserialize, Serialize};

/// A job brings its limit and leaves the rest to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delegation {
    /// The job's own limit on runs; absent, it sets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_limit: Option<u32>,
    /// What operators allow at most, whatever job and worker agree on.
    #[serde(default = "uncapped", skip_serializing_if = "is_uncapped")]
    pub cap: AttemptLimit,
}

const fn uncapped() -> AttemptLimit {
    AttemptLimit::Unlimited
}

fn is_uncapped(cap: &AttemptLimit) -> bool {
    *cap == AttemptLimit::Unlimited
}

impl Delegation {
    /// A job with this limit, or with none, and no operator's cap on it.
    #[must_use]
    pub const fn new(job_limit: Option<u32>) -> Self {
        Self { job_limit, cap: AttemptLimit::Unlimited }
    }

    /// What the job may do at most, its limit and the cap taken together, where anything limits it.
    #[must_use]
    pub fn limit(self) -> Option<u32> {
        self.job_limit.map_or(AttemptLimit::Unlimited, AttemptLimit::AtMost).tightened(self.cap).max_runs()
    }

    /// The effective limit beside a policy's own ("How the effective max attempts is chosen"): the
    /// smaller where both set one, else the one that does, else retries are off. A policy that switches
    /// retries off does so whatever the job says (`WithRetryPolicy(nil)`).
    fn met(self, policy: AttemptLimit) -> AttemptLimit {
        let met = match (self.job_limit, policy) {
            (None, limit) => limit,
            (Some(limit), AttemptLimit::Unset) => AttemptLimit::AtMost(limit),
            (Some(limit), other) => AttemptLimit::AtMost(limit).tightened(other),
        };
        met.tightened(self.cap)
    }
}

impl Policy {
    /// What applies to a job of this policy on a worker that brings its own.
    ///
    /// A job that leaves its timing to the worker takes the worker's rules, and the limit that the two
    /// agree on; where it goes when it stops stays the job's. For every other job the worker can only
    /// tighten the limits: its rules are not used, and a limit that it does not set changes nothing.
    #[must_use]
    pub fn on_worker(&self, worker: &Self) -> Self {
        match self.delegated {
            Some(_) => self.answered_by(worker, self.on_stop),
            None => self.clone().tightened(total_limit(worker), worker.max_elapsed),
        }
    }

    /// The policy of an operator, for a job that leaves its timing to others: with the job's limit. The
    /// operator's policy says everything else, and nothing is left to a worker any more.
    #[must_use]
    pub fn with_limit_of(&self, job: &Self) -> Self {
        job.answered_by(self, self.on_stop)
    }

    /// This job's limit with another policy's rules.
    fn answered_by(&self, other: &Self, on_stop: crate::Disposition) -> Self {
        let attempts = self.delegated.map_or(other.attempts, |delegated| delegated.met(other.attempts));
        let parts = Parts { attempts, on_stop, delegated: None, ..Parts::clone(other) };
        Self::valid(parts).tightened(AttemptLimit::Unlimited, self.max_elapsed)
    }
}

/// The limit on all runs that a policy sets, where it sets one: with a single rule, the rule's budget too.
fn total_limit(policy: &Policy) -> AttemptLimit {
    let limit = match policy.attempts {
        AttemptLimit::Unset => AttemptLimit::Unlimited,
        limit => limit,
    };
    match policy.rules[..] {
        [ref only] => limit.tightened(only.budget.map_or(AttemptLimit::Unlimited, AttemptLimit::AtMost)),
        _ => limit,
    }
}
