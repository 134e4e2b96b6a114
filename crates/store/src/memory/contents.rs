//! All jobs of a store, and what the verbs do with them. Nothing is indexed: each verb looks at every
//! job, takes those that it is about, sorts them by its order, and lets happen to them what it is for.

use super::event::{Event, Run};
use super::limits::{self, Ledger};
use super::recorded::Recorded;
use super::runs::Runs;
use crate::run::queue_paused;
use crate::{
    AttemptOutcome, Claim, Claimed, Decider, Duplicate, EventBody, Filter, Group, Held, Job, JobId, Lease, LeaseRef,
    Listed, Missing, Overdue, Page, Queue, QueueLoad, QueueRefusal, Redrive, Refusal, Retention, Setting, Settled,
    Settlement, Spec, Standing, Standstill, State, Token, Transition,
};
use redrive_policy::{Moment, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The whole contents of a store.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) jobs: BTreeMap<JobId, Recorded>,
    pub(super) keys: BTreeMap<Arc<str>, JobId>,
    queues: BTreeMap<Arc<str>, QueueMark>,
    pub(super) runs: Runs,
    pub(super) limits: Ledger,
}

/// What is known of a queue beside its jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueMark {
    paused: bool,
    created: Moment,
}

impl Contents {
    pub(super) fn claim(&mut self, claim: &Claim, now: Moment) -> Claimed {
        let (mut claimed, mut bytes) = (Claimed::default(), 0_usize);
        for queue in claim.queues.iter().filter(|queue| !claim.held.contains_queue(queue)) {
            let mut passed: Vec<Arc<Spec>> = Vec::new();
            for id in self.line(queue, now) {
                let Some(job) = self.jobs.get(&id).map(Recorded::job) else { continue };
                if claimed.jobs.len() >= claim.count {
                    return claimed;
                }
                if passed.iter().any(|spec| limited_alike(spec, &job.spec)) {
                    continue;
                }
                if let Some((group, room)) = self.limits.holds(&job.spec, self.all(), now) {
                    let whole_queue = matches!(group, Group::Queue(_));
                    let until = self.limits.until(&group, now);
                    claimed.pass(group, room, until);
                    if whole_queue {
                        break;
                    }
                    passed.push(Arc::clone(&job.spec));
                    continue;
                }
                bytes = bytes.saturating_add(job.bytes());
                if bytes > claim.bytes && !claimed.jobs.is_empty() {
                    return claimed;
                }
                self.limits.started(&Arc::clone(&job.spec), now);
                let claimed_job = self.happen(id, Event::Claimed(Run::of(claim)), now);
                claimed.jobs.extend(claimed_job.map(|transition| transition.job));
            }
        }
        claimed
    }

    pub(super) fn extend(&mut self, lease_ref: &LeaseRef, span: Option<Span>, now: Moment) -> Result<Job, Refusal> {
        let recorded = self.recorded(lease_ref.id)?;
        recorded.check(&lease_ref.token)?;
        recorded.heartbeat(span, now);
        Ok(recorded.job().clone())
    }

    pub(super) fn settle(&mut self, settlement: &Settlement, now: Moment) -> Result<Settled, Refusal> {
        let recorded = self.recorded(settlement.lease_ref.id)?;
        let (job, token) = (recorded.job(), &settlement.lease_ref.token);
        let completed_it = job.settled.is_some_and(|settled| *token == Token::Lease(settled));
        if completed_it && matches!(settlement.report, AttemptOutcome::Done(_)) {
            return Ok(Settled::Repeated(job.clone()));
        }
        recorded.check(token)?;
        let event = match &settlement.report {
            AttemptOutcome::Done(result) => Event::Completed(result.clone()),
            AttemptOutcome::Failed(decide) => Event::Failed(decide(job), None),
            AttemptOutcome::Released { most, .. } if job.releases >= *most => {
                return Err(Refusal::TooManyReleases(*most));
            }
            AttemptOutcome::Released { delay, .. } => Event::Released(*delay),
        };
        let settled = recorded.happen(event, now)?;
        self.runs.learn(&settled);
        Ok(Settled::Transition(settled))
    }

