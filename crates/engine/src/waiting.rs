//! Workers that wait for jobs, by queue. As many are woken as there are jobs, the longest waiting first: if a job woke
//! all of them, all but one would claim in vain.

use redrive_store::{Job, State};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Notify;

/// One worker that waits, until it is called.
#[derive(Debug, Default)]
struct Waiter {
    /// The queue of the job that it was called for.
    call: OnceLock<Arc<str>>,
    bell: Notify,
}

type Lines = HashMap<Arc<str>, VecDeque<Arc<Waiter>>>;

/// All workers that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    lines: Mutex<Lines>,
    /// How many wait, so that no lock is taken where none does.
    count: AtomicUsize,
}

impl Waiting {
    /// Gets in some lines.
    pub(crate) fn register(&self, queues: Arc<[Arc<str>]>) -> PlaceInLine<'_> {
        let waiter = Arc::<Waiter>::default();
        let mut lines = self.lines();
        self.count.fetch_add(1, Ordering::SeqCst);
        for queue in &*queues {
            lines.entry(Arc::clone(queue)).or_default().push_back(Arc::clone(&waiter));
        }
        PlaceInLine { waiting: self, queues, waiter, answered: false }
    }

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    /// Wakes one worker for each of these jobs that is available.
    pub(crate) fn wake_for<'a>(&self, jobs: impl Iterator<Item = &'a Job>) {
        if self.is_empty() {
            return;
        }
        let mut lines = self.lines();
        for job in jobs.filter(|job| job.state == State::Available) {
            wake_one(&mut lines, &job.spec.queue);
        }
    }

    /// Wakes the longest waiting workers of a queue, at most so many.
    pub(crate) fn wake_some(&self, queue: &Arc<str>, most: usize) {
        if !self.is_empty() {
            let mut lines = self.lines();
            (0..most).take_while(|_| wake_one(&mut lines, queue)).for_each(drop);
        }
    }

    /// Wakes all that wait for the queues that are wanted.
    pub(crate) fn wake_where(&self, wanted: impl Fn(&Arc<str>) -> bool) {
        let mut lines = self.lines();
        let queues: Vec<Arc<str>> = lines.keys().filter(|queue| wanted(queue)).map(Arc::clone).collect();
        for queue in &queues {
            while wake_one(&mut lines, queue) {}
        }
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the worker that waits longest for a queue; false where none waits.
fn wake_one(lines: &mut Lines, queue: &Arc<str>) -> bool {
    let Some(line) = lines.get_mut(queue) else { return false };
    while let Some(waiter) = line.pop_front() {
        // A worker in several lines may have been woken in another.
        if waiter.call.set(Arc::clone(queue)).is_ok() {
            waiter.bell.notify_one();
            return true;
        }
    }
    lines.remove(queue);
    false
}

/// A place in line. When it is dropped, a call that was not answered goes to the next in line.
#[derive(Debug)]
pub(crate) struct PlaceInLine<'a> {
    waiting: &'a Waiting,
    queues: Arc<[Arc<str>]>,
    waiter: Arc<Waiter>,
    answered: bool,
}

impl PlaceInLine<'_> {
    /// Waits to be called.
    pub(crate) async fn called(&self) {
        self.waiter.bell.notified().await;
    }

    /// Whether a call has come.
    pub(crate) fn is_called(&self) -> bool {
        self.waiter.call.get().is_some()
    }

    /// Gives up the place after a look that `took` these jobs. That answers the call where a job of its queue was
    /// taken, or there was none at all; else the call goes to the next.
    pub(crate) fn give_up(mut self, took: &[Job]) {
        let of_queue = |queue: &Arc<str>| took.iter().any(|job| job.spec.queue == *queue);
        self.answered = took.is_empty() || self.waiter.call.get().is_some_and(of_queue);
    }
}

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        let mut lines = self.waiting.lines();
        self.waiting.count.fetch_sub(1, Ordering::SeqCst);
        for queue in &*self.queues {
            let Some(line) = lines.get_mut(queue) else { continue };
            line.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if line.is_empty() {
                lines.remove(queue);
            }
        }
        if let Some(queue) = self.waiter.call.get().filter(|_| !self.answered) {
            wake_one(&mut lines, queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(names: &[&str]) -> Arc<[Arc<str>]> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn the_longest_waiting_worker_is_woken_and_only_for_its_queues() {
        let waiting = Waiting::default();
        let (a, b, both) = (queues(&["a"]), queues(&["b"]), queues(&["a", "b"]));
        let (first, other, last) =
            (waiting.register(Arc::clone(&a)), waiting.register(Arc::clone(&b)), waiting.register(Arc::clone(&both)));
        let woken = || [first.is_called(), other.is_called(), last.is_called()];
        assert!(wake_one(&mut waiting.lines(), &a[0]));
        assert_eq!(woken(), [true, false, false]);
        assert!(wake_one(&mut waiting.lines(), &a[0]));
        assert_eq!(woken(), [true, false, true]);
        assert!(!wake_one(&mut waiting.lines(), &a[0]));
        assert!(wake_one(&mut waiting.lines(), &b[0]), "the one in both lines was woken already");
        assert_eq!(woken(), [true, true, true]);
        assert!(!wake_one(&mut waiting.lines(), &b[0]));
    }

    #[test]
    fn as_many_are_woken_as_there_are_jobs_on_another_node_or_all() {
        let waiting = Waiting::default();
        let (a, b) = (queues(&["a"]), queues(&["b"]));
        let places = [
            waiting.register(Arc::clone(&a)),
            waiting.register(Arc::clone(&a)),
            waiting.register(Arc::clone(&a)),
            waiting.register(Arc::clone(&b)),
        ];
        let woken = || places.iter().map(PlaceInLine::is_called).collect::<Vec<_>>();
        waiting.wake_some(&a[0], 2);
        assert_eq!(woken(), [true, true, false, false]);
        waiting.wake_where(|_| true);
        assert_eq!(woken(), [true, true, true, true]);
        waiting.wake_some(&a[0], 9);
    }

    #[test]
    fn a_call_that_is_not_answered_goes_to_the_next() {
        let waiting = Waiting::default();
        let a = queues(&["a"]);
        let [first, second, third, fourth] = std::array::from_fn(|_| waiting.register(Arc::clone(&a)));
        drop(first);
        wake_one(&mut waiting.lines(), &a[0]);
        assert!(second.is_called() && !third.is_called());
        drop(second);
        assert!(third.is_called() && !fourth.is_called());
        third.give_up(&[]);
        assert!(!fourth.is_called());
        drop(fourth);
        assert!(waiting.lines().is_empty(), "nothing is left behind");
        assert_eq!(waiting.count.load(Ordering::SeqCst), 0);
    }
}
