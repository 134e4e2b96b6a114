//! New jobs.

use crate::embedded::store_state::StoreState;
use crate::rules;
use crate::{DuplicateId, Enqueued, EventKind, NewJob, StoreError, Transition};
use redrive_policy::Moment;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What is done with one job of a batch.
enum Plan {
    Create,
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
    ) -> Result<Result<Vec<Enqueued>, DuplicateId>, StoreError> {
        let plans = match self.plan(jobs) {
            Ok(plans) => plans,
            Err(duplicate) => return Ok(Err(duplicate)),
        };
        // What can fail comes before the first job is stored.
        let created = jobs.iter().zip(&plans).filter(|(_, plan)| matches!(plan, Plan::Create));
        let shared_spec: Result<Vec<_>, _> = created.map(|(new, _)| self.shared_spec(&new.spec, now)).collect();
        let mut shared_spec = shared_spec?.into_iter();
        let mut answers: Vec<Enqueued> = Vec::with_capacity(jobs.len());
        for (new, plan) in jobs.iter().zip(plans) {
            let answer = match plan {
                Plan::Create => {
                    let Some(shared_spec) = shared_spec.next() else { break };
                    let job = rules::created(new, now);
                    self.insert(&job, shared_spec, new.idempotency_key.clone());
                    if self.runs.has_listeners() {
                        self.tell_change(&Transition::new(job.clone(), EventKind::Enqueued, None, now));
                    }
                    Enqueued::Created(job)
                }
                Plan::Kept(place) => match self.job(place) {
                    Some(job) => Enqueued::Existing(job),
                    None => return Err(StoreError::Broken("an idempotency key leads to no job".to_owned())),
                },
                Plan::Earlier(index) => match &answers[index] {
                    Enqueued::Created(job) | Enqueued::Existing(job) => Enqueued::Existing(job.clone()),
                },
            };
            answers.push(answer);
        }
        Ok(Ok(answers))
    }

    fn plan(&self, jobs: &[NewJob]) -> Result<Vec<Plan>, DuplicateId> {
        let mut ids = HashSet::new();
        let mut keys: HashMap<&Arc<str>, usize> = HashMap::new();
        let mut plans = Vec::with_capacity(jobs.len());
        for (index, new) in jobs.iter().enumerate() {
            let key = new.idempotency_key.as_ref();
            let plan = match key.and_then(|key| self.find_key(key)) {
                Some(place) => Plan::Kept(place),
                None => match key.and_then(|key| keys.get(key)) {
                    Some(earlier) => Plan::Earlier(*earlier),
                    None => Plan::Create,
                },
            };
            if let Plan::Create = plan {
                if self.find(new.id).is_some() || (jobs.len() > 1 && !ids.insert(new.id)) {
                    return Err(DuplicateId { index, id: new.id });
                }
                keys.extend(key.map(|key| (key, index)));
            }
            plans.push(plan);
        }
        Ok(plans)
    }
}
