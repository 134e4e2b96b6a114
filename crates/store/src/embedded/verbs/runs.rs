//! Runs: start them, advance them, leave messages in their inboxes.

use crate::embedded::record;
use crate::embedded::store_state::StoreState;
use crate::run::{INBOX_MESSAGES, events_of, rules as run_rules};
use crate::unique::{Admitted, BatchKeys};
use crate::{
    Advanced, EventBody, JobId, Message, MessageBody, NewJob, NewRun, Parent, Refusal, Run, RunId, RunRefusal, RunStep,
    Signal, StartRefusal, State, Stepped, StoreError, Transition, rules,
};
use redrive_policy::{Moment, Span};
use std::collections::HashSet;

impl StoreState {
    /// Stores new runs, all or none.
    pub(in crate::embedded) fn start_runs(&mut self, new: &[NewRun], now: Moment) -> Result<Vec<Run>, StartRefusal> {
        let (mut ids, mut keys) = (HashSet::new(), Vec::new());
        for (index, run) in new.iter().enumerate() {
            if self.runs.get(run.id).is_some() || !ids.insert(run.id) {
                return Err(StartRefusal::IdTaken(index));
            }
            let Some(key) = &run.key else { continue };
            let in_batch = || keys.iter().find(|(other, _)| *other == key).map(|(_, id)| *id);
            if let Some(holder) = self.runs.of_key(key).or_else(in_batch) {
                return Err(StartRefusal::KeyTaken(index, holder));
            }
            keys.push((key, run.id));
        }
        let started: Vec<Run> = new.iter().map(|new| run_rules::created(new, now)).collect();
        started.iter().for_each(|run| self.put_run(run.clone()));
        Ok(started)
    }

