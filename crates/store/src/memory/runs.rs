//! The runs of the reference model. Nothing is indexed, and nothing is shared with the durable stores.

use crate::run::{INBOX_MESSAGES, events_of};
use crate::{
    EventBody, EventKind, JobEnd, JobId, Message, MessageBody, NewRun, PendingRun, PendingRuns, Run, RunEnd, RunFilter,
    RunId, RunRefusal, RunStep, Signal, StartRefusal, Transition,
};
use redrive_policy::{Moment, Span};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All runs, and the messages of each.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: BTreeMap<RunId, Run>,
    messages: Vec<(RunId, Message)>,
    /// How many messages were ever written.
    written: u64,
}

impl Runs {
    pub(super) fn start(&mut self, new: &[NewRun], now: Moment) -> Result<Vec<Run>, StartRefusal> {
        for (index, run) in new.iter().enumerate() {
            let earlier = &new[..index];
            if self.runs.contains_key(&run.id) || earlier.iter().any(|other| other.id == run.id) {
                return Err(StartRefusal::IdTaken(index));
            }
            let stored = self.runs.values().find(|other| other.key.is_some() && other.key == run.key);
            let stored = stored.map(|other| other.id);
            let in_batch = earlier.iter().find(|other| other.key.is_some() && other.key == run.key);
            if let Some(holder) = stored.or(in_batch.map(|other| other.id)) {
                return Err(StartRefusal::KeyTaken(index, holder));
            }
        }
        let started: Vec<Run> = new.iter().map(|new| fresh(new, now)).collect();
        self.runs.extend(started.iter().map(|run| (run.id, run.clone())));
        Ok(started)
    }

    pub(super) fn pending(&self, pending: &PendingRuns, now: Moment) -> Vec<PendingRun> {
        let wanted = |run: &&Run| {
            let named = pending.only.as_ref().is_none_or(|only| only.contains(&run.id));
            named && pending.knows(&run.program, run.version)
        };
        let due = self.runs.values().filter(wanted).filter_map(|run| Some((self.since(run)?, run)));
        let has_work = |run: &Run| run.revision == 0 || self.inbox(run.id).next().is_some();
        let is_due = |since: Moment, run: &Run| since <= now || pending.only.is_some() && has_work(run);
        let mut due: Vec<(Moment, &Run)> = due.filter(|(since, run)| is_due(*since, run)).collect();
        due.sort_by_key(|(since, run)| (*since, run.id));
        let read = |(_, run): (Moment, &Run)| {
            let messages = self.inbox(run.id).take(pending.messages).cloned().collect();
            PendingRun { run: run.clone(), messages }
        };
        due.into_iter().take(pending.limit).map(read).collect()
    }

    /// Whether a step was computed from the run as it is.
    pub(super) fn check_revision(&self, step: &RunStep) -> Result<(), RunRefusal> {
        match self.runs.get(&step.id) {
            None => Err(RunRefusal::NotFound),
            Some(run) if run.revision != step.revision => Err(RunRefusal::Changed(run.revision)),
            Some(_) => Ok(()),
        }
    }

    /// Whether the runs that a step starts are new, or are there already as what they are to be.
    pub(super) fn check_ids(&self, step: &RunStep) -> Result<(), RunRefusal> {
        for (index, new) in step.runs.iter().enumerate() {
            let foreign = self.runs.get(&new.id).is_some_and(|stored| stored.parent != new.parent);
            if foreign || step.runs[..index].iter().any(|earlier| earlier.id == new.id) {
                return Err(RunRefusal::RunIdTaken(new.id));
            }
        }
        Ok(())
    }

    /// Writes a step that was checked, except for what it does to jobs. Answers the runs that got a message or
    /// were started.
    pub(super) fn write(&mut self, step: &RunStep, now: Moment) -> Vec<RunId> {
        let mut touched = vec![step.id];
        self.messages.retain(|(run, message)| *run != step.id || !step.consumed.contains(&message.number));
        let Some(run) = self.runs.get_mut(&step.id) else { return Vec::new() };
        let before = run.end.take();
        run.revision += 1;
        (run.version, run.state, run.advanced) = (step.version, Arc::clone(&step.state), now);
        run.children += (step.jobs.len() + step.runs.len()) as u64;
        run.timer = step.timer;
        run.interest.clone_from(&step.interest);
        if let Some((succeeded, result)) = &step.end {
            let same = before.as_ref().filter(|end| (end.succeeded, &end.result) == (*succeeded, result));
            let at = same.map_or(now, |end| end.at);
            run.end = Some(RunEnd { at, succeeded: *succeeded, result: Arc::clone(result) });
            (run.timer, run.key, run.interest) = (None, None, None);
        }
        let told = run.parent.zip(run.end.clone()).filter(|(_, end)| before.as_ref() != Some(end));
        if let Some((parent, RunEnd { succeeded, result, .. })) = told {
            let body = MessageBody::RunEnded { child: parent.child, id: step.id, succeeded, result };
            touched.extend(self.leave(parent.run, body, now));
        }
        for new in &step.runs {
            self.runs.entry(new.id).or_insert_with(|| Run { key: None, ..fresh(new, now) });
            touched.push(new.id);
        }
        for (to, signal) in &step.signals {
            touched.extend(self.leave(*to, MessageBody::Signal(signal.clone()), now));
        }
        touched
    }

