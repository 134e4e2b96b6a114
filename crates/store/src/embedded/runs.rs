//! The runs in memory, and their indexes.

use super::record;
use crate::run::rules;
use crate::{
    ChildEnd, EventBody, FailedAttempt, Interest, Message, MessageBody, PendingRun, PendingRuns, Run, RunFilter, RunId,
    RunKeys,
};
use redrive_policy::{Moment, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Runs {
    slots: BTreeMap<RunId, RunSlot>,
    keys: BTreeMap<Arc<str>, RunId>,
    /// The runs of each program: those that go on, and those that have ended.
    of_programs: BTreeMap<Arc<str>, [BTreeSet<RunId>; 2]>,
    /// Since when runs are pending, or from when on.
    pending: BTreeSet<(Moment, RunId)>,
    /// When runs ended.
    ended: BTreeSet<(Moment, RunId)>,
    /// The runs that listen, and which events they want.
    listeners: BTreeMap<RunId, Arc<Interest>>,
    /// The number of the last message.
    last_message: u64,
}

/// A run, and its inbox.
#[derive(Debug)]
pub(super) struct RunSlot {
    pub(super) run: Run,
    pub(super) inbox: BTreeMap<u64, Message>,
}

/// What a run's records take beside its texts, roughly.
const RECORD_BYTES: usize = 96;

impl RunSlot {
    fn pending_since(&self) -> Option<Moment> {
        // That with the lowest number, which is also that of the earliest time, unless the clock was set back.
        rules::pending_since(&self.run, self.inbox.values().next().map(|message| message.at))
    }

    /// Whether it is pending whatever time it is.
    fn has_work(&self) -> bool {
        self.run.revision == 0 || !self.inbox.is_empty()
    }

    /// About how many bytes its records take.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.weight()).unwrap_or(usize::MAX)
    }

    fn weight(&self) -> i64 {
        run_weight(&self.run) + self.inbox.values().map(message_weight).sum::<i64>()
    }
}

fn run_weight(run: &Run) -> i64 {
    let result = run.end.as_ref().map_or(0, |end| end.result.len());
    (run.state.len() + result + RECORD_BYTES) as i64
}

fn message_weight(message: &Message) -> i64 {
    let error = |failure: &Option<FailedAttempt>| failure.as_ref().map_or(0, |failure| failure.error.len());
    let body = match &message.body {
        MessageBody::JobEnded { end, .. } => match end {
            ChildEnd::Completed { result } => result.as_ref().map_or(0, |result| result.len()),
            ChildEnd::Failed { failure, .. } => failure.error.len(),
            ChildEnd::Expired { last_failure, .. } | ChildEnd::Cancelled { last_failure } => error(last_failure),
        },
        MessageBody::RunEnded { result, .. } => result.len(),
        MessageBody::Signal(signal) => signal.body.len(),
        MessageBody::JobRedriven { .. } => 0,
        MessageBody::Event { event: EventBody::Other(event), .. } => event.data.len(),
        MessageBody::Event { event: EventBody::Job(event), .. } => {
            [&event.error, &event.result].into_iter().flatten().map(|part| part.len()).sum()
        }
    };
    (body + RECORD_BYTES) as i64
}

impl Runs {
    pub(super) fn get(&self, id: RunId) -> Option<&RunSlot> {
        self.slots.get(&id)
    }

    pub(super) fn of_key(&self, key: &str) -> Option<RunId> {
        self.keys.get(key).copied()
    }

    /// About how many bytes the records of all runs take.
    pub(super) fn bytes(&self) -> u64 {
        self.slots.values().map(RunSlot::weight).sum::<i64>().unsigned_abs()
    }

    /// The runs behind an id.
    pub(super) fn behind(&self, id: Option<RunId>) -> impl Iterator<Item = &RunSlot> {
        let begin = id.map_or(Unbounded, Excluded);
        self.slots.range((begin, Unbounded)).map(|(_, slot)| slot)
    }

    /// Stores a run as it is now, with its inbox as it was. Answers by how much the bytes of all runs have changed.
    pub(super) fn put(&mut self, run: Run) -> i64 {
        let (id, bytes) = (run.id, run_weight(&run));
        let before = self.slots.remove(&id);
        if let Some(before) = &before {
            self.unindex(before);
        }
        let replaced = before.as_ref().map_or(0, |slot| run_weight(&slot.run));
        let slot = RunSlot { run, inbox: before.map(|slot| slot.inbox).unwrap_or_default() };
        self.index(&slot);
        self.slots.insert(id, slot);
        bytes - replaced
    }