    /// Writes a step of a run: all of it, or nothing.
    pub(in crate::embedded) fn advance(&mut self, step: &RunStep, now: Moment) -> Result<Stepped, StoreError> {
        let (before, after) = match self.check_step(step, now) {
            Ok(runs) => runs,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let new: Vec<NewJob> = step.jobs.iter().map(|(child, new)| child_job(step.id, *child, new)).collect();
        let new: Vec<&NewJob> = new.iter().filter(|new| self.find(new.id).is_none()).collect();
        let admitted = match self.admit_children(&new, now) {
            Ok(admitted) => admitted,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // What can fail comes before the first change.
        let shared_specs = new.iter().map(|new| self.shared_spec(&new.spec, now)).collect::<Result<Vec<_>, _>>()?;
        for number in &step.consumed {
            self.remove_message(step.id, *number);
        }
        let mut touched = vec![step.id];
        touched.extend(run_rules::end_message(&before, &after).and_then(|(to, body)| self.leave(to, body, now)));
        self.put_run(after.clone());
        for new in &step.runs {
            if self.runs.get(new.id).is_none() {
                self.put_run(run_rules::child(new, now));
            }
            touched.push(new.id);
        }
        for (to, signal) in &step.signals {
            touched.extend(self.leave(*to, MessageBody::Signal(signal.clone()), now));
        }
        let mut transitions = Vec::with_capacity(new.len() + step.cancelled.len() + step.withdrawn.len());
        for ((new, shared_spec), admitted) in new.into_iter().zip(shared_specs).zip(admitted) {
            transitions.extend(self.insert_child(new, shared_spec, admitted, now));
        }
        touched.extend(transitions.iter().filter_map(Transition::told_run));
        let ended = step.cancelled.iter().map(|id| (*id, true)).chain(step.withdrawn.iter().map(|id| (*id, false)));
        transitions.extend(ended.filter_map(|(id, even_active)| self.cancel_child(step.id, id, even_active, now)));
        for event in &step.events {
            self.tell(EventBody::Other(event.clone()), now);
        }
        touched.retain(|id| self.runs.is_pending(*id, now));
        touched.sort_unstable();
        touched.dedup();
        Ok(Ok(Advanced { run: after, transitions, pending: touched }))
    }

    /// The run before and after a step, where the step may be written.
    fn check_step(&self, step: &RunStep, now: Moment) -> Result<(Run, Run), RunRefusal> {
        let before = self.runs.get(step.id).ok_or(RunRefusal::NotFound)?.run.clone();
        let after = run_rules::advance(&before, step, now)?;
        let mut ids = HashSet::new();
        for (child, new) in &step.jobs {
            let stored = self.find(new.id).and_then(|place| self.slots.get(place));
            let foreign = stored.is_some_and(|slot| slot.parent() != Some(Parent { run: step.id, child: *child }));
            if foreign || !ids.insert(new.id) {
                return Err(RunRefusal::JobIdTaken(new.id));
            }
        }
        let mut ids = HashSet::new();
        for new in &step.runs {
            let foreign = self.runs.get(new.id).is_some_and(|slot| slot.run.parent != new.parent);
            if foreign || !ids.insert(new.id) {
                return Err(RunRefusal::RunIdTaken(new.id));
            }
        }
        Ok((before, after))
    }

    /// What becomes of the jobs of a step. A run waits for its own jobs: it learns of a duplicate, whatever its policy.
    fn admit_children(&self, new: &[&NewJob], now: Moment) -> Result<Vec<Admitted>, RunRefusal> {
        let mut batch_keys = BatchKeys::default();
        let admit = |new: &&NewJob| {
            let child = new.parent.map_or(0, |parent| parent.child);
            let admitted = self.admit(&mut batch_keys, new, now).and_then(Admitted::of_run);
            admitted.map_err(|duplicate| RunRefusal::Duplicate(child, duplicate))
        };
        new.iter().map(admit).collect()
    }

    fn cancel_child(&mut self, run: RunId, id: JobId, even_active: bool, now: Moment) -> Option<Transition> {
        let place = self.find(id)?;
        let slot = self.slots.get(place).filter(|slot| even_active || slot.state() != State::Active)?;
        slot.parent().filter(|parent| parent.run == run)?;
        self.transit(place, |job| rules::cancel(job, now)).ok()
    }

    pub(in crate::embedded) fn signal(&mut self, id: RunId, signal: Signal, now: Moment) -> Result<Run, RunRefusal> {
        let slot = self.runs.get(id).ok_or(RunRefusal::NotFound)?;
        if slot.inbox.len() >= INBOX_MESSAGES {
            return Err(RunRefusal::InboxFull(INBOX_MESSAGES));
        }
        let run = slot.run.clone();
        self.leave(id, MessageBody::Signal(signal), now);
        Ok(run)
    }

    pub(in crate::embedded) fn prune_runs(&mut self, age: Span, limit: usize, now: Moment) -> usize {
        let over = self.runs.over(age, limit, now);
        for id in &over {
            self.remove_run(*id);
        }
        over.len()
    }

    /// Applies a rule to a job, and leaves the message in the inbox of its run that the event asks for.
    pub(in crate::embedded) fn transit(
        &mut self,
        place: u32,
        rule: impl FnOnce(crate::Job) -> Result<Transition, Refusal>,
    ) -> Result<Transition, Refusal> {
        let transition = self.change(place, rule)?;
        self.learn(&transition);
        Ok(transition)
    }

    /// Leaves the message that an event asks for.
    pub(in crate::embedded) fn learn(&mut self, transition: &Transition) {
        if let Some((run, body)) = transition.message() {
            self.leave(run, body, transition.at);
        }
        self.tell_change(transition);
    }

    /// Tells runs that listen what happened to a job.
    pub(in crate::embedded) fn tell_change(&mut self, transition: &Transition) {
        if self.runs.has_listeners() {
            events_of(transition).for_each(|event| self.tell(event, transition.at));
        }
    }

    /// Leaves an event in the inboxes of the runs that want it.
    pub(in crate::embedded) fn tell(&mut self, event: EventBody, at: Moment) {
        for run in self.runs.listeners(&event) {
            self.leave(run, MessageBody::Event { at, event: event.clone() }, at);
        }
    }

    /// Leaves a message, where the run is stored; answers the run then.
    fn leave(&mut self, to: RunId, body: MessageBody, at: Moment) -> Option<RunId> {
        self.runs.get(to)?;
        self.put_message(to, Message { number: self.runs.next_message(), at, body });
        Some(to)
    }

    /// Stores a message to a run that is stored.
    pub(in crate::embedded) fn put_message(&mut self, to: RunId, message: Message) {
        record::message(self.frame.records(), to, &message);
        let bytes = self.runs.put_message(to, message);
        self.weigh(bytes);
    }

    pub(in crate::embedded) fn put_run(&mut self, run: Run) {
        record::run(self.frame.records(), &run);
        let bytes = self.runs.put(run);
        self.weigh(bytes);
    }

    fn remove_run(&mut self, id: RunId) {
        record::run_gone(self.frame.records(), id);
        let bytes = self.runs.remove(id);
        self.weigh(bytes);
    }

    fn remove_message(&mut self, of: RunId, number: u64) {
        let known = self.runs.get(of).is_some_and(|slot| slot.inbox.contains_key(&number));
        if known {
            record::message_gone(self.frame.records(), of, number);
            let bytes = self.runs.remove_message(of, number);
            self.weigh(bytes);
        }
    }

    fn weigh(&mut self, bytes: i64) {
        self.live_bytes = self.live_bytes.saturating_add_signed(bytes);
    }
}

/// A job of a run. It has an id of its own to be known by, and no idempotency key.
fn child_job(run: RunId, child: u64, new: &NewJob) -> NewJob {
    NewJob { idempotency_key: None, parent: Some(Parent { run, child }), ..new.clone() }
}