    /// What runs learn of what happened to a job.
    pub(super) fn learn(&mut self, transition: &Transition) {
        self.learn_of_child(transition);
        events_of(transition).for_each(|event| self.tell(event, transition.at));
    }

    /// Leaves an event in the inboxes of all runs that want it.
    pub(super) fn tell(&mut self, event: EventBody, at: Moment) {
        let wanted = |run: &&Run| run.interest.as_ref().is_some_and(|interest| interest.fits(&event));
        let listeners: Vec<RunId> = self.runs.values().filter(wanted).map(|run| run.id).collect();
        for run in listeners {
            self.leave(run, MessageBody::Event { at, event: event.clone() }, at);
        }
    }

    /// What the run of a job learns of what happened to it.
    fn learn_of_child(&mut self, transition: &Transition) -> Option<RunId> {
        let parent = transition.job.parent?;
        let (child, id, generation) = (parent.child, transition.job.id, transition.job.generation);
        let body = match (transition.event, transition.end()) {
            (EventKind::Redriven, _) => MessageBody::JobRedriven { child, id, generation },
            (_, Some(end)) => ended(child, id, generation, end),
            (_, None) => return None,
        };
        self.leave(parent.run, body, transition.at)
    }

    pub(super) fn signal(&mut self, id: RunId, signal: Signal, now: Moment) -> Result<Run, RunRefusal> {
        let run = self.runs.get(&id).cloned().ok_or(RunRefusal::NotFound)?;
        if self.inbox(id).count() >= INBOX_MESSAGES {
            return Err(RunRefusal::InboxFull(INBOX_MESSAGES));
        }
        self.leave(id, MessageBody::Signal(signal), now);
        Ok(run)
    }

    pub(super) fn get(&self, id: RunId) -> Option<Run> {
        self.runs.get(&id).cloned()
    }

    pub(super) fn of_key(&self, key: &str) -> Option<Run> {
        self.runs.values().find(|run| run.key.as_deref() == Some(key)).cloned()
    }

    pub(super) fn list(&self, filter: &RunFilter, limit: usize) -> Vec<Run> {
        let mut fitting: Vec<&Run> = self.runs.values().rev().filter(|run| filter.fits(run)).collect();
        if filter.keys.is_some() {
            fitting.sort_by(|one, other| one.key.cmp(&other.key));
        }
        fitting.into_iter().take(limit).cloned().collect()
    }

    pub(super) fn next(&self, programs: Vec<(Arc<str>, u32)>) -> Option<Moment> {
        let known = PendingRuns { programs, only: None, limit: 0, messages: 0 };
        let runs = self.runs.values().filter(|run| known.knows(&run.program, run.version));
        runs.filter_map(|run| self.since(run)).min()
    }

    pub(super) fn prune(&mut self, age: Span, limit: usize, now: Moment) -> usize {
        let over = |run: &&Run| {
            let ended = run.end.as_ref().is_some_and(|end| end.at.after(age) <= now);
            ended && self.inbox(run.id).next().is_none()
        };
        let mut over: Vec<(Option<Moment>, RunId)> =
            self.runs.values().filter(over).map(|run| (run.end.as_ref().map(|end| end.at), run.id)).collect();
        over.sort_unstable();
        over.truncate(limit);
        for (_, id) in &over {
            self.runs.remove(id);
        }
        over.len()
    }

    /// Whether a run has something to do at a moment.
    pub(super) fn is_pending(&self, id: RunId, now: Moment) -> bool {
        self.runs.get(&id).and_then(|run| self.since(run)).is_some_and(|since| since <= now)
    }

    fn inbox(&self, id: RunId) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |(run, _)| *run == id).map(|(_, message)| message)
    }

    fn since(&self, run: &Run) -> Option<Moment> {
        let first = self.inbox(run.id).next().map(|message| message.at);
        let start = if run.revision == 0 { Some(run.created) } else { None };
        first.into_iter().chain(start).chain(run.timer).min()
    }

    fn leave(&mut self, to: RunId, body: MessageBody, at: Moment) -> Option<RunId> {
        self.runs.get(&to)?;
        self.written += 1;
        self.messages.push((to, Message { number: self.written, at, body }));
        Some(to)
    }
}

fn fresh(new: &NewRun, now: Moment) -> Run {
    let NewRun { id, program, version, state, key, parent, depth, seed } = new.clone();
    let (revision, timer, children, end) = (0, None, 0, None);
    let (created, advanced) = (now, now);
    let interest = None;
    Run {
        id,
        program,
        version,
        state,
        revision,
        timer,
        key,
        parent,
        depth,
        children,
        seed,
        created,
        advanced,
        end,
        interest,
    }
}

fn ended(child: u64, id: JobId, generation: u32, end: JobEnd<'_>) -> MessageBody {
    MessageBody::JobEnded { child, id, generation, end: end.into() }
}
