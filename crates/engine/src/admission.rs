//! Admission: the one place that decides whether a job may become claimable, whichever way it comes.
//!
//! What is held is held as a group, and today a group is a queue. The store is given what is held with each claim,
//! each promotion, and each question for the next of them; it passes over a held group as a whole. So a job may
//! become available in a held queue (it is new, activated, redriven, released or reclaimed, on this node or on another)
//! and no worker gets it, no waiting worker is woken for it, and no sweep looks at it. When a hold ends, the workers
//! that wait for the group and the sweeper are woken.
//!
//! A pause is a hold that the store knows too. It is the authority for it: another node may have paused a queue, or
//! resumed it, before this one hears of that.

use crate::waiting::{PlaceInLine, Waiting};
use crate::windows::Windows;
use redrive_policy::Moment;
use redrive_store::{EventKind, Full, Group, Held, Job, Spec, Transition};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Mutex, MutexGuard, Notify};

/// What is held, and who waits for what is not.
#[derive(Debug)]
pub(crate) struct Admission {
    held: RwLock<Arc<Held>>,
    /// Locked from asking the store about pauses until its answer is noted: answers that overtake each other would
    /// leave a hold on a queue that is not paused.
    pausing: Mutex<()>,
    waiting: Waiting,
    /// When groups open for which somebody waits.
    windows: Windows,
    /// When the sweeper looks next, in microseconds; the end of time while it is looking, so that whatever comes in
    /// between wakes it.
    planned: AtomicI64,
    /// Notified when something has to happen earlier than the sweeper plans to look.
    earlier: Notify,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            held: RwLock::default(),
            pausing: Mutex::default(),
            waiting: Waiting::default(),
            windows: Windows::default(),
            planned: AtomicI64::new(i64::MAX),
            earlier: Notify::new(),
        }
    }
}