    pub(super) fn reclaim(
        &mut self,
        decide: &Decider<'_>,
        limit: usize,
        standstills: &[Standstill],
        now: Moment,
    ) -> Vec<Transition> {
        let mut ended = Vec::new();
        for (_, id) in self.in_time(|job| overdue(job, standstills).filter(|since| *since <= now)) {
            let Some(job) = self.jobs.get(&id).map(Recorded::job).filter(|_| ended.len() < limit) else { break };
            let too_long = job.lease.as_ref().and_then(|lease| lease.deadline).is_some_and(|deadline| deadline <= now);
            let why = if too_long { Overdue::TimedOut } else { Overdue::Stalled };
            let decision = decide(job, why);
            ended.extend(self.happen(id, Event::Failed(decision, Some(why)), now));
        }
        ended
    }

    pub(super) fn promote(&mut self, held: &Held, limit: usize, now: Moment) -> Vec<Transition> {
        let mut moved = Vec::new();
        for (_, id) in self.in_time(|job| expires(job).filter(|expires| *expires <= now)).into_iter().take(limit) {
            moved.extend(self.happen(id, Event::Expired, now));
        }
        for id in self.in_turn(held, now).into_iter().take(limit - moved.len()) {
            moved.extend(self.happen(id, Event::Due, now));
        }
        moved
    }

    pub(super) fn cancel(&mut self, id: JobId, now: Moment) -> Result<Transition, Refusal> {
        self.happen(id, Event::Cancelled, now)
    }

    pub(super) fn activate(&mut self, id: JobId, now: Moment) -> Result<Transition, Refusal> {
        self.happen(id, Event::Activated, now)
    }

    pub(super) fn redrive(&mut self, id: JobId, redrive: &Redrive, now: Moment) -> Result<Transition, Refusal> {
        let job = self.recorded(id)?.job().clone();
        let unique = if redrive.spec.is_some() { &redrive.unique } else { &job.unique };
        if let (Some(unique), Some(_)) = (unique, job.times.finished)
            && let Some(other) = self.duplicates(unique, id, now).first()
        {
            let (key, irreplaceable) = (unique.key, false);
            return Err(Refusal::Duplicate(Duplicate { id: other.id, state: other.state, key, irreplaceable }));
        }
        let redriven = self.happen(id, Event::Redriven(redrive.clone()), now)?;
        self.named(&redriven.job.spec.queue, now);
        Ok(redriven)
    }

    pub(super) fn remove(&mut self, id: JobId) -> Result<Job, Refusal> {
        let job = self.recorded(id)?.job().clone();
        if job.times.finished.is_none() {
            return Err(Refusal::WrongState(job.state));
        }
        self.forget(id);
        Ok(job)
    }

    pub(super) fn prune(&mut self, retention: Retention, limit: usize, now: Moment) -> usize {
        let over = |job: &Job, dead: bool, span: Span| {
            let finished = job.times.finished.filter(|_| job.dead == dead)?;
            (finished.after(span) <= now).then_some(finished)
        };
        let mut ended = self.in_time(|job| over(job, false, retention.finished));
        ended.extend(self.in_time(|job| over(job, true, retention.dead)));
        ended.truncate(limit);
        self.limits.prune(now);
        for (_, id) in &ended {
            self.forget(*id);
        }
        ended.len()
    }

    pub(super) fn pause(&mut self, name: &Arc<str>, paused: bool, missing: Missing, now: Moment) -> Option<Queue> {
        if missing == Missing::Refuse && !self.queues.contains_key(name) {
            return None;
        }
        let standing = self.named(name, now);
        let was = std::mem::replace(&mut standing.paused, paused);
        let standing = *standing;
        if was != paused {
            self.runs.tell(EventBody::Other(queue_paused(name, paused)), now);
        }
        Some(self.queue(name, standing))
    }

