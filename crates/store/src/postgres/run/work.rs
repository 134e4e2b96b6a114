//! What steps of runs make of what is stored: worked out in memory, so that a step that is refused leaves nothing.

use super::messages::Messages;
use crate::postgres::listeners::Listening;
use crate::postgres::stored_row::StoredRow;
use crate::postgres::unique::Holders;
use crate::run::{events_of, rules as run_rules};
use crate::unique::{Admitted, BatchKeys, Holder, rescheduled};
use crate::{
    Advanced, EventBody, EventKind, Interest, Job, JobId, MessageBody, NewJob, NewRun, Parent, Run, RunId, RunRefusal,
    RunStep, State, Stepped, Transition, Unique, rules,
};
use redrive_policy::Moment;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The runs and jobs that a batch of steps is about.
pub(super) struct Work {
    pub(super) now: Moment,
    pub(super) runs: HashMap<RunId, Entry>,
    /// Runs that the steps name and that cannot be read. They get their messages all the same.
    pub(super) unread: HashSet<RunId>,
    /// Jobs that are stored, and locked where they have not ended.
    pub(super) jobs: HashMap<JobId, StoredRow>,
    /// Ids of jobs that are stored.
    pub(super) taken: HashSet<JobId>,
    /// Jobs that the steps enqueue, each with what it is made of.
    pub(super) created: Vec<(NewJob, Job)>,
    /// Those of them that later steps have cancelled.
    pub(super) cancelled: Vec<JobId>,
    pub(super) messages: Messages,
    /// The runs that listen, before the steps.
    pub(super) listening: Listening,
    pub(super) consumed: Vec<(RunId, u64)>,
    /// The jobs that have the keys of new ones, as they were before the steps.
    pub(super) holders: Holders,
}

/// A run, and what is known of its inbox.
pub(super) struct Entry {
    pub(super) run: Run,
    pub(super) inbox: Inbox,
    pub(super) state: EntryState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    Stored,
    Changed,
    New,
}

/// When messages were written: the first ones, up to one that the steps do not read.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) stored: BTreeMap<u64, Moment>,
    /// The first that this batch writes. Its number is higher.
    added: Option<Moment>,
}

impl Entry {
    pub(super) const fn stored(run: Run) -> Self {
        Self { run, inbox: Inbox { stored: BTreeMap::new(), added: None }, state: EntryState::Stored }
    }

    fn new(run: Run) -> Self {
        Self { state: EntryState::New, ..Self::stored(run) }
    }

    fn set(&mut self, run: Run) {
        self.run = run;
        if self.state == EntryState::Stored {
            self.state = EntryState::Changed;
        }
    }

    /// Whether it was left with a timer, or with its first step to take.
    pub(super) fn has_more_to_do(&self) -> bool {
        self.state == EntryState::New || self.state == EntryState::Changed && self.run.timer.is_some()
    }

    fn is_pending(&self, now: Moment) -> bool {
        let first = self.inbox.stored.values().next().copied().or(self.inbox.added);
        run_rules::pending_since(&self.run, first).is_some_and(|since| since <= now)
    }
}

impl Work {
    /// Does one step: all of it, or nothing.
    pub(super) fn step(&mut self, step: &RunStep) -> Stepped {
        let before = self.runs.get(&step.id).ok_or(RunRefusal::NotFound)?.run.clone();
        let after = run_rules::advance(&before, step, self.now)?;
        self.check_jobs(step)?;
        self.check_runs(step)?;
        let admitted = self.admit(step)?;
        let mut touched = vec![step.id];
        touched.extend(run_rules::end_message(&before, &after).and_then(|(to, body)| self.leave(to, body)));
        if let Some(entry) = self.runs.get_mut(&step.id) {
            for number in &step.consumed {
                entry.inbox.stored.remove(number);
                self.consumed.push((step.id, *number));
            }
            entry.set(after.clone());
        }
        for new in step.runs.iter().filter(|new| !self.unread.contains(&new.id)) {
            self.runs.entry(new.id).or_insert_with(|| Entry::new(run_rules::child(new, self.now)));
            touched.push(new.id);
        }
        for (to, signal) in &step.signals {
            touched.extend(self.leave(*to, MessageBody::Signal(signal.clone())));
        }
        let mut transitions = self.enqueue(step, admitted);
        touched.extend(transitions.iter().filter_map(Transition::told_run));
        let ended = step.cancelled.iter().map(|id| (*id, true)).chain(step.withdrawn.iter().map(|id| (*id, false)));
        transitions.extend(ended.filter_map(|(id, active)| self.cancel(step.id, id, active)));
        for event in &step.events {
            self.tell(None, &EventBody::Other(event.clone()));
        }
        touched.retain(|id| self.runs.get(id).is_some_and(|entry| entry.is_pending(self.now)));
        touched.sort_unstable();
        touched.dedup();
        Ok(Advanced { run: after, transitions, pending: touched })
    }

    fn check_jobs(&self, step: &RunStep) -> Result<(), RunRefusal> {
        let mut ids = HashSet::new();
        for (child, new) in &step.jobs {
            let here = self.job(new.id).map(|job| job.parent);
            let foreign = match here {
                Some(parent) => parent != Some(Parent { run: step.id, child: *child }),
                // Its id is known, and it is not: it was set aside because it cannot be read.
                None => self.taken.contains(&new.id),
            };
            if foreign || !ids.insert(new.id) {
                return Err(RunRefusal::JobIdTaken(new.id));
            }
        }
        Ok(())
    }

