//! All jobs of a store, and what the verbs do with them. Nothing is indexed: each verb looks at every
//! job, takes those that its rule names, sorts them by its order, and applies the rule.

use crate::rules;
use crate::standstill::Grace;
use crate::{
    Claim, Decider, DuplicateId, Enqueued, Filter, Held, Job, JobId, LeaseRef, Listed, Missing, NewJob, Page, Queue,
    QueueRefusal, Redrive, Refusal, Retention, Settled, Settlement, State, Transition,
};
use redrive_policy::{Moment, Span};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The whole contents of a store.
#[derive(Debug, Default)]
pub(super) struct Contents {
    jobs: BTreeMap<JobId, Job>,
    keys: BTreeMap<Arc<str>, JobId>,
    queues: BTreeMap<Arc<str>, Standing>,
}

/// What is known of a queue beside its jobs.
#[derive(Clone, Copy, Debug)]
struct Standing {
    paused: bool,
    created: Moment,
}

impl Contents {
    pub(super) fn enqueue(&mut self, jobs: &[NewJob], now: Moment) -> Result<Vec<Enqueued>, DuplicateId> {
        let mut created: BTreeMap<JobId, Job> = BTreeMap::new();
        let mut keys: BTreeMap<Arc<str>, JobId> = BTreeMap::new();
        let mut answers = Vec::new();
        for (index, new) in jobs.iter().enumerate() {
            let key = new.idempotency_key.as_ref();
            let existing = key.and_then(|key| self.keys.get(key).or_else(|| keys.get(key)));
            if let Some(job) = existing.and_then(|id| self.jobs.get(id).or_else(|| created.get(id))) {
                answers.push(Enqueued::Existing(job.clone()));
                continue;
            }
            if self.jobs.contains_key(&new.id) || created.contains_key(&new.id) {
                return Err(DuplicateId { index, id: new.id });
            }
            let job = rules::created(new, now);
            keys.extend(key.map(|key| (Arc::clone(key), new.id)));
            answers.push(Enqueued::Created(job.clone()));
            created.insert(new.id, job);
        }
        for job in created.values() {
            self.standing(&job.spec.queue, now);
        }
        self.jobs.extend(created);
        self.keys.extend(keys);
        Ok(answers)
    }

    pub(super) fn claim(&mut self, claim: &Claim, now: Moment) -> Vec<Job> {
        let (mut claimed, mut bytes) = (Vec::new(), 0_usize);
        for queue in claim.queues.iter().filter(|queue| !claim.held.contains_queue(queue)) {
            for id in self.line(queue, now) {
                bytes = bytes.saturating_add(self.jobs.get(&id).map_or(0, Job::bytes));
                if claimed.len() >= claim.count || (bytes > claim.bytes && !claimed.is_empty()) {
                    return claimed;
                }
                claimed.extend(self.change(id, |job| rules::claim(job, claim, now)));
            }
        }
        claimed
    }

    pub(super) fn extend(&mut self, lease_ref: &LeaseRef, span: Option<Span>, now: Moment) -> Result<Job, Refusal> {
        self.change(lease_ref.id, |job| rules::extend(job, &lease_ref.token, span, now))
    }

    pub(super) fn settle(&mut self, settlement: &Settlement, now: Moment) -> Result<Settled, Refusal> {
        self.change(settlement.lease_ref.id, |job| rules::settle(job, settlement, now))
    }

    pub(super) fn reclaim(
        &mut self,
        decide: &Decider<'_>,
        limit: usize,
        grace: &Grace,
        now: Moment,
    ) -> Vec<Transition> {
        let overdue = self.in_time(|job| rules::overdue(job, grace, now).map(|(since, _)| since));
        let ended = overdue.into_iter().take(limit);
        ended.filter_map(|(_, id)| self.change(id, |job| rules::reclaim(job, decide, grace, now)).ok()).collect()
    }

    pub(super) fn promote(&mut self, held: &Held, limit: usize, now: Moment) -> Vec<Transition> {
        let mut moved = Vec::new();
        for (_, id) in self.in_time(|job| rules::expired(job, now)) {
            if moved.len() < limit {
                moved.extend(self.change(id, |job| rules::expire(job, now)));
            }
        }
        for id in self.in_turn(held, now) {
            if moved.len() < limit {
                moved.extend(self.change(id, |job| rules::fall_due(job, now)));
            }
        }
        moved
    }

    pub(super) fn cancel(&mut self, id: JobId, now: Moment) -> Result<Transition, Refusal> {
        self.change(id, |job| rules::cancel(job, now))
    }

    pub(super) fn activate(&mut self, id: JobId, now: Moment) -> Result<Transition, Refusal> {
        self.change(id, |job| rules::activate(job, now))
    }

    pub(super) fn redrive(&mut self, id: JobId, redrive: &Redrive, now: Moment) -> Result<Transition, Refusal> {
        let redriven = self.change(id, |job| rules::redrive(job, redrive, now))?;
        self.standing(&redriven.job.spec.queue, now);
        Ok(redriven)
    }

    pub(super) fn remove(&mut self, id: JobId) -> Result<Job, Refusal> {
        let job = self.jobs.get(&id).ok_or(Refusal::NotFound)?;
        if !job.state.is_terminal() {
            return Err(Refusal::WrongState(job.state));
        }
        let job = job.clone();
        self.forget(id);
        Ok(job)
    }

    pub(super) fn prune(&mut self, retention: Retention, limit: usize, now: Moment) -> usize {
        let over = |job: &Job, dead: bool, span: Span| {
            let finished = job.times.finished.filter(|_| job.state.is_terminal() && job.dead == dead)?;
            (finished.after(span) <= now).then_some(finished)
        };
        let mut ended = self.in_time(|job| over(job, false, retention.finished));
        ended.extend(self.in_time(|job| over(job, true, retention.dead)));
        ended.truncate(limit);
        for (_, id) in &ended {
            self.forget(*id);
        }
        ended.len()
    }