    /// Whether any run listens.
    pub(super) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The runs that want an event, by id.
    pub(super) fn listeners(&self, event: &EventBody) -> Vec<RunId> {
        self.listeners.iter().filter(|(_, interest)| interest.fits(event)).map(|(id, _)| *id).collect()
    }

    /// Removes a run and its messages.
    pub(super) fn remove(&mut self, id: RunId) -> i64 {
        let Some(slot) = self.slots.remove(&id) else { return 0 };
        self.unindex(&slot);
        -slot.weight()
    }

    /// Stores a message to a run that is known.
    pub(super) fn put_message(&mut self, to: RunId, message: Message) -> i64 {
        self.set_last_message(message.number);
        self.change_inbox(to, |inbox| {
            let bytes = message_weight(&message);
            inbox.insert(message.number, message).map_or(bytes, |before| bytes - message_weight(&before))
        })
    }

    /// Removes a message.
    pub(super) fn remove_message(&mut self, of: RunId, number: u64) -> i64 {
        self.change_inbox(of, |inbox| -inbox.remove(&number).map_or(0, |message| message_weight(&message)))
    }

    pub(super) const fn last_message(&self) -> u64 {
        self.last_message
    }

    pub(super) fn next_message(&self) -> u64 {
        self.last_message + 1
    }

