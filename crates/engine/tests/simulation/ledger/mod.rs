//! The ledger of a simulation: all requests and all responses, as their callers saw them. The checker uses nothing
//! else.

mod account;
mod story;

pub(crate) use account::{
    Account, Answered, Call, Ended, Extend, Observation, Redrive, Run, Settle, Submit, Submitted,
};
pub(crate) use story::short;

use super::planned_job::PlannedJob;
use redrive_engine::Event;
use redrive_policy::{Moment, Span};
use redrive_store::{Job, Refusal, Transition};
use std::rc::Rc;

/// A point in the order of events, across everybody who takes part.
pub(crate) type Seq = u64;

/// From when a request was sent until it was answered, or given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct When {
    pub(crate) from: Seq,
    pub(crate) to: Seq,
}

impl When {
    /// Whether this was over before the other one began.
    pub(crate) const fn before(self, other: Self) -> bool {
        self.to < other.from
    }

    /// Whether this may have happened before the end of the other one.
    pub(crate) const fn may_precede(self, other: Self) -> bool {
        self.from < other.to
    }
}

/// The reply to a request about one job.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// It was done, and this is the job since.
    Yes(Rc<Job>),
    /// It was refused.
    No(Refusal),
    /// Nothing: it may have been done or not.
    Lost,
}

impl Reply {
    /// Whether it may have been done.
    pub(crate) const fn maybe(&self) -> bool {
        !matches!(self, Self::No(_))
    }

    /// Whether it was done.
    pub(crate) const fn surely(&self) -> bool {
        matches!(self, Self::Yes(_))
    }
}

/// Since when a request was under way at a point: it may have read the clock then, and act on that now.
pub(crate) fn under_way(requests: impl Iterator<Item = When>, at: Seq) -> Seq {
    requests.filter(|when| when.from < at && at < when.to).map(|when| when.from).min().unwrap_or(at)
}

/// A queue that was closed or opened.
#[derive(Clone, Debug)]
pub(crate) struct Pause {
    pub(crate) queue: &'static str,
    pub(crate) paused: bool,
    pub(crate) when: When,
    pub(crate) surely: bool,
}

/// The server stood still, and its store knows that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Still {
    pub(crate) when: When,
    pub(crate) length: Span,
    /// When the server died that knew it.
    pub(crate) over: Option<Seq>,
}

/// A broken promise.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    /// Which check failed.
    pub(crate) check: &'static str,
    pub(crate) message: String,
    pub(crate) account: Option<usize>,
}

/// All that happened in a simulation.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    seq: Seq,
    /// The clock, whenever it was set.
    clock: Vec<(Seq, Moment)>,
    pub(crate) accounts: Vec<Account>,
    /// The accounts that were enqueued together.
    pub(crate) batches: Vec<Vec<usize>>,
    pub(crate) sweeps: Vec<When>,
    pub(crate) prunes: Vec<When>,
    pub(crate) pauses: Vec<Pause>,
    pub(crate) standstills: Vec<Still>,
    /// How many failures were reported; each carries its number.
    pub(crate) failures_sent: usize,
    pub(crate) violations: Vec<Violation>,
    /// The event logs of the servers that died, and in the end that of the last one.
    pub(crate) event_logs: Vec<Vec<Event>>,
    /// How many answers got lost so far, other than those to claims, which make no job available.
    pub(crate) lost: u64,
}

impl Ledger {
    /// The next point in the order of events.
    pub(crate) fn mark(&mut self) -> Seq {
        self.seq += 1;
        self.seq
    }

    /// The server died, and what it knew besides its store, which was its event log among other things.
    pub(crate) fn died(&mut self, event_log: Vec<Event>) {
        self.event_logs.push(event_log);
        let seq = self.mark();
        for still in &mut self.standstills {
            still.over.get_or_insert(seq);
        }
    }

    pub(crate) fn clock_set(&mut self, now: Moment) {
        let seq = self.mark();
        self.clock.push((seq, now));
    }