    fn check_runs(&self, step: &RunStep) -> Result<(), RunRefusal> {
        let mut ids = HashSet::new();
        let taken = |new: &&NewRun| {
            let foreign = self.runs.get(&new.id).is_some_and(|entry| entry.run.parent != new.parent);
            foreign || !ids.insert(new.id)
        };
        match step.runs.iter().find(taken) {
            Some(new) => Err(RunRefusal::RunIdTaken(new.id)),
            None => Ok(()),
        }
    }

    /// A job that is stored, or is by the steps so far.
    fn job(&self, id: JobId) -> Option<&Job> {
        let stored = self.jobs.get(&id).map(|stored| &*stored.job);
        stored.or_else(|| self.created.iter().find(|(_, job)| job.id == id).map(|(_, job)| job))
    }

    /// What becomes of the new jobs of a step. A run waits for its own jobs, and learns of every duplicate.
    fn admit(&self, step: &RunStep) -> Result<Vec<Admitted>, RunRefusal> {
        let mut batch_keys = BatchKeys::default();
        let new = step.jobs.iter().filter(|(_, new)| self.job(new.id).is_none());
        let admit = |(child, new): &(u64, NewJob)| {
            let Some(unique) = &new.unique else { return Ok(Admitted::Stored) };
            let job = rules::created(new, self.now);
            let admitted = batch_keys.admit(unique, &job, self.duplicates(unique), self.now);
            admitted.and_then(Admitted::of_run).map_err(|duplicate| RunRefusal::Duplicate(*child, duplicate))
        };
        new.map(admit).collect()
    }

    /// The jobs that make a new one a duplicate, by the steps so far, in the order of their creation, then by id.
    fn duplicates(&self, unique: &Unique) -> Vec<Holder> {
        let now = |holder: Holder| self.jobs.get(&holder.id).map_or(holder, |stored| Holder::of(&stored.job));
        let stored = self.holders.of(unique, self.now).into_iter().map(now);
        let same = |job: &&Job| job.unique.as_ref().is_some_and(|other| other.key == unique.key);
        let created = self.created.iter().map(|(_, job)| job).filter(same).map(Holder::of);
        let mut all: Vec<Holder> = stored.chain(created).collect();
        all.retain(|holder| unique.counts(holder.state, holder.created, self.now));
        all.sort_by_key(|holder| (holder.created, holder.id));
        all
    }

    fn enqueue(&mut self, step: &RunStep, admitted: Vec<Admitted>) -> Vec<Transition> {
        let mut transitions = Vec::new();
        let mut admitted = admitted.into_iter();
        for (child, new) in &step.jobs {
            if self.job(new.id).is_some() {
                continue;
            }
            let mut new = Cow::Borrowed(new);
            if let Some(Admitted::Replacing(ids, due)) = admitted.next() {
                transitions.extend(ids.into_iter().filter_map(|id| self.end(id)));
                new = due.map_or(new.clone(), |due| Cow::Owned(rescheduled(&new, due)));
            }
            let parent = Some(Parent { run: step.id, child: *child });
            let new = NewJob { idempotency_key: None, parent, ..new.into_owned() };
            let job = rules::created(&new, self.now);
            let enqueued = Transition::new(job.clone(), EventKind::Enqueued, None, self.now);
            self.tell_change(&enqueued);
            transitions.push(enqueued);
            self.created.push((new, job));
        }
        transitions
    }

    /// Cancels a job of the run, also one that a worker has where `active` says so.
    fn cancel(&mut self, run: RunId, id: JobId, active: bool) -> Option<Transition> {
        let own = |job: &&Job| job.parent.is_some_and(|parent| parent.run == run);
        self.job(id).filter(own).filter(|job| active || job.state != State::Active)?;
        self.end(id)
    }

    /// Cancels a job.
    fn end(&mut self, id: JobId) -> Option<Transition> {
        let now = self.now;
        let transition = match self.jobs.get_mut(&id) {
            Some(stored) => stored.change(|job| rules::cancel(job, now)).ok()?,
            None => {
                let (_, job) = self.created.iter_mut().find(|(_, job)| job.id == id)?;
                let transition = rules::cancel(job.clone(), now).ok()?;
                job.clone_from(&transition.job);
                self.cancelled.push(id);
                transition
            }
        };
        if let Some((to, body)) = transition.message() {
            self.leave(to, body);
        }
        self.tell_change(&transition);
        Some(transition)
    }

    /// Tells runs that listen what happened to a job.
    fn tell_change(&mut self, transition: &Transition) {
        for event in events_of(transition) {
            self.tell(Some(transition.job.id), &event);
        }
    }

    /// Leaves an event in the inboxes of the runs that want it, by the steps so far.
    fn tell(&mut self, job: Option<JobId>, event: &EventBody) {
        let now = self.now;
        let mut listening: BTreeMap<RunId, Arc<Interest>> = BTreeMap::clone(&self.listening);
        for (id, entry) in &self.runs {
            match &entry.run.interest {
                Some(interest) => listening.insert(*id, Arc::clone(interest)),
                None => listening.remove(id),
            };
        }
        listening.retain(|_, interest| interest.fits(event));
        for id in listening.keys() {
            if let Some(entry) = self.runs.get_mut(id) {
                entry.inbox.added.get_or_insert(now);
            }
        }
        self.messages.tell(job, event, now, &Arc::new(listening));
    }

    /// Leaves a message, where the run is stored; answers the run then. Another node may read it that can.
    fn leave(&mut self, to: RunId, body: MessageBody) -> Option<RunId> {
        if let Some(entry) = self.runs.get_mut(&to) {
            entry.inbox.added.get_or_insert(self.now);
        } else if !self.unread.contains(&to) {
            return None;
        }
        self.messages.push(to, self.now, body);
        Some(to)
    }
}
