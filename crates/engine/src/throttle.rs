//! Reads that look at many jobs, throttled so that they leave time to the others.
//!
//! A list over a million jobs takes as much of the processor, or of the database, as it gets. While jobs are enqueued,
//! claimed and settled, all such reads together get a small share of the time, one step after the other; on a server
//! with nothing else to do they go on at full speed.

use crate::Engine;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::time::Instant;

/// After each step, reads pause for this many times as long as it took: they get a three-hundredth of the time. A call
/// meets a step if either lasts while the other begins, which is more often than the share of the time says. Where
/// fewer than one call in a hundred does, the slowest hundredth of calls is about as fast as without any.
const PAUSE: u32 = 299;
/// The shortest pause, which is the finest that the timer knows.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause. A step that took long may have waited for something itself.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// For how long after the last event the engine counts as busy.
const BUSY_FOR: Duration = Duration::from_millis(100);

/// When something last happened to a job, and whose turn it is to read.
#[derive(Debug)]
pub(crate) struct Throttle {
    begun: Instant,
    /// When something last happened, in microseconds since `begun`; 0 is never.
    last_event_us: AtomicU64,
    /// Held by the read whose step or pause it is while the engine is busy.
    turn: tokio::sync::Mutex<()>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self { begun: Instant::now(), last_event_us: AtomicU64::new(0), turn: tokio::sync::Mutex::default() }
    }
}

impl Throttle {
    /// Something happened to a job.
    pub(crate) fn note_event(&self) {
        let since = u64::try_from(self.begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_event_us.store(since.max(1), Ordering::Relaxed);
    }

    fn is_busy(&self) -> bool {
        let last = self.last_event_us.load(Ordering::Relaxed);
        last > 0 && self.begun.elapsed() < Duration::from_micros(last).saturating_add(BUSY_FOR)
    }
}

impl Engine {
    /// Runs a read that looks at many jobs, in steps that it ends by [`redrive_store::end_step`]. While the engine is
    /// busy, such reads take turns, step by step, and pause after each step.
    pub async fn throttled<T>(&self, read: impl Future<Output = T>) -> T {
        let mut read = pin!(read);
        loop {
            let _turn = if self.throttle.is_busy() { Some(self.throttle.turn.lock().await) } else { None };
            let begun = Instant::now();
            let answer = step(read.as_mut()).await;
            if self.throttle.is_busy() {
                // Before the answer, not after it: otherwise a client that asks again and again never pauses.
                let pause = begun.elapsed().saturating_mul(PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                tokio::time::sleep(pause).await;
            }
            if let Some(answer) = answer {
                return answer;
            }
        }
    }
}

/// Polls a future until it is over, or until it ends a step: it wakes its task while it is polled. What it waits for
/// otherwise, such as the answer of a database, belongs to the step.
async fn step<T, F: Future<Output = T>>(mut future: Pin<&mut F>) -> Option<T> {
    poll_fn(|context| {
        let woken = Arc::new(WokenWhilePolled { is_woken: AtomicBool::new(false), task: context.waker().clone() });
        let waker = Waker::from(Arc::clone(&woken));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if woken.is_woken.load(Ordering::Acquire) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Tells whether a task is woken, and wakes it.
struct WokenWhilePolled {
    is_woken: AtomicBool,
    task: Waker,
}

impl Wake for WokenWhilePolled {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}