    pub(super) fn pause(&mut self, name: &Arc<str>, paused: bool, missing: Missing, now: Moment) -> Option<Queue> {
        if missing == Missing::Refuse && !self.queues.contains_key(name) {
            return None;
        }
        let standing = self.standing(name, now);
        standing.paused = paused;
        let standing = *standing;
        Some(self.queue(name, standing))
    }

    pub(super) fn forget_queue(&mut self, name: &Arc<str>) -> Result<Queue, QueueRefusal> {
        let standing = self.queues.get(name).ok_or(QueueRefusal::NotFound)?;
        let queue = self.queue(name, *standing);
        if queue.jobs() > 0 {
            return Err(QueueRefusal::HasJobs(queue));
        }
        self.queues.remove(name);
        Ok(queue)
    }

    pub(super) fn prune_queues(&mut self, age: Span, now: Moment) -> Vec<Arc<str>> {
        let old = |queue: &Queue| queue.jobs() == 0 && !queue.paused && queue.created.after(age) <= now;
        let names: Vec<_> = self.queues().into_iter().filter(old).map(|queue| queue.name).collect();
        self.queues.retain(|name, _| !names.contains(name));
        names
    }

    pub(super) fn get(&self, id: JobId) -> Option<Job> {
        self.jobs.get(&id).cloned()
    }

    pub(super) fn list(&self, filter: &Filter, page: Page) -> Listed {
        let mut fitting: Vec<&Job> = self.jobs.values().filter(|job| filter.fits(job)).collect();
        fitting.sort_by_key(|job| Reverse(filter.entry(job)));
        let total = filter.is_counted().then_some(fitting.len());
        let behind = |job: &&Job| page.after.is_none_or(|after| filter.entry(job) < after);
        let rest: Vec<&Job> = fitting.into_iter().filter(behind).collect();
        let offset = page.offset.min(rest.len());
        let mut bytes = 0;
        let mut jobs: Vec<Job> = Vec::new();
        for job in &rest[offset..] {
            let job = page.shown((*job).clone());
            bytes += job.bytes();
            if jobs.len() >= page.limit || (bytes > page.bytes && !jobs.is_empty()) {
                break;
            }
            jobs.push(job);
        }
        let passed = offset + jobs.len();
        let last = passed.checked_sub(1).map(|last| filter.entry(rest[last]));
        let next = Page { after: last.or(page.after), offset: page.offset - offset, ..page };
        Listed { jobs, next: (passed < rest.len()).then_some(next), total }
    }

    pub(super) fn queues(&self) -> Vec<Queue> {
        self.queues.iter().map(|(name, standing)| self.queue(name, *standing)).collect()
    }

    pub(super) fn next_wake(&self, held: &Held, grace: &Grace) -> Option<Moment> {
        self.jobs.values().filter_map(|job| rules::wake(job, held.contains(&job.spec), grace)).min()
    }

    /// Applies a rule to one job, which stays as it is where the rule refuses.
    fn change<T: AsRef<Job>>(&mut self, id: JobId, rule: impl FnOnce(Job) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let stored = self.jobs.get_mut(&id).ok_or(Refusal::NotFound)?;
        let answer = rule(stored.clone())?;
        stored.clone_from(answer.as_ref());
        Ok(answer)
    }

    /// The jobs that an open queue can hand out, the next one first.
    fn line(&self, queue: &Arc<str>, now: Moment) -> Vec<JobId> {
        let open = self.queues.get(queue).is_some_and(|standing| !standing.paused);
        let waiting = self.jobs.values().filter(|job| {
            open && job.spec.queue == *queue && job.state == State::Available && rules::expired(job, now).is_none()
        });
        let line = sorted(waiting, |job| (Reverse(job.spec.priority), job.times.available, job.id));
        line.into_iter().map(|job| job.id).collect()
    }

    /// The jobs to which `time` gives a moment, the earliest first.
    fn in_time(&self, time: impl Fn(&Job) -> Option<Moment>) -> Vec<(Moment, JobId)> {
        sorted(self.jobs.values().filter_map(|job| Some((time(job)?, job.id))), |pair| *pair)
    }

    /// The due jobs of the queues that are not held: the first of each queue, then the second of each.
    fn in_turn(&self, held: &Held, now: Moment) -> Vec<JobId> {
        let due = self.in_time(|job| rules::due(job, now).filter(|_| !held.contains(&job.spec)));
        let mut turns: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        let turn = |(at, id): (Moment, JobId)| {
            let turn = turns.entry(&self.jobs.get(&id)?.spec.queue).or_default();
            *turn += 1;
            Some((*turn, at, id))
        };
        let due = sorted(due.into_iter().filter_map(turn), |turn| *turn);
        due.into_iter().map(|(_, _, id)| id).collect()
    }

    /// A queue's standing; what is not known yet is known from now on.
    fn standing(&mut self, name: &Arc<str>, now: Moment) -> &mut Standing {
        self.queues.entry(Arc::clone(name)).or_insert(Standing { paused: false, created: now })
    }

    fn queue(&self, name: &Arc<str>, standing: Standing) -> Queue {
        let count = |state| self.jobs.values().filter(|job| job.spec.queue == *name && job.state == state).count();
        let Standing { paused, created } = standing;
        Queue { name: Arc::clone(name), paused, created, counts: State::ALL.map(count) }
    }

    fn forget(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.keys.retain(|_, kept| *kept != id);
    }
}

fn sorted<T, K: Ord>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_by_key(key);
    items
}
