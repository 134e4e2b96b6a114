//! What happened in simulations, counted: a simulation in which something never happens proves
//! nothing about it.

use super::ledger::{Account, Call, Ended, Ledger, Reply, Submitted};
use redrive_policy::Outcome;
use redrive_store::{Refusal, State};
use std::collections::BTreeMap;

/// How often each thing happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(pub(crate) BTreeMap<&'static str, u64>);

impl Tally {
    pub(crate) fn of(ledger: &Ledger) -> Self {
        let mut tally = Self::default();
        for account in &ledger.accounts {
            tally.submissions(account);
            tally.runs(account);
            tally.settlements(account);
            tally.operations(account);
            tally.failures(account);
        }
        tally.add("prunings", ledger.prunes.len());
        tally.add("pauses", ledger.pauses.len());
        tally.add("standstills", ledger.standstills.len());
        tally.add("clock steps back", ledger.steps_back());
        tally
    }

    pub(crate) fn add(&mut self, what: &'static str, count: usize) {
        *self.0.entry(what).or_default() += count as u64;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (what, count) in &other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    fn submissions(&mut self, account: &Account) {
        for submit in &account.submits {
            let what = match submit.outcome {
                Submitted::Created => "jobs created",
                Submitted::Existing => "jobs known by their key",
                Submitted::Duplicate => "jobs known by their id",
                Submitted::Lost => "submissions without an answer",
            };
            self.add(what, 1);
        }
    }

    fn runs(&mut self, account: &Account) {
        self.add("runs", account.runs.len());
        let leases = account.last_seen().map_or(0, |(_, job)| job.leases as usize);
        self.add("claims without an answer", leases.saturating_sub(account.runs.len()));
        for extend in &account.extends {
            let what = match extend.reply {
                Reply::Yes(_) => "extensions",
                Reply::No(_) => "extensions refused",
                Reply::Lost => "extensions without an answer",
            };
            self.add(what, 1);
        }
    }

    fn settlements(&mut self, account: &Account) {
        for settle in &account.settles {
            let what = match (&settle.reply, &settle.ending) {
                (Reply::Lost, _) => "settlements without an answer",
                (Reply::Yes(_), Ended::Done { .. }) => "successes",
                (Reply::Yes(_), Ended::Failed { .. }) => "failures",
                (Reply::Yes(_), Ended::Released { .. }) => "releases",
                (Reply::No(Refusal::StaleLease), _) if settle.run.is_some() => "stale leases",
                (Reply::No(Refusal::StaleLease), _) => "forged leases that pass for old ones",
                (Reply::No(Refusal::WrongLease), _) => "forged leases",
                (Reply::No(Refusal::OtherWorker), _) => "forged workers",
                (Reply::No(Refusal::TooManyReleases(_)), _) => "releases too many",
                (Reply::No(Refusal::WrongState(_) | Refusal::NotFound), _) => "settlements of ended jobs",
                (Reply::No(Refusal::Duplicate(_)), _) => "settlements that are duplicates",
            };
            self.add(what, 1);
        }
    }

    fn operations(&mut self, account: &Account) {
        let done = |calls: &[Call]| calls.iter().filter(|call| call.reply.surely()).count();
        self.add("cancellations", done(&account.cancels));
        self.add("activations", done(&account.activations));
        self.add("removals", done(&account.removals));
        let redriven: Vec<_> = account.generation.iter().filter(|redrive| redrive.reply.surely()).collect();
        self.add("redrives", redriven.len());
        self.add("redrives with another policy", redriven.iter().filter(|redrive| redrive.version.is_some()).count());
    }

    fn failures(&mut self, account: &Account) {
        let Some((_, job)) = account.last_seen() else { return };
        let stopped = job.failures.last().is_some_and(|entry| entry.verdict.delay().is_none());
        self.add("expired jobs", usize::from(job.state == State::Discarded && !stopped));
        self.add("dead letters", usize::from(job.dead));
        for entry in &job.failures {
            let error = String::from_utf8_lossy(&entry.error);
            self.add("silent runs", usize::from(error.contains("visibility_timeout")));
            self.add("runs that took too long", usize::from(error.contains("\"type\":\"timeout\"")));
            if let Outcome::Stop { reason, .. } = entry.verdict.outcome {
                self.add(reason.name(), 1);
            }
        }
    }
}
