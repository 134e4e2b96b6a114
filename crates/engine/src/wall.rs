//! The boundary between wall time and elapsed time, as [`redrive_store::clock`] has them.
//!
//! Callers of the engine name moments in wall time, and are answered in wall time. The store has elapsed time. As
//! long as the wall clock was never set, the two are the same.

use crate::{Engine, Wall};
use redrive_policy::{Moment, Span};
use redrive_store::{
    ChildEnd, Entry, EventBody, FailedAttempt, Filter, Job, Lease, Listed, MessageBody, NewJob, Page, Queue, Run,
    Settled, Spec, Start, Transition, Unique,
};
use std::borrow::Cow;
use std::sync::Arc;

impl Engine {
    /// What time it is, by the wall clock.
    #[must_use]
    pub fn now(&self) -> Moment {
        self.shown(self.clock.now())
    }

    /// How the wall clock differs from the time by which leases and delays are measured.
    #[must_use]
    pub fn wall(&self) -> Wall {
        self.clock.wall()
    }

    /// How long ago the engine was made.
    #[must_use]
    pub fn uptime(&self) -> Span {
        self.clock.now().since(self.begun)
    }

    /// A moment of the store, by the wall clock.
    pub(crate) fn shown(&self, at: Moment) -> Moment {
        moved(at, self.clock.wall().ahead_us)
    }

    pub(crate) fn shown_job(&self, job: Job) -> Job {
        shown_job(job, self.clock.wall().ahead_us)
    }

    pub(crate) fn shown_jobs(&self, jobs: impl IntoIterator<Item = Job>) -> Vec<Job> {
        let ahead_us = self.clock.wall().ahead_us;
        jobs.into_iter().map(|job| shown_job(job, ahead_us)).collect()
    }

    pub(crate) fn shown_transition(&self, transition: Transition) -> Transition {
        shown_transition(transition, self.clock.wall().ahead_us)
    }

    pub(crate) fn shown_run(&self, mut run: Run) -> Run {
        let by_us = self.clock.wall().ahead_us;
        for at in [&mut run.created, &mut run.advanced].into_iter().chain(run.timer.as_mut()) {
            *at = moved(*at, by_us);
        }
        if let Some(end) = &mut run.end {
            end.at = moved(end.at, by_us);
        }
        run
    }

    pub(crate) fn shown_queue(&self, queue: Queue) -> Queue {
        Queue { created: self.shown(queue.created), ..queue }
    }

    /// A new job with its times as the store takes them.
    pub(crate) fn stored_job(&self, new: NewJob) -> NewJob {
        let start = match new.start {
            Start::Scheduled(at) => Start::Scheduled(self.kept(at)),
            other @ (Start::Available | Start::Pending) => other,
        };
        NewJob { spec: self.stored_spec(new.spec), start, ..new }
    }

    pub(crate) fn stored_spec(&self, spec: Arc<Spec>) -> Arc<Spec> {
        if spec.expires.is_none() { spec } else { expiring(spec, -self.clock.wall().ahead_us) }
    }

    pub(crate) fn stored_filter(&self, filter: Filter) -> Filter {
        let [finished_since, finished_before] =
            [filter.finished_since, filter.finished_before].map(|at| at.map(|at| self.kept(at)));
        Filter { finished_since, finished_before, ..filter }
    }

    pub(crate) fn stored_page(&self, page: Page) -> Page {
        beginning(page, -self.clock.wall().ahead_us)
    }

    pub(crate) fn shown_listed(&self, listed: Listed) -> Listed {
        let next = listed.next.map(|page| beginning(page, self.clock.wall().ahead_us));
        Listed { jobs: self.shown_jobs(listed.jobs), next, ..listed }
    }

    /// A moment of the wall clock, as the store takes it.
    fn kept(&self, at: Moment) -> Moment {
        moved(at, -self.clock.wall().ahead_us)
    }
}