impl Admission {
    /// What is held at this moment.
    pub(crate) fn held(&self) -> Arc<Held> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gets in line for the jobs of some queues, and of groups that allow no run yet.
    pub(crate) fn register(&self, lines: &Arc<[Arc<str>]>) -> PlaceInLine<'_> {
        self.waiting.register(Arc::clone(lines))
    }

    /// These jobs have changed. Wakes workers that wait, one for each job that can be claimed, and the sweeper where
    /// it has to look earlier than it plans.
    pub(crate) fn changed<'a>(&self, jobs: impl Iterator<Item = &'a Job> + Clone) {
        let (held, planned) = (self.held(), self.planned.load(Ordering::Acquire));
        if jobs.clone().filter_map(|job| next_change(job, &held)).any(|next| next.micros() < planned) {
            self.wake_sweeper();
        }
        self.waiting.wake_for(jobs.filter(|job| !held.contains(&job.spec)));
    }

    /// Runs have ended: their groups may allow others.
    pub(crate) fn ended<'a>(&self, transitions: impl Iterator<Item = &'a Transition>) {
        if self.waiting.is_empty() {
            return;
        }
        for transition in transitions.filter(|transition| transition.lease.is_some()) {
            groups(&transition.job.spec).for_each(|group| self.opened(&line_of(&group), 1));
        }
    }

    /// A group allows runs again that it did not allow.
    pub(crate) fn opened(&self, line: &Arc<str>, runs: usize) {
        self.waiting.wake_some(line, runs);
        self.waiting.wake_some(&any_group(), usize::MAX);
    }

    /// The lines of a worker that waits for these queues and found these groups full. One that found many of them is
    /// woken for all.
    pub(crate) fn lines(&self, queues: &[Arc<str>], full: &[Full]) -> Arc<[Arc<str>]> {
        if full.len() > MOST_LINES {
            full.iter().for_each(|full| full.opens.iter().for_each(|at| self.windows.note(*at, &any_group())));
            return queues.iter().map(Arc::clone).chain([any_group()]).collect();
        }
        let line = |full: &Full| {
            let line = line_of(&full.group);
            full.opens.iter().for_each(|at| self.windows.note(*at, &line));
            line
        };
        queues.iter().map(Arc::clone).chain(full.iter().map(line)).collect()
    }

    /// Wakes those who wait for groups that have opened by now: one for each, which passes the call on where it finds
    /// a job.
    pub(crate) fn open_windows(&self, now: Moment) {
        self.windows.take(now).iter().for_each(|line| self.opened(line, 1));
    }

    /// When the next group opens for which somebody waits.
    pub(crate) const fn windows(&self) -> &Windows {
        &self.windows
    }

    /// Another node made so many jobs of a queue available.
    pub(crate) fn available_elsewhere(&self, queue: &Arc<str>, jobs: usize) {
        if !self.held().contains_queue(queue) {
            self.waiting.wake_some(queue, jobs);
        }
    }

    /// Anything may have changed on another node: every worker that waits for something that is not held looks, and
    /// so does the sweeper.
    pub(crate) fn anything_elsewhere(&self) {
        let held = self.held();
        self.waiting.wake_where(|queue| !held.contains_queue(queue));
        self.wake_sweeper();
    }

    /// To be held while the store is asked about pauses, and its answer noted.
    pub(crate) async fn lock_pauses(&self) -> MutexGuard<'_, ()> {
        self.pausing.lock().await
    }

    /// Holds a queue.
    pub(crate) fn hold(&self, queue: &Arc<str>) {
        self.change(|held| held.hold_queue(Arc::clone(queue)));
    }

    /// Ends the hold on a queue; what waits in it is not looked for yet.
    pub(crate) fn free(&self, queue: &str) {
        self.change(|held| held.free_queue(queue));
    }

    /// What may be claimed in a queue is looked for: its hold has ended.
    pub(crate) fn resume(&self, queue: &Arc<str>) {
        self.free(queue);
        self.waiting.wake_where(|waiting| waiting == queue);
        self.wake_sweeper();
    }

    /// Exactly these queues are paused. The holds on others end.
    pub(crate) fn note_paused(&self, paused: Vec<Arc<str>>) {
        let now = Held::of_queues(paused);
        let before = self.held();
        self.change(|held| held.clone_from(&now));
        before.queues().filter(|queue| !now.contains_queue(queue)).for_each(|queue| self.resume(queue));
    }

    /// The sweeper begins to look.
    pub(crate) fn looking(&self) {
        self.planned.store(i64::MAX, Ordering::Release);
    }

    /// The sweeper looks again at this time.
    pub(crate) fn looks_next(&self, at: Moment) {
        self.planned.store(at.micros(), Ordering::Release);
    }

    /// Completes when the sweeper has to look earlier than it planned.
    pub(crate) async fn earlier(&self) {
        self.earlier.notified().await;
    }

    fn wake_sweeper(&self) {
        self.earlier.notify_one();
    }

    fn change<T>(&self, change: impl FnOnce(&mut Held) -> T) {
        change(Arc::make_mut(&mut self.held.write().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// A worker that found more groups full than this waits for any of them.
const MOST_LINES: usize = 64;

/// The line of those who wait for a group. No queue is named like that.
pub(crate) fn line_of(group: &Group) -> Arc<str> {
    format!("\u{1}{group}").into()
}

/// The line of those who wait for more groups than they could name.
fn any_group() -> Arc<str> {
    "\u{1}".into()
}

/// The groups of a job.
fn groups(spec: &Spec) -> impl Iterator<Item = Group> {
    let limits = spec.limits.as_deref();
    let key = limits.and_then(|limits| limits.own.as_ref()).map(|own| Group::Key(Arc::clone(&own.key)));
    let kind = limits.filter(|limits| limits.by_kind).map(|_| Group::Kind(Arc::clone(&spec.kind)));
    [Some(Group::Queue(Arc::clone(&spec.queue))), key, kind].into_iter().flatten()
}

/// When something happens to a job by itself next. That it is due is nothing where it is held.
fn next_change(job: &Job, held: &Held) -> Option<Moment> {
    let expires = job.state.after(EventKind::Expired).and(job.spec.expires);
    let lease = job.lease.as_ref();
    let ends = [lease.map(|lease| lease.until), lease.and_then(|lease| lease.deadline)];
    let due = job.due.filter(|_| !held.contains(&job.spec));
    [due, expires].into_iter().chain(ends).flatten().min()
}