    pub(super) fn forget_queue(&mut self, name: &Arc<str>) -> Result<Queue, QueueRefusal> {
        let standing = self.queues.get(name).ok_or(QueueRefusal::NotFound)?;
        let queue = self.queue(name, *standing);
        if queue.jobs() > 0 {
            return Err(QueueRefusal::HasJobs(queue));
        }
        self.queues.remove(name);
        self.limits.settings.remove(&Group::Queue(Arc::clone(name)));
        Ok(queue)
    }

    pub(super) fn prune_queues(&mut self, age: Span, now: Moment) -> Vec<Arc<str>> {
        let is_set = |queue: &Queue| self.limits.settings.contains_key(&Group::Queue(Arc::clone(&queue.name)));
        let old =
            |queue: &Queue| queue.jobs() == 0 && !queue.paused && !is_set(queue) && queue.created.after(age) <= now;
        let names: Vec<_> = self.queues().into_iter().filter(old).map(|queue| queue.name).collect();
        self.queues.retain(|name, _| !names.contains(name));
        names
    }

    pub(super) fn set_limit(&mut self, group: Group, setting: Option<Setting>, now: Moment) {
        if let (Group::Queue(name), true) = (&group, setting.is_some()) {
            self.named(name, now);
        }
        match setting {
            Some(setting) => drop(self.limits.settings.insert(group, setting)),
            None => drop(self.limits.settings.remove(&group)),
        }
    }

    /// How groups stand. Of a group of a queue nothing is known unless something is set or stored.
    pub(super) fn standings(&self, group: Option<Group>, now: Moment) -> Vec<Standing> {
        let unended = |job: &&Job| matches!(job.state, State::Available | State::Active);
        let of_jobs = self.all().filter(unended).flat_map(|job| limits::groups(&job.spec)).map(|(group, _)| group);
        let of_jobs = of_jobs.filter(|group| !matches!(group, Group::Queue(_)));
        let known: BTreeSet<Group> = self.limits.known().chain(of_jobs).collect();
        let wanted = known.into_iter().filter(|known| group.as_ref().is_none_or(|group| group == known));
        wanted.map(|group| self.limits.standing(group, self.all(), now)).collect()
    }

    pub(super) fn get(&self, id: JobId) -> Option<Job> {
        self.jobs.get(&id).map(|recorded| recorded.job().clone())
    }

