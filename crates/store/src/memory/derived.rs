//! The job that follows from what happened to it.
//!
//! Nothing is updated here: each member of a job is a question to the list of events, answered as the documentation
//! of [`Job`] and [`crate::Store`] words it. The durable stores change jobs step by step, by `rules.rs` and the table
//! in `lifecycle.rs`. The model shares neither, so that a wrong rule on one side is a disagreement.

use super::event::{Entry, Event};
use crate::{
    FailedAttempt, Job, KEPT_FAILURES, KEPT_REVISIONS, Lease, LeaseToken, NewJob, Revision, Spec, Start, State, Times,
    Unique,
};
use redrive_policy::{Disposition, History, Moment, Outcome, Span};
use std::sync::Arc;

/// What happened to a job up to some point.
#[derive(Clone, Copy)]
pub(super) struct Events<'a> {
    pub(super) new: &'a NewJob,
    pub(super) created: Moment,
    pub(super) entries: &'a [Entry],
}

impl<'a> Events<'a> {
    pub(super) fn job(self) -> Job {
        let (state, completed) = (self.state(), self.completed());
        Job {
            id: self.new.id,
            spec: self.spec(),
            state,
            attempt: self.attempt(),
            history: self.history(),
            due: self.due(),
            lease: self.lease(),
            leases: count(self.entries, Entry::is_claim),
            generation: self.generation(),
            releases: self.releases(),
            dead: self.dead(),
            times: Times {
                created: self.created,
                available: self.available(),
                started: self.started(),
                finished: self.last().filter(|_| ended(state)).map(|entry| entry.at),
            },
            last_delay: self.last_delay(),
            failures: self.failures(),
            revisions: self.revisions(),
            result: self.last().and_then(|entry| match &entry.event {
                Event::Completed(result) => result.clone(),
                _ => None,
            }),
            settled: completed.as_ref().map(|lease| lease.token),
            completed_by: completed.map(|lease| lease.worker),
            parent: self.new.parent,
            unique: self.unique(),
        }
    }