    /// What the clock showed between two points, both included.
    fn shown(&self, from: Seq, to: Seq) -> impl Iterator<Item = Moment> + '_ {
        let first = self.clock.partition_point(|(seq, _)| *seq <= from).saturating_sub(1);
        self.clock[first..].iter().take_while(move |(seq, _)| *seq <= to).map(|(_, now)| *now)
    }

    /// The latest time that the clock showed between two points.
    pub(crate) fn latest(&self, from: Seq, to: Seq) -> Moment {
        self.shown(from, to).max().unwrap_or_default()
    }

    /// The earliest time that the clock showed between two points.
    pub(crate) fn earliest(&self, from: Seq, to: Seq) -> Moment {
        self.shown(from, to).min().unwrap_or_default()
    }

    /// How often the clock stepped back.
    pub(crate) fn steps_back(&self) -> usize {
        self.clock.windows(2).filter(|pair| pair[1].1 < pair[0].1).count()
    }

    /// Whether the clock may have shown this during a request.
    pub(crate) fn showed(&self, when: When, time: Moment) -> bool {
        self.shown(when.from, when.to).any(|now| now == time)
    }

    /// The latest time that a sweep may have taken for now while it did its work between two points:
    /// it may have read the clock before the first one, if it was under way.
    pub(crate) fn latest_swept(&self, from: Seq, to: Seq) -> Moment {
        self.latest(under_way(self.sweeps.iter().copied(), from), to)
    }

    /// Whether a sweep that was under way between two points may have taken this moment, or a later one, for now.
    pub(crate) fn swept_after(&self, from: Seq, to: Seq, moment: Moment) -> bool {
        let mut sweeps = self.sweeps.iter().filter(|sweep| sweep.from < to && from < sweep.to);
        sweeps.any(|sweep| self.latest(sweep.from, sweep.to.min(to)) >= moment)
    }

    pub(crate) fn violation(&mut self, check: &'static str, account: Option<usize>, message: String) {
        self.violations.push(Violation { check, message, account });
    }

    /// Somebody saw a job.
    pub(crate) fn observed(&mut self, when: When, job: &Rc<Job>) {
        let known = PlannedJob::of(job).filter(|(account, _)| *account < self.accounts.len());
        let Some((number, version)) = known else {
            return self.violation("known", None, format!("no producer enqueued {}", short(job)));
        };
        let account = &mut self.accounts[number];
        let id = *account.id.get_or_insert(job.id);
        account.observations.push(Observation { when, job: Some(Rc::clone(job)) });
        let different = match account.planned_jobs.get(version) {
            Some(planned) => planned.difference(job),
            None => Some("version"),
        };
        if id != job.id {
            self.violation("once", Some(number), format!("one order, and two jobs: {id} and {}", job.id));
        }
        if let Some(part) = different {
            self.violation("kept", Some(number), format!("the {part} is not as it was ordered: {}", short(job)));
        }
    }

    /// The reply about one job, with the job that came with it.
    pub(crate) fn replied(&mut self, account: usize, when: When, reply: &Reply) {
        match reply {
            Reply::Yes(job) => self.observed(when, job),
            Reply::No(Refusal::NotFound) => self.accounts[account].observations.push(Observation { when, job: None }),
            Reply::No(_) | Reply::Lost => {}
        }
    }

    /// A request was answered with what it made happen.
    pub(crate) fn answered(&mut self, account: usize, when: When, transition: Transition) {
        let deaths = self.event_logs.len();
        self.accounts[account].transitions.push(Answered { when, deaths, transition });
    }

    /// A job was claimed.
    pub(crate) fn claimed(&mut self, when: When, worker: &str, lease_asked: Option<Span>, job: &Rc<Job>) {
        self.observed(when, job);
        let Some((number, _)) = PlannedJob::of(job).filter(|(account, _)| *account < self.accounts.len()) else {
            return;
        };
        let Some(lease) = &job.lease else {
            return self.violation("one lease", Some(number), format!("claimed without a lease: {}", short(job)));
        };
        let run = Run { when, job: Rc::clone(job), worker: worker.into(), lease_asked };
        let twice = self.accounts[number].runs.insert(lease.token.number, run).is_some();
        if twice {
            let message = format!("lease {} was claimed twice", lease.token.number);
            self.violation("one lease", Some(number), message);
        }
    }
}