    pub(super) fn list(&self, filter: &Filter, page: Page) -> Listed {
        let mut fitting: Vec<&Job> = self.all().filter(|job| filter.fits(job)).collect();
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

    pub(super) fn loads(&self, now: Moment) -> Vec<QueueLoad> {
        let load = |queue: Queue| {
            let jobs = || self.all().filter(|job| job.spec.queue == queue.name);
            let next = jobs().filter(|job| job.state == State::Available && job.spec.limits.is_none());
            QueueLoad {
                dead: jobs().filter(|job| job.dead).count(),
                due: jobs().filter(|job| job.due.is_some_and(|due| due <= now)).take(QueueLoad::MOST_DUE).count(),
                first_due: jobs().filter_map(|job| job.due).min(),
                next_available: next
                    .min_by_key(|job| (std::cmp::Reverse(job.spec.priority), job.times.available, job.id))
                    .and_then(|job| job.times.available),
                queue,
            }
        };
        self.queues().into_iter().map(load).collect()
    }

    pub(super) fn next_wake(&self, held: &Held, standstills: &[Standstill]) -> Option<Moment> {
        let due = self.all().filter(|job| !held.contains(&job.spec)).filter_map(|job| job.due);
        let expires = self.all().filter_map(expires);
        due.chain(expires).chain(self.all().filter_map(|job| overdue(job, standstills))).min()
    }

    pub(super) fn recorded(&mut self, id: JobId) -> Result<&mut Recorded, Refusal> {
        self.jobs.get_mut(&id).ok_or(Refusal::NotFound)
    }

    pub(super) fn happen(&mut self, id: JobId, event: Event, now: Moment) -> Result<Transition, Refusal> {
        let transition = self.recorded(id)?.happen(event, now)?;
        self.runs.learn(&transition);
        Ok(transition)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Job> + Clone {
        self.jobs.values().map(Recorded::job)
    }

    /// The jobs of an open queue that can be claimed, the next one first.
    fn line(&self, queue: &Arc<str>, now: Moment) -> Vec<JobId> {
        let open = self.queues.get(queue).is_some_and(|standing| !standing.paused);
        let waiting = self.all().filter(|job| {
            let expired = expires(job).is_some_and(|expires| expires <= now);
            open && job.spec.queue == *queue && job.state == State::Available && !expired
        });
        let line = sorted(waiting, |job| (Reverse(job.spec.priority), job.times.available, job.id));
        line.into_iter().map(|job| job.id).collect()
    }

    /// The jobs to which `time` gives a moment, the earliest first.
    fn in_time(&self, time: impl Fn(&Job) -> Option<Moment>) -> Vec<(Moment, JobId)> {
        sorted(self.all().filter_map(|job| Some((time(job)?, job.id))), |pair| *pair)
    }

    /// The due jobs of the queues that are not held: the first of each queue, then the second of each.
    fn in_turn(&self, held: &Held, now: Moment) -> Vec<JobId> {
        let due = self.in_time(|job| job.due.filter(|due| *due <= now && !held.contains(&job.spec)));
        let mut turns: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        let turn = |(at, id): (Moment, JobId)| {
            let turn = turns.entry(&self.jobs.get(&id)?.job().spec.queue).or_default();
            *turn += 1;
            Some((*turn, at, id))
        };
        let due = sorted(due.into_iter().filter_map(turn), |turn| *turn);
        due.into_iter().map(|(_, _, id)| id).collect()
    }

    /// A queue's standing; what is not known yet is known from now on.
    pub(super) fn named(&mut self, name: &Arc<str>, now: Moment) -> &mut QueueMark {
        self.queues.entry(Arc::clone(name)).or_insert(QueueMark { paused: false, created: now })
    }

    fn queue(&self, name: &Arc<str>, standing: QueueMark) -> Queue {
        let count = |state| self.all().filter(|job| job.spec.queue == *name && job.state == state).count();
        let QueueMark { paused, created } = standing;
        Queue { name: Arc::clone(name), paused, created, counts: State::ALL.map(count) }
    }

    pub(super) fn forget(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.keys.retain(|_, kept| *kept != id);
    }
}

/// Whether two jobs of a queue are held to the same limits.
fn limited_alike(one: &Spec, other: &Spec) -> bool {
    let by_kind = one.limits.as_ref().is_some_and(|limits| limits.by_kind);
    one.limits == other.limits && (!by_kind || one.kind == other.kind)
}

pub(super) fn sorted<T, K: Ord>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_by_key(key);
    items
}

/// When a waiting job expires.
fn expires(job: &Job) -> Option<Moment> {
    let waits = matches!(job.state, State::Scheduled | State::Pending | State::Available | State::Retryable);
    job.spec.expires.filter(|_| waits)
}

/// When a run is overdue: at its deadline or at the end of its lease, and, after a standstill without a heartbeat
/// since, not before one span of the lease has passed, or as much time as the standstill took.
fn overdue(job: &Job, standstills: &[Standstill]) -> Option<Moment> {
    let lease: &Lease = job.lease.as_ref()?;
    let unheard = standstills.iter().filter(|standstill| lease.alive < standstill.ended);
    let spared = unheard.map(|standstill| standstill.ended.after(lease.span.at_most(standstill.length)));
    let ends = lease.deadline.into_iter().chain([lease.until]).min();
    ends.into_iter().chain(spared).max()
}
