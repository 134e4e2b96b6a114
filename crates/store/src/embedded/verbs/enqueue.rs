//! New jobs.

use crate::depth::Depths;
use crate::embedded::store_state::StoreState;
use crate::unique::{Admitted, BatchKeys, rescheduled};
use crate::{EnqueueRefusal, Enqueued, EventKind, Job, JobId, NewJob, States, StoreError, Transition, rules};
use redrive_policy::Moment;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What is done with one job of a batch.
enum Plan {
    /// It is stored, or what is unique about it says otherwise.
    New(Admitted),
    /// The key is that of a stored job, in this slot.
    Kept(u32),
    /// The key is that of an earlier job of the batch, at this position.
    Earlier(usize),
}

impl StoreState {
    /// Stores new jobs, all or none.
    pub(in crate::embedded) fn enqueue(
        &mut self,
        jobs: &[NewJob],
        now: Moment,
    ) -> Result<Result<Vec<Enqueued>, EnqueueRefusal>, StoreError> {
        let plans = match self.plan(jobs, now) {
            Ok(plans) => plans,
            Err(refusal) => return Ok(Err(refusal)),
        };
        // What can fail comes before the first job is stored.
        let created = jobs.iter().zip(&plans).filter(|(_, plan)| plan.creates());
        let shared_spec: Result<Vec<_>, _> = created.map(|(new, _)| self.shared_spec(&new.spec, now)).collect();
        let mut shared_spec = shared_spec?.into_iter();
        let mut answers: Vec<Enqueued> = Vec::with_capacity(jobs.len());
        for (new, plan) in jobs.iter().zip(plans) {
            let answer = match plan {
                Plan::New(Admitted::Kept(duplicate)) => Enqueued::Ignored(self.kept(self.find(duplicate.id))?),
                Plan::New(admitted) => {
                    let Some(shared_spec) = shared_spec.next() else { break };
                    let (replaced, new) = self.make_room(new, admitted, now);
                    let job = rules::created(&new, now);
                    self.insert(&job, shared_spec, new.idempotency_key.clone());
                    if self.runs.has_listeners() {
                        self.tell_change(&Transition::new(job.clone(), EventKind::Enqueued, None, now));
                    }
                    if replaced.is_empty() { Enqueued::Created(job) } else { Enqueued::Replaced { job, replaced } }
                }
                Plan::Kept(place) => Enqueued::Existing(self.kept(Some(place))?),
                Plan::Earlier(index) => Enqueued::Existing(answers[index].job().clone()),
            };
            answers.push(answer);
        }
        Ok(Ok(answers))
    }

    /// A job that was there before.
    fn kept(&self, place: Option<u32>) -> Result<Job, StoreError> {
        let job = place.and_then(|place| self.job(place));
        job.ok_or_else(|| StoreError::Broken("a key leads to no job".to_owned()))
    }

    fn plan(&self, jobs: &[NewJob], now: Moment) -> Result<Vec<Plan>, EnqueueRefusal> {
        let mut ids = HashSet::new();
        let mut keys: HashMap<&Arc<str>, usize> = HashMap::new();
        let mut batch_keys = BatchKeys::default();
        let mut plans = Vec::with_capacity(jobs.len());
        for (index, new) in jobs.iter().enumerate() {
            let key = new.idempotency_key.as_ref();
            if let Some(place) = key.and_then(|key| self.find_key(key)) {
                plans.push(Plan::Kept(place));
                continue;
            }
            if let Some(earlier) = key.and_then(|key| keys.get(key)) {
                plans.push(Plan::Earlier(*earlier));
                continue;
            }
            if self.find(new.id).is_some() || (jobs.len() > 1 && !ids.insert(new.id)) {
                return Err(EnqueueRefusal::IdTaken { index, id: new.id });
            }
            let admitted = self.admit(&mut batch_keys, new, now);
            let admitted = admitted.map_err(|duplicate| EnqueueRefusal::Duplicate { index, duplicate })?;
            if !matches!(admitted, Admitted::Kept(_)) {
                keys.extend(key.map(|key| (key, index)));
            }
            plans.push(Plan::New(admitted));
        }
        if Depths::matter(jobs) {
            self.check_depths(jobs, &plans)?;
        }
        Ok(plans)
    }

    /// Whether queues are deep enough for what is planned.
    fn check_depths(&self, jobs: &[NewJob], plans: &[Plan]) -> Result<(), EnqueueRefusal> {
        let mut depths = Depths::default();
        for (index, (new, plan)) in jobs.iter().zip(plans).enumerate() {
            if let Plan::New(Admitted::Replacing(ids, _)) = plan {
                ids.iter().for_each(|id| depths.leave(*id, self.waits_in(*id)));
            }
            if plan.creates() {
                depths.enter(index, new);
            }
        }
        depths.check(|queue| self.indexes.queue_index(queue).map_or(0, |queue_index| self.depth(queue_index)))
    }

    /// How many jobs wait in a queue.
    fn depth(&self, queue_index: u32) -> u64 {
        let queue_index = &self.indexes.queue_indexes[queue_index as usize];
        States::WAITING.iter().map(|state| queue_index.count(state) as u64).sum()
    }

    /// The queue in which a stored job waits.
    fn waits_in(&self, id: JobId) -> Option<&Arc<str>> {
        let slot = self.find(id).and_then(|place| self.slots.get(place))?;
        let queue_index = &self.indexes.queue_indexes[slot.shared_spec.queue_index as usize];
        States::WAITING.contains(slot.state()).then_some(&queue_index.name)
    }

    /// Decides about a job whose id is not taken.
    pub(in crate::embedded) fn admit(
        &self,
        batch_keys: &mut BatchKeys,
        new: &NewJob,
        now: Moment,
    ) -> Result<Admitted, crate::Duplicate> {
        match &new.unique {
            Some(unique) => batch_keys.admit(unique, &rules::created(new, now), self.holders(unique, now), now),
            None => Ok(Admitted::Stored),
        }
    }

    /// Cancels the jobs that a new one replaces. Answers what happened to them, and the job as it is to be stored.
    pub(in crate::embedded) fn make_room<'n>(
        &mut self,
        new: &'n NewJob,
        admitted: Admitted,
        now: Moment,
    ) -> (Vec<Transition>, Cow<'n, NewJob>) {
        let Admitted::Replacing(ids, due) = admitted else { return (Vec::new(), Cow::Borrowed(new)) };
        let cancel = |id: JobId| {
            let place = self.find(id)?;
            self.transit(place, |job| rules::cancel(job, now)).ok()
        };
        let replaced = ids.into_iter().filter_map(cancel).collect();
        (replaced, due.map_or(Cow::Borrowed(new), |due| Cow::Owned(rescheduled(new, due))))
    }

    /// Stores a job of a run, which may replace others. Answers what happened to jobs, in this order.
    pub(in crate::embedded) fn insert_child(
        &mut self,
        new: &NewJob,
        shared_spec: Arc<crate::embedded::shared_spec::SharedSpec>,
        admitted: Admitted,
        now: Moment,
    ) -> Vec<Transition> {
        let (mut transitions, new) = self.make_room(new, admitted, now);
        let job = rules::created(&new, now);
        self.insert(&job, shared_spec, None);
        let enqueued = Transition::new(job, EventKind::Enqueued, None, now);
        self.tell_change(&enqueued);
        transitions.push(enqueued);
        transitions
    }
}

impl Plan {
    const fn creates(&self) -> bool {
        matches!(self, Self::New(Admitted::Stored | Admitted::Replacing(..)))
    }
}
