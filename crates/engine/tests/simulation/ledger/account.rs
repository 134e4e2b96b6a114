//! One job in the ledger.

use super::{Reply, Seq, When};
use crate::expectation::Reported;
use crate::planned_job::PlannedJob;
use redrive_policy::Span;
use redrive_store::{Blob, Job, JobId, Transition};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Everything about one job.
#[derive(Debug)]
pub(crate) struct Account {
    /// What was ordered, and what redrives changed.
    pub(crate) planned_jobs: Vec<PlannedJob>,
    /// Whether its producer is done with it: it will not be enqueued again.
    pub(crate) resolved: bool,
    pub(crate) id: Option<JobId>,
    pub(crate) submits: Vec<Submit>,
    /// The leases that somebody got, by their number.
    pub(crate) runs: BTreeMap<u32, Run>,
    pub(crate) settles: Vec<Settle>,
    pub(crate) extends: Vec<Extend>,
    pub(crate) cancels: Vec<Call>,
    pub(crate) activations: Vec<Call>,
    pub(crate) removals: Vec<Call>,
    pub(crate) generation: Vec<Redrive>,
    pub(crate) observations: Vec<Observation>,
    /// What happened to it, as the answers to requests say.
    pub(crate) transitions: Vec<Answered>,
}

impl Account {
    pub(crate) fn new(planned: PlannedJob) -> Self {
        Self {
            planned_jobs: vec![planned],
            resolved: false,
            id: None,
            submits: Vec::new(),
            runs: BTreeMap::new(),
            settles: Vec::new(),
            extends: Vec::new(),
            cancels: Vec::new(),
            activations: Vec::new(),
            removals: Vec::new(),
            generation: Vec::new(),
            observations: Vec::new(),
            transitions: Vec::new(),
        }
    }

    /// Whether its producer was answered that it is stored.
    pub(crate) fn acknowledged(&self) -> bool {
        self.submits.iter().any(|submit| submit.outcome != Submitted::Lost)
    }

    /// The settlements that were sent with the token of a run.
    pub(crate) fn settles_of(&self, run: u32) -> impl Iterator<Item = &Settle> {
        self.settles.iter().filter(move |settle| settle.run == Some(run))
    }

    /// Everybody who saw it.
    pub(crate) fn seen(&self) -> impl Iterator<Item = (When, &Rc<Job>)> {
        self.observations.iter().filter_map(|observation| Some((observation.when, observation.job.as_ref()?)))
    }

    /// The sight that tells most about it.
    pub(crate) fn last_seen(&self) -> Option<(When, &Rc<Job>)> {
        self.last_seen_by(Seq::MAX)
    }

    /// The sight that tells most about it, of those up to a point.
    pub(crate) fn last_seen_by(&self, by: Seq) -> Option<(When, &Rc<Job>)> {
        self.seen().filter(|(when, _)| when.from < by).max_by_key(|(when, job)| {
            (job.generation, job.leases, job.history.failures(), job.state.is_terminal(), when.from)
        })
    }
}

/// A job was enqueued.
#[derive(Debug)]
pub(crate) struct Submit {
    pub(crate) when: When,
    pub(crate) outcome: Submitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submitted {
    Created,
    Existing,
    /// Its id was taken, so that it was kept before.
    Duplicate,
    Lost,
}

/// A lease that somebody got.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) when: When,
    /// The job as it was claimed.
    pub(crate) job: Rc<Job>,
    pub(crate) worker: Rc<str>,
    pub(crate) lease_asked: Option<Span>,
}

/// A run was ended.
#[derive(Debug)]
pub(crate) struct Settle {
    pub(crate) when: When,
    /// The number of the lease; absent where the token was forged.
    pub(crate) run: Option<u32>,
    pub(crate) ending: Ended,
    pub(crate) reply: Reply,
    /// Whether the answer says that this was reported before.
    pub(crate) repeated: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Ended {
    Done {
        result: Option<Blob>,
    },
    /// With the number that its error carries.
    Failed {
        number: usize,
        reported: Reported,
    },
    Released {
        delay: Span,
    },
}

/// A heartbeat.
#[derive(Debug)]
pub(crate) struct Extend {
    pub(crate) when: When,
    /// The number of the lease; absent where the token was forged.
    pub(crate) run: Option<u32>,
    pub(crate) span: Option<Span>,
    pub(crate) reply: Reply,
}

/// A request without further content.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) when: When,
    pub(crate) reply: Reply,
}

/// A job was redriven from where it ended.
#[derive(Debug)]
pub(crate) struct Redrive {
    pub(crate) when: When,
    /// The order that it brought, if any.
    pub(crate) version: Option<usize>,
    pub(crate) reply: Reply,
}

/// Somebody saw the job, or that it is not there.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) when: When,
    pub(crate) job: Option<Rc<Job>>,
}

/// A transition, as the answer to a request.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) when: When,
    /// How often the server had died before.
    pub(crate) deaths: usize,
    pub(crate) transition: Transition,
}
