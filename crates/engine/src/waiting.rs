//! Workers that wait for jobs, by queue. As many are woken as there are jobs, those that wait longest
//! first: a job that wakes everybody would make all but one look in vain.

use redrive_store::{Job, State};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// One worker that waits.
#[derive(Debug, Default)]
struct Waiter {
    woken: AtomicBool,
    bell: Notify,
}

type Lines = HashMap<Arc<str>, VecDeque<Arc<Waiter>>>;

/// Everybody who waits.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    lines: Mutex<Lines>,
    /// How many wait, so that nobody has to lock to learn that nobody does.
    count: AtomicUsize,
}

impl Waiting {
    /// Gets in line for some queues.
    pub(crate) fn enrol<'a>(&'a self, queues: &'a [Arc<str>]) -> Place<'a> {
        let waiter = Arc::<Waiter>::default();
        let mut lines = self.lines();
        self.count.fetch_add(1, Ordering::SeqCst);
        for queue in queues {
            lines.entry(Arc::clone(queue)).or_default().push_back(Arc::clone(&waiter));
        }
        Place { waiting: self, queues, waiter }
    }

    /// Wakes those who wait for jobs that can be had now.
    pub(crate) fn wake_for<'a>(&self, jobs: impl Iterator<Item = &'a Job>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut lines = self.lines();
        for job in jobs.filter(|job| job.state == State::Available) {
            wake_one(&mut lines, &job.spec.queue);
        }
    }

    /// Wakes everybody who waits for a queue.
    pub(crate) fn wake_all(&self, queue: &str) {
        let mut lines = self.lines();
        while wake_one(&mut lines, queue) {}
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes whoever waits longest for a queue; false where nobody does.
fn wake_one(lines: &mut Lines, queue: &str) -> bool {
    let Some(line) = lines.get_mut(queue) else { return false };
    while let Some(waiter) = line.pop_front() {
        // Somebody in several lines may have been woken by another.
        if !waiter.woken.swap(true, Ordering::SeqCst) {
            waiter.bell.notify_one();
            return true;
        }
    }
    lines.remove(queue);
    false
}

/// A place in line. When it is dropped, a call that nobody has answered goes to the next in line.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    waiting: &'a Waiting,
    queues: &'a [Arc<str>],
    waiter: Arc<Waiter>,
}

impl Place<'_> {
    /// Waits to be called.
    pub(crate) async fn called(&self) {
        self.waiter.bell.notified().await;
    }

    /// Whether a call has come.
    pub(crate) fn is_called(&self) -> bool {
        self.waiter.woken.load(Ordering::SeqCst)
    }

    /// Gives up the place after a look that found nothing, which answers the call.
    pub(crate) fn answer(self) {
        self.waiter.woken.store(false, Ordering::SeqCst);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.waiting.lines();
        self.waiting.count.fetch_sub(1, Ordering::SeqCst);
        for queue in self.queues {
            let Some(line) = lines.get_mut(queue) else { continue };
            line.retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
            if self.is_called() {
                wake_one(&mut lines, queue);
            } else if line.is_empty() {
                lines.remove(queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(names: &[&str]) -> Vec<Arc<str>> {
        names.iter().map(|name| Arc::from(*name)).collect()
    }

    #[test]
    fn whoever_waits_longest_is_woken_and_only_for_its_queues() {
        let waiting = Waiting::default();
        let (a, b, both) = (queues(&["a"]), queues(&["b"]), queues(&["a", "b"]));
        let (first, other, last) = (waiting.enrol(&a), waiting.enrol(&b), waiting.enrol(&both));
        let woken = || [first.is_called(), other.is_called(), last.is_called()];
        assert!(wake_one(&mut waiting.lines(), "a"));
        assert_eq!(woken(), [true, false, false]);
        assert!(wake_one(&mut waiting.lines(), "a"));
        assert_eq!(woken(), [true, false, true]);
        assert!(!wake_one(&mut waiting.lines(), "a"));
        assert!(wake_one(&mut waiting.lines(), "b"), "the one in both lines was woken already");
        assert_eq!(woken(), [true, true, true]);
        assert!(!wake_one(&mut waiting.lines(), "b"));
    }

    #[test]
    fn a_call_that_nobody_answers_goes_to_the_next() {
        let waiting = Waiting::default();
        let a = queues(&["a"]);
        let [first, second, third, fourth] = std::array::from_fn(|_| waiting.enrol(&a));
        drop(first);
        wake_one(&mut waiting.lines(), "a");
        assert!(second.is_called() && !third.is_called());
        drop(second);
        assert!(third.is_called() && !fourth.is_called());
        third.answer();
        assert!(!fourth.is_called());
        drop(fourth);
        assert!(waiting.lines().is_empty(), "nothing is left behind");
        assert_eq!(waiting.count.load(Ordering::SeqCst), 0);
    }
}