    /// Numbers up to this one have been used.
    pub(super) fn set_last_message(&mut self, number: u64) {
        self.last_message = self.last_message.max(number);
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &RunSlot> {
        self.slots.values()
    }

    /// Whether no two runs have one key.
    pub(super) fn keys_are_unique(&self) -> bool {
        self.slots.values().filter(|slot| slot.run.key.is_some()).count() == self.keys.len()
    }

    /// The runs that are pending, in the order of time.
    pub(super) fn pending(&self, pending: &PendingRuns, now: Moment) -> Vec<PendingRun> {
        let known = |slot: &&RunSlot| pending.knows(&slot.run.program, slot.run.version);
        let read = |slot: &RunSlot| PendingRun {
            run: slot.run.clone(),
            messages: slot.inbox.values().take(pending.messages).cloned().collect(),
        };
        match &pending.only {
            None => {
                let due = self.pending.iter().take_while(|(since, _)| *since <= now);
                let slots = due.filter_map(|(_, id)| self.slots.get(id)).filter(known);
                slots.take(pending.limit).map(read).collect()
            }
            Some(only) => {
                let slots = only.iter().filter_map(|id| self.slots.get(id)).filter(known);
                let due = slots.filter_map(|slot| Some((slot.pending_since()?, slot)));
                let is_due = |since: Moment, slot: &RunSlot| since <= now || slot.has_work();
                let mut due: Vec<(Moment, &RunSlot)> = due.filter(|(since, slot)| is_due(*since, slot)).collect();
                due.sort_by_key(|(since, slot)| (*since, slot.run.id));
                due.dedup_by_key(|(_, slot)| slot.run.id);
                due.into_iter().take(pending.limit).map(|(_, slot)| read(slot)).collect()
            }
        }
    }

    pub(super) fn is_pending(&self, id: RunId, now: Moment) -> bool {
        self.slots.get(&id).and_then(RunSlot::pending_since).is_some_and(|since| since <= now)
    }

    /// When the next run that the caller knows is pending.
    pub(super) fn next(&self, programs: Vec<(Arc<str>, u32)>) -> Option<Moment> {
        let known = PendingRuns { programs, only: None, limit: 0, messages: 0 };
        let knows =
            |id: &RunId| self.slots.get(id).is_some_and(|slot| known.knows(&slot.run.program, slot.run.version));
        self.pending.iter().find(|(_, id)| knows(id)).map(|(since, _)| *since)
    }

    pub(super) fn list(&self, filter: &RunFilter, limit: usize) -> Vec<Run> {
        match (&filter.keys, &filter.program) {
            (Some(keys), _) => self.list_keys(keys, filter, limit),
            (None, Some(program)) => self.list_program(program, filter, limit),
            (None, None) => {
                let end = filter.after.map_or(Unbounded, Excluded);
                let slots = self.slots.range((Unbounded, end)).rev().map(|(_, slot)| &slot.run);
                slots.filter(|run| filter.fits(run)).take(limit).cloned().collect()
            }
        }
    }

    fn list_keys(&self, keys: &RunKeys, filter: &RunFilter, limit: usize) -> Vec<Run> {
        let begin = match &keys.after {
            Some(after) if **after >= *keys.prefix => Excluded(&**after),
            _ => Included(&*keys.prefix),
        };
        let keyed = self.keys.range::<str, _>((begin, Unbounded));
        let keyed = keyed.take_while(|(key, _)| key.starts_with(&*keys.prefix));
        let runs = keyed.filter_map(|(_, id)| self.slots.get(id)).map(|slot| &slot.run);
        runs.filter(|run| filter.fits(run)).take(limit).cloned().collect()
    }

    fn list_program(&self, program: &str, filter: &RunFilter, limit: usize) -> Vec<Run> {
        let Some([going, ended]) = self.of_programs.get(program) else { return Vec::new() };
        let end = filter.after.map_or(Unbounded, Excluded);
        let wanted = |ids: &BTreeSet<RunId>, ended| -> Vec<RunId> {
            let some = if filter.ended.is_none_or(|wanted| wanted == ended) { limit } else { 0 };
            ids.range((Unbounded, end)).rev().take(some).copied().collect()
        };
        let mut ids = [wanted(going, false), wanted(ended, true)].concat();
        ids.sort_unstable_by(|one, other| other.cmp(one));
        ids.into_iter().take(limit).filter_map(|id| self.slots.get(&id)).map(|slot| slot.run.clone()).collect()
    }

    /// Those that ended long enough ago, and have no messages.
    pub(super) fn over(&self, age: Span, limit: usize, now: Moment) -> Vec<RunId> {
        let over = self.ended.iter().take_while(|(ended, _)| ended.after(age) <= now).map(|(_, id)| *id);
        over.filter(|id| self.slots.get(id).is_some_and(|slot| slot.inbox.is_empty())).take(limit).collect()
    }

    /// Changes an inbox, which may make its run pending, or end that. The change answers by how much the bytes of the
    /// inbox have changed.
    fn change_inbox(&mut self, id: RunId, change: impl FnOnce(&mut BTreeMap<u64, Message>) -> i64) -> i64 {
        let Some(slot) = self.slots.get_mut(&id) else { return 0 };
        let before = slot.pending_since();
        let bytes = change(&mut slot.inbox);
        let after = slot.pending_since();
        if before != after {
            before.map(|since| self.pending.remove(&(since, id)));
            self.pending.extend(after.map(|since| (since, id)));
        }
        bytes
    }

    fn index(&mut self, slot: &RunSlot) {
        let run = &slot.run;
        self.pending.extend(slot.pending_since().map(|since| (since, run.id)));
        self.ended.extend(run.end.as_ref().map(|end| (end.at, run.id)));
        self.listeners.extend(run.interest.as_ref().map(|interest| (run.id, Arc::clone(interest))));
        self.keys.extend(run.key.as_ref().map(|key| (Arc::clone(key), run.id)));
        if !self.of_programs.contains_key(&run.program) {
            self.of_programs.insert(Arc::clone(&run.program), Default::default());
        }
        if let Some(of_program) = self.of_programs.get_mut(&run.program) {
            of_program[usize::from(run.end.is_some())].insert(run.id);
        }
    }

    fn unindex(&mut self, slot: &RunSlot) {
        let run = &slot.run;
        if let Some(since) = slot.pending_since() {
            self.pending.remove(&(since, run.id));
        }
        if let Some(end) = &run.end {
            self.ended.remove(&(end.at, run.id));
        }
        self.listeners.remove(&run.id);
        if let Some(of_program) = self.of_programs.get_mut(&run.program) {
            of_program[usize::from(run.end.is_some())].remove(&run.id);
        }
        // A record that is read again may be of the time when another run had the key.
        if let Some(key) = run.key.as_ref().filter(|key| self.keys.get(*key) == Some(&run.id)) {
            self.keys.remove(key);
        }
    }
}

impl RunSlot {
    /// Its records.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        record::run(out, &self.run);
        for message in self.inbox.values() {
            record::message(out, self.run.id, message);
        }
    }
}
