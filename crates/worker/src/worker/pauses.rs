//! Queues from which the worker claims no jobs for a while, because it found jobs there that it cannot run.

use crate::delay::GrowingDelay;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The queues that were paused, and may be again.
#[derive(Debug, Default)]
pub(super) struct Pauses(HashMap<Arc<str>, Pause>);

#[derive(Debug)]
struct Pause {
    delay: GrowingDelay,
    until: Instant,
}

impl Pauses {
    /// A job of the queue cannot run here. Returns how long the queue is paused from now on;
    /// `None` if it is paused already.
    pub(super) fn declined(&mut self, queue: &Arc<str>) -> Option<Duration> {
        let now = Instant::now();
        let pause =
            self.0.entry(Arc::clone(queue)).or_insert_with(|| Pause { delay: GrowingDelay::declining(), until: now });
        if pause.until > now {
            return None;
        }
        let wait = pause.delay.next_delay();
        pause.until = now + wait;
        Some(wait)
    }

    /// A job of the queue ran here: the next pause is a short one again.
    pub(super) fn ran(&mut self, queue: &str) {
        if let Some(pause) = self.0.get_mut(queue) {
            pause.delay.reset();
        }
    }

    /// These queues had no jobs.
    pub(super) fn empty(&mut self, queues: &[Arc<str>]) {
        queues.iter().for_each(|queue| self.ran(queue));
    }

    /// The queues that are not paused now.
    ///
    /// # Errors
    /// All are paused; this is when the first pause ends.
    pub(super) fn open(&self, queues: &Arc<[Arc<str>]>) -> Result<Arc<[Arc<str>]>, Instant> {
        let now = Instant::now();
        let until = |queue: &Arc<str>| self.0.get(queue).map(|pause| pause.until).filter(|until| *until > now);
        if self.0.is_empty() || queues.iter().all(|queue| until(queue).is_none()) {
            return Ok(Arc::clone(queues));
        }
        let open: Arc<[Arc<str>]> = queues.iter().filter(|queue| until(queue).is_none()).cloned().collect();
        match queues.iter().filter_map(until).min() {
            Some(first) if open.is_empty() => Err(first),
            _ => Ok(open),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_queue_is_paused_for_longer_each_time_until_a_job_of_it_runs() {
        let queues: Arc<[Arc<str>]> = ["a", "b"].map(Arc::from).into();
        let mut pauses = Pauses::default();
        assert_eq!(pauses.open(&queues), Ok(Arc::clone(&queues)));
        let mut longest = Duration::ZERO;
        for _ in 0..10 {
            let wait = pauses.declined(&queues[0]).unwrap();
            assert_eq!(pauses.declined(&queues[0]), None, "one pause for all jobs of one fetch");
            assert_eq!(pauses.open(&queues).unwrap()[..], [Arc::from("b")]);
            longest = longest.max(wait);
            tokio::time::advance(wait).await;
            assert_eq!(pauses.open(&queues), Ok(Arc::clone(&queues)));
        }
        assert!(longest > Duration::from_secs(30) && longest <= Duration::from_secs(60), "{longest:?}");
        pauses.ran("a");
        let short = pauses.declined(&queues[0]).unwrap();
        assert!(short <= Duration::from_secs(2), "{short:?}");
        let later = pauses.declined(&queues[1]).unwrap().min(short);
        assert_eq!(pauses.open(&queues), Err(Instant::now() + later), "all are paused until then");
    }
}
