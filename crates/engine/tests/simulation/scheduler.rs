//! Tasks on one thread, of which a seed picks the next to go on.

use super::common::Seeded;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

struct Task {
    body: Pin<Box<dyn Future<Output = ()>>>,
    flag: Arc<Flag>,
}

/// Whether a task can go on.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The tasks of a simulation.
pub(crate) struct Scheduler {
    tasks: Vec<Task>,
    rng: Seeded,
}

impl Scheduler {
    pub(crate) const fn new(rng: Seeded) -> Self {
        Self { tasks: Vec::new(), rng }
    }

    pub(crate) fn spawn(&mut self, body: impl Future<Output = ()> + 'static) {
        self.tasks.push(Task { body: Box::pin(body), flag: Arc::new(Flag(AtomicBool::new(true))) });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Lets everybody look again, whether or not there is a reason.
    pub(crate) fn wake_all(&self) {
        for task in &self.tasks {
            task.flag.0.store(true, Ordering::Relaxed);
        }
    }

    /// One task goes on until it waits; false where none can.
    pub(crate) fn step(&mut self) -> bool {
        let able: Vec<usize> =
            (0..self.tasks.len()).filter(|index| self.tasks[*index].flag.0.load(Ordering::Relaxed)).collect();
        if able.is_empty() {
            return false;
        }
        let index = *self.rng.pick(&able);
        let task = &mut self.tasks[index];
        task.flag.0.store(false, Ordering::Relaxed);
        let waker = Waker::from(Arc::clone(&task.flag));
        if task.body.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            drop(self.tasks.swap_remove(index));
        }
        true
    }
}
