//! The step of a run, with what it does to jobs.

use super::contents::Contents;
use super::enqueue::Changed;
use super::event::Event;
use super::recorded::Recorded;
use crate::{Advanced, EventBody, EventKind, NewJob, Parent, RunRefusal, RunStep, State, Stepped, Transition};
use redrive_policy::Moment;

impl Contents {
    /// Writes a step of a run: all of it, or nothing.
    pub(super) fn advance(&mut self, step: &RunStep, now: Moment) -> Stepped {
        self.runs.check_revision(step)?;
        let child_of = |child: u64| Some(Parent { run: step.id, child });
        for (index, (child, new)) in step.jobs.iter().enumerate() {
            let foreign = self.jobs.get(&new.id).is_some_and(|stored| stored.job().parent != child_of(*child));
            if foreign || step.jobs[..index].iter().any(|(_, earlier)| earlier.id == new.id) {
                return Err(RunRefusal::JobIdTaken(new.id));
            }
        }
        self.runs.check_ids(step)?;
        let mut changed = Changed::default();
        let mut transitions = Vec::new();
        for (child, new) in &step.jobs {
            let new = NewJob { parent: child_of(*child), idempotency_key: None, ..new.clone() };
            if self.jobs.contains_key(&new.id) {
                continue;
            }
            match self.decide_child(&new, now) {
                Ok((new, cancelled)) => {
                    let (job, replaced) = self.put(&new, cancelled, &mut changed, now);
                    transitions.extend(replaced);
                    transitions.push(Transition::new(job, EventKind::Enqueued, None, now));
                }
                Err(duplicate) => {
                    self.take_back(changed);
                    return Err(RunRefusal::Duplicate(*child, duplicate));
                }
            }
        }
        let mut pending = self.runs.write(step, now);
        for transition in &transitions {
            if transition.event == EventKind::Enqueued {
                self.named(&transition.job.spec.queue, now);
            }
            self.runs.learn(transition);
            pending.extend(transition.told_run());
        }
        let ended = step.cancelled.iter().map(|id| (id, true)).chain(step.withdrawn.iter().map(|id| (id, false)));
        for (id, even_active) in ended {
            let Some(job) = self.jobs.get(id).map(Recorded::job) else { continue };
            let own = job.parent.is_some_and(|parent| parent.run == step.id);
            if own && (even_active || job.state != State::Active) {
                transitions.extend(self.happen(*id, Event::Cancelled, now));
            }
        }
        for event in &step.events {
            self.runs.tell(EventBody::Other(event.clone()), now);
        }
        pending.retain(|id| self.runs.is_pending(*id, now));
        pending.sort_unstable();
        pending.dedup();
        let run = self.runs.get(step.id).ok_or(RunRefusal::NotFound)?;
        Ok(Advanced { run, transitions, pending })
    }
}