    fn last(self) -> Option<&'a Entry> {
        self.entries.last()
    }

    /// Everything before an entry.
    fn before(self, index: usize) -> Self {
        Self { entries: &self.entries[..index], ..self }
    }

    /// The last redrive and what came after it; everything, where there was none.
    fn of_this_generation(self) -> &'a [Entry] {
        let begin = self.entries.iter().rposition(Entry::is_redrive);
        &self.entries[begin.unwrap_or(0)..]
    }

    fn generation(self) -> u32 {
        count(self.entries, Entry::is_redrive)
    }

    fn state(self) -> State {
        match (self.last(), self.new.start) {
            (Some(entry), _) => entry.leads_to(),
            (None, Start::Scheduled(due)) if due > self.created => State::Scheduled,
            (None, Start::Pending) => State::Pending,
            (None, Start::Scheduled(_) | Start::Available) => State::Available,
        }
    }

    /// What was said last about the job. A redrive that says nothing clears when it expires.
    fn spec(self) -> Arc<Spec> {
        let redriven = self.entries.iter().enumerate().rev().find_map(|(index, entry)| match &entry.event {
            Event::Redriven(redrive) => Some((index, redrive.spec.clone())),
            _ => None,
        });
        match redriven {
            None => Arc::clone(&self.new.spec),
            Some((_, Some(spec))) => spec,
            Some((index, None)) => Arc::new(Spec { expires: None, ..Spec::clone(&self.before(index).spec()) }),
        }
    }

    /// What was said last about its uniqueness: by the last redrive that said anything about the job.
    fn unique(self) -> Option<Arc<Unique>> {
        let said = self.entries.iter().rev().find_map(|entry| match &entry.event {
            Event::Redriven(redrive) if redrive.spec.is_some() => Some(&redrive.unique),
            _ => None,
        });
        said.unwrap_or(&self.new.unique).clone()
    }

    /// How many runs of this generation were started and not released.
    fn attempt(self) -> u32 {
        let entries = self.of_this_generation();
        count(entries, Entry::is_claim) - count(entries, Entry::gives_back_the_attempt)
    }

    fn history(self) -> History {
        let entries = self.of_this_generation();
        let begin = entries.first().filter(|entry| entry.is_redrive()).map_or(self.created, |redrive| redrive.at);
        let mut history = History::new(begin);
        entries.iter().filter_map(Entry::failure).for_each(|decision| history.record(&decision.verdict));
        history
    }

    fn due(self) -> Option<Moment> {
        match (self.last(), self.new.start) {
            (None, Start::Scheduled(due)) => Some(due),
            (Some(Entry { at, event: Event::Released(delay) }), _) => Some(at.after(*delay)),
            (Some(Entry { event: Event::Failed(decision, _), .. }), _) => Some(decision.due),
            _ => None,
        }
        .filter(|_| matches!(self.state(), State::Scheduled | State::Retryable))
    }

    fn lease(self) -> Option<Lease> {
        let Some(Entry { at, event: Event::Claimed(run) }) = self.last() else { return None };
        let spec = self.spec();
        let span = spec.lease.unwrap_or(run.lease);
        // What a heartbeat asks for lasts once, and is never less than what the job asks for.
        let asked = run.heartbeat.and_then(|(_, asked)| asked).unwrap_or(span);
        let lasts = spec.lease.filter(|own| asked < *own).unwrap_or(asked);
        let alive = run.heartbeat.map_or(*at, |(heard, _)| heard);
        Some(Lease {
            token: LeaseToken::derive(run.seed, self.new.id, count(self.entries, Entry::is_claim)),
            worker: Arc::clone(&run.worker),
            alive,
            until: alive.after(lasts),
            span,
            deadline: spec.timeout.or(run.timeout).map(|timeout| at.after(timeout)),
        })
    }

    /// How often it was released since its last failure, or since it was redriven.
    fn releases(self) -> u32 {
        let since = self.entries.iter().rposition(|entry| entry.failure().is_some() || entry.is_redrive());
        count(&self.entries[since.unwrap_or(0)..], |entry| matches!(entry.event, Event::Released(_)))
    }

    /// Whether it is a dead letter: the policy stopped it and says so, or it expired after a failure and its policy
    /// stores dead letters.
    fn dead(self) -> bool {
        match self.last().map(|entry| &entry.event) {
            Some(Event::Failed(decision, _)) => {
                matches!(decision.verdict.outcome, Outcome::Stop { disposition: Disposition::DeadLetter, .. })
            }
            Some(Event::Expired) => {
                let failed = self.of_this_generation().iter().any(|entry| entry.failure().is_some());
                failed && self.spec().policy.on_stop == Disposition::DeadLetter
            }
            _ => false,
        }
    }

    /// When it last became available.
    fn available(self) -> Option<Moment> {
        let last = self.entries.iter().rev().find(|entry| entry.leads_to() == State::Available);
        let at_once = self.before(0).state() == State::Available;
        last.map(|entry| entry.at).or(at_once.then_some(self.created))
    }

    /// When it last started.
    fn started(self) -> Option<Moment> {
        self.entries.iter().rev().find(|entry| entry.is_claim()).map(|entry| entry.at)
    }

    fn last_delay(self) -> Option<Span> {
        let failures = self.of_this_generation().iter().rev().filter_map(Entry::failure);
        failures.into_iter().find_map(|decision| match decision.verdict.outcome {
            Outcome::Retry { delay, .. } => Some(delay),
            Outcome::Stop { .. } => None,
        })
    }

    fn failures(self) -> Vec<FailedAttempt> {
        let failed = (0..self.entries.len()).rev().filter_map(|index| {
            let (entry, run) = (&self.entries[index], self.before(index));
            let decision = entry.failure()?;
            let Event::Claimed(claimed) = &run.last()?.event else { return None };
            Some(FailedAttempt {
                generation: run.generation(),
                attempt: run.attempt(),
                available: run.available()?,
                started: run.started()?,
                at: entry.at,
                worker: Arc::clone(&claimed.worker),
                error: Arc::clone(&decision.error),
                verdict: decision.verdict,
            })
        });
        latest(failed, KEPT_FAILURES)
    }

    /// The bodies that redrives replaced.
    fn revisions(self) -> Vec<Revision> {
        let replaced = (0..self.entries.len()).rev().filter_map(|index| {
            let Entry { at, event: Event::Redriven(redrive) } = &self.entries[index] else { return None };
            let (old, new) = (self.before(index), self.before(index + 1));
            let body = Arc::clone(&old.spec().body);
            let revision = Revision { generation: old.generation(), at: *at, by: Arc::clone(&redrive.by), body };
            (revision.body != new.spec().body).then_some(revision)
        });
        latest(replaced, KEPT_REVISIONS)
    }

    /// The lease under which it was completed.
    fn completed(self) -> Option<Lease> {
        let last = self.entries.len().checked_sub(1)?;
        let completed = matches!(self.entries[last].event, Event::Completed(_));
        self.before(last).lease().filter(|_| completed)
    }
}

/// The first of these, which come newest first, the oldest first.
fn latest<T>(items: impl Iterator<Item = T>, most: usize) -> Vec<T> {
    let mut items: Vec<T> = items.take(most).collect();
    items.reverse();
    items
}

fn count(entries: &[Entry], fits: impl Fn(&Entry) -> bool) -> u32 {
    u32::try_from(entries.iter().filter(|entry| fits(entry)).count()).unwrap_or(u32::MAX)
}

const fn ended(state: State) -> bool {
    matches!(state, State::Completed | State::Cancelled | State::Discarded)
}