/// A moment so much later.
pub(crate) fn moved(at: Moment, by_us: i64) -> Moment {
    Moment::from_micros(at.micros().saturating_add(by_us))
}

/// The same page, with the entry that it begins behind so much later.
fn beginning(page: Page, by_us: i64) -> Page {
    let after = page.after.map(|entry| Entry { ended: entry.ended.map(|ended| moved(ended, by_us)), ..entry });
    Page { after, ..page }
}

/// The same, expiring so much later.
fn expiring(spec: Arc<Spec>, by_us: i64) -> Arc<Spec> {
    match spec.expires {
        Some(expires) if by_us != 0 => Arc::new(Spec { expires: Some(moved(expires, by_us)), ..(*spec).clone() }),
        _ => spec,
    }
}

/// The same, with the schedule that was taken over so much later.
fn scheduled(unique: Arc<Unique>, by_us: i64) -> Arc<Unique> {
    match unique.schedule {
        Some(at) if by_us != 0 => Arc::new(Unique { schedule: Some(moved(at, by_us)), ..Unique::clone(&unique) }),
        _ => unique,
    }
}

pub(crate) fn shown_job(mut job: Job, by_us: i64) -> Job {
    if by_us == 0 {
        return job;
    }
    job.spec = expiring(job.spec, by_us);
    let times = &mut job.times;
    times.created = moved(times.created, by_us);
    let optional = [&mut times.available, &mut times.started, &mut times.finished, &mut job.due];
    optional.into_iter().flatten().for_each(|at| *at = moved(*at, by_us));
    job.lease = job.lease.map(|lease| shown_lease(lease, by_us));
    job.failures.iter_mut().for_each(|failure| shown_failure(failure, by_us));
    job.revisions.iter_mut().for_each(|revision| revision.at = moved(revision.at, by_us));
    job.unique = job.unique.map(|unique| scheduled(unique, by_us));
    job
}

/// A message with its times so much later.
pub(crate) fn shown_message(body: &MessageBody, by_us: i64) -> Cow<'_, MessageBody> {
    if by_us == 0 {
        return Cow::Borrowed(body);
    }
    let mut body = body.clone();
    if let MessageBody::Event { at, event } = &mut body {
        *at = moved(*at, by_us);
        if let EventBody::Job(event) = event {
            event.times_mut().for_each(|at| *at = moved(*at, by_us));
        }
    }
    if let MessageBody::JobEnded { end, .. } = &mut body {
        let failure = match end {
            ChildEnd::Completed { .. } => None,
            ChildEnd::Failed { failure, .. } => Some(failure),
            ChildEnd::Expired { last_failure, .. } | ChildEnd::Cancelled { last_failure } => last_failure.as_mut(),
        };
        failure.into_iter().for_each(|failure| shown_failure(failure, by_us));
    }
    Cow::Owned(body)
}

fn shown_failure(failure: &mut FailedAttempt, by_us: i64) {
    for at in [&mut failure.available, &mut failure.started, &mut failure.at] {
        *at = moved(*at, by_us);
    }
}

/// The answer to a report, so much later.
pub(crate) fn shown_settled(settled: Settled, by_us: i64) -> Settled {
    match settled {
        Settled::Transition(transition) => Settled::Transition(shown_transition(transition, by_us)),
        Settled::Repeated(job) => Settled::Repeated(shown_job(job, by_us)),
    }
}

fn shown_lease(lease: Lease, by_us: i64) -> Lease {
    Lease {
        alive: moved(lease.alive, by_us),
        until: moved(lease.until, by_us),
        deadline: lease.deadline.map(|deadline| moved(deadline, by_us)),
        ..lease
    }
}

pub(crate) fn shown_transition(mut transition: Transition, by_us: i64) -> Transition {
    if by_us == 0 {
        return transition;
    }
    transition.job = shown_job(transition.job, by_us);
    transition.at = moved(transition.at, by_us);
    transition.lease = transition.lease.map(|lease| shown_lease(lease, by_us));
    transition
}
