//! What operators do: cancel, activate, redrive and remove jobs; pause and remove queues.

use crate::embedded::queue_index::QueueIndex;
use crate::embedded::store_state::StoreState;
use crate::rules;
use crate::run::queue_paused;
use crate::{
    EventBody, EventKind, Group, Job, JobId, Missing, Queue, QueueLoad, QueueRefusal, Redrive, Refusal, StoreError,
    Transition,
};
use redrive_policy::{Moment, Span};
use std::sync::Arc;

impl StoreState {
    pub(in crate::embedded) fn cancel(&mut self, id: JobId, now: Moment) -> Result<Transition, Refusal> {
        let place = self.find(id).ok_or(Refusal::NotFound)?;
        self.transit(place, |job| rules::cancel(job, now))
    }

    pub(in crate::embedded) fn activate(&mut self, id: JobId, now: Moment) -> Result<Transition, Refusal> {
        let place = self.find(id).ok_or(Refusal::NotFound)?;
        self.transit(place, |job| rules::activate(job, now))
    }

    pub(in crate::embedded) fn redrive(
        &mut self,
        id: JobId,
        redrive: &Redrive,
        now: Moment,
    ) -> Result<Result<Transition, Refusal>, StoreError> {
        let Some(place) = self.find(id) else { return Ok(Err(Refusal::NotFound)) };
        // Only what will be used may enter the catalogue: nothing would ever release it.
        let redriven = self.slots.get(place).filter(|slot| slot.state().after(EventKind::Redriven).is_some());
        let duplicate = redriven.and_then(|_| self.redriven_duplicate(place, redrive, now));
        if let Some(duplicate) = duplicate {
            return Ok(Err(Refusal::Duplicate(duplicate)));
        }
        let shared_spec = match redriven.and_then(|slot| rules::redriven_spec(&slot.spec(), redrive)) {
            Some(spec) => Some(self.shared_spec(&spec, now)?),
            None => None,
        };
        let redriven = self.change_with(place, shared_spec, |job| rules::redrive(job, redrive, now));
        redriven.iter().for_each(|transition| self.learn(transition));
        Ok(redriven)
    }

    pub(in crate::embedded) fn forget(&mut self, id: JobId) -> Result<Job, Refusal> {
        let place = self.find(id).ok_or(Refusal::NotFound)?;
        let state = self.slots.get(place).ok_or(Refusal::NotFound)?.state();
        if !state.is_terminal() {
            return Err(Refusal::WrongState(state));
        }
        self.remove(place).ok_or(Refusal::NotFound)
    }

    pub(in crate::embedded) fn pause_queue(
        &mut self,
        name: &Arc<str>,
        paused: bool,
        missing: Missing,
        now: Moment,
    ) -> Option<Queue> {
        if missing == Missing::Refuse && self.indexes.queue_index(name).is_none() {
            return None;
        }
        let queue_index = self.queue_index(name, now);
        if self.pause(queue_index, paused) {
            self.tell(EventBody::Other(queue_paused(name, paused)), now);
        }
        Some(self.indexes.queue_indexes[queue_index as usize].queue())
    }

    pub(in crate::embedded) fn forget_queue(&mut self, name: &str) -> Result<Queue, QueueRefusal> {
        let queue_index = self.indexes.queue_index(name).ok_or(QueueRefusal::NotFound)?;
        let queue = self.indexes.queue_indexes[queue_index as usize].queue();
        if queue.jobs() > 0 {
            return Err(QueueRefusal::HasJobs(queue));
        }
        self.remove_queue_index(queue_index);
        let group = Group::Queue(Arc::clone(&queue.name));
        if self.groups.get(&group).is_some() {
            self.set_limit(&group, None, queue.created);
        }
        Ok(queue)
    }

    pub(in crate::embedded) fn prune_queues(&mut self, age: Span, now: Moment) -> Vec<Arc<str>> {
        let old = |queue_index: &&QueueIndex| {
            let set = self.groups.limits_queue(&queue_index.name);
            queue_index.is_empty() && !queue_index.paused && !set && queue_index.created.after(age) <= now
        };
        let names: Vec<_> =
            self.indexes.sorted_queue_indexes().filter(old).map(|queue_index| Arc::clone(&queue_index.name)).collect();
        for queue_index in names.iter().filter_map(|name| self.indexes.queue_index(name)).collect::<Vec<_>>() {
            self.remove_queue_index(queue_index);
        }
        names
    }

    pub(in crate::embedded) fn paused_queues(&self) -> Vec<Arc<str>> {
        let paused = self.indexes.sorted_queue_indexes().filter(|queue_index| queue_index.paused);
        paused.map(|queue_index| Arc::clone(&queue_index.name)).collect()
    }

    pub(in crate::embedded) fn loads(&self, now: Moment) -> Vec<QueueLoad> {
        let load = |queue_index: &QueueIndex| {
            let (first_due, due) = match self.indexes.queue_index(&queue_index.name) {
                Some(number) => self.indexes.due.of(number, now, QueueLoad::MOST_DUE),
                None => (None, 0),
            };
            let next = queue_index.line().next().and_then(|place| self.slots.get(place));
            QueueLoad {
                queue: queue_index.queue(),
                dead: queue_index.dead().len(),
                due,
                first_due,
                next_available: next.and_then(|slot| slot.places(&self.grace).ready),
            }
        };
        self.indexes.sorted_queue_indexes().map(load).collect()
    }

    pub(in crate::embedded) fn queues(&self) -> Vec<Queue> {
        self.indexes.sorted_queue_indexes().map(|queue_index| queue_index.queue()).collect()
    }
}
