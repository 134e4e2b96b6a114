//! New jobs.

use crate::embedded::store_state::StoreState;
use crate::unique::{Admission, Admitted, rescheduled};
use crate::{EnqueueRefusal, Enqueued, EventKind, Job, JobId, NewJob, StoreError, Transition, rules};
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
        let mut admission = Admission::default();
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
            let admitted = self.admit(&mut admission, new, now);
            let admitted = admitted.map_err(|duplicate| EnqueueRefusal::Duplicate { index, duplicate })?;
            if !matches!(admitted, Admitted::Kept(_)) {
                keys.extend(key.map(|key| (key, index)));
            }
            plans.push(Plan::New(admitted));
        }
        Ok(plans)
    }

    /// Decides about a job whose id is not taken.
    pub(in crate::embedded) fn admit(
        &self,
        admission: &mut Admission,
        new: &NewJob,
        now: Moment,
    ) -> Result<Admitted, crate::Duplicate> {
        match &new.unique {
            Some(unique) => admission.admit(unique, &rules::created(new, now), self.holders(unique, now), now),
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
