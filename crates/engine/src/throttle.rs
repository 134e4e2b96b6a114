//! Reads that look at many jobs, throttled so that they leave time to the others.
//!
//! A list over a million jobs takes as much of the processor, or of the database, as it gets. While jobs are enqueued,
//! claimed and settled, all such reads together get a small share of the time, one after the other; on a server
//! with nothing else to do they go on at full speed.

use crate::Engine;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::Instant;

/// After each step, reads pause for this many times as long as it took.
const PAUSE: u32 = 19;
/// The shortest pause, which is the finest that the timer knows.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause. A step that took long may have waited for something itself.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// For how long after the last event the engine counts as busy.
const BUSY_FOR: Duration = Duration::from_millis(100);

/// When something last happened to a job, and whose turn it is to read.
#[derive(Debug)]
pub(crate) struct Throttle {
    begun: Instant,
    /// When something last happened, in microseconds since `begun`; 0 is never.
    last_event_us: AtomicU64,
    /// Held by the read that runs while the engine is busy.
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
    /// Runs a read that looks at many jobs. While the engine is busy, one such read runs at a time, and pauses after
    /// each step, which is what the future does until it wants to be polled again. The others have not begun, so that
    /// they hold nothing, such as a connection to a database, while they wait.
    pub async fn throttled<T>(&self, read: impl Future<Output = T>) -> T {
        let _turn = if self.throttle.is_busy() { Some(self.throttle.turn.lock().await) } else { None };
        let mut read = pin!(read);
        loop {
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

/// Polls a future once, and waits until it is over or wants to be polled again.
async fn step<T, F: Future<Output = T>>(mut future: Pin<&mut F>) -> Option<T> {
    let mut is_polled = false;
    poll_fn(|context| {
        if is_polled {
            return Poll::Ready(None);
        }
        is_polled = true;
        future.as_mut().poll(context).map(Some)
    })
    .await
}
