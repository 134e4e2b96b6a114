//! The clock of one process on one machine.

use super::{Clock, STEP_US, Step, Wall, elapsed_us};
use crate::embedded::{Embedded, Opened};
use redrive_policy::Moment;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// How fast drift is corrected, in parts per million: no delay is off by more than that.
const SLEW_PPM: i64 = 500;
/// The two clocks of the machine are read one after the other. A reading that took longer than this is not used.
const LONGEST_READING_US: i64 = 20_000;

type Source = dyn Fn() -> i64 + Send + Sync;
type Save = dyn Fn(Moment, i64) + Send + Sync;

/// The clock of the machine: it starts at the wall clock, and goes on by elapsed time.
pub struct SystemClock {
    elapsed_us: Box<Source>,
    wall_us: Box<Source>,
    /// What has to be added to the elapsed time.
    ahead_us: AtomicI64,
    latest_us: AtomicI64,
    seen: Mutex<Seen>,
    /// Is called with the time and how far the wall clock is ahead of it, before a step takes effect.
    save: Box<Save>,
}

/// What the last comparison with the wall clock has shown.
#[derive(Debug)]
struct Seen {
    wall: Wall,
    /// When that was, in elapsed time.
    checked_us: i64,
    /// A step that was noticed at the start.
    unreported: Option<Step>,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::after(Moment::from_micros(i64::MIN), 0, |_, _| {})
    }
}

impl SystemClock {
    /// A clock that continues where another process stopped: not before `latest`, with the wall clock `ahead_us`
    /// microseconds ahead. `save` is called with the same two, for the next process.
    ///
    /// The time in between has passed, as far as the wall clock tells. A wall clock that is behind `latest` was set
    /// back; then the time continues at `latest`.
    fn after(latest: Moment, ahead_us: i64, save: impl Fn(Moment, i64) + Send + Sync + 'static) -> Self {
        Self::on(Box::new(elapsed_us), Box::new(wall_us), latest, ahead_us, Box::new(save))
    }

    /// The clock for a store that was just opened. It continues from what is saved in the store, and saves there
    /// what the next process has to know.
    #[must_use]
    pub fn of(store: &Arc<Embedded>, opened: &Opened) -> Self {
        let latest = opened.latest.unwrap_or(Moment::from_micros(i64::MIN));
        let store = Arc::downgrade(store);
        let save = move |at, ahead_us| {
            if let Some(store) = store.upgrade() {
                store.keep_clock(at, ahead_us);
            }
        };
        Self::after(latest, opened.wall_ahead_us, save)
    }

    fn on(elapsed: Box<Source>, wall: Box<Source>, latest: Moment, ahead_us: i64, save: Box<Save>) -> Self {
        let (checked_us, now) = (elapsed(), wall());
        let begin = now.saturating_sub(ahead_us).max(latest.micros());
        let mut seen = Seen { wall: Wall { ahead_us, ..Wall::default() }, checked_us, unreported: None };
        let by_us = now.saturating_sub(begin).saturating_sub(ahead_us);
        if by_us.abs() > STEP_US {
            let step = Step { at: Moment::from_micros(begin), by_us };
            seen.wall.stepped(step);
            seen.unreported = Some(step);
            save(step.at, seen.wall.ahead_us);
        }
        Self {
            elapsed_us: elapsed,
            wall_us: wall,
            ahead_us: AtomicI64::new(begin.saturating_sub(checked_us)),
            latest_us: AtomicI64::new(begin),
            seen: Mutex::new(seen),
            save,
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let micros = (self.elapsed_us)().saturating_add(self.ahead_us.load(Ordering::Acquire));
        Moment::from_micros(self.latest_us.fetch_max(micros, Ordering::AcqRel).max(micros))
    }

    fn wall(&self) -> Wall {
        self.seen().wall
    }

    fn check_wall(&self) -> Option<Step> {
        let mut seen = self.seen();
        if let Some(step) = seen.unreported.take() {
            return Some(step);
        }
        let before = (self.elapsed_us)();
        let wall = (self.wall_us)();
        let after = (self.elapsed_us)();
        if after.saturating_sub(before) > LONGEST_READING_US {
            return None;
        }
        let now = before.saturating_add(self.ahead_us.load(Ordering::Acquire));
        let off_us = wall.saturating_sub(now).saturating_sub(seen.wall.ahead_us);
        if off_us.abs() > STEP_US {
            let step = Step { at: Moment::from_micros(now), by_us: off_us };
            (self.save)(step.at, seen.wall.ahead_us.saturating_add(off_us));
            seen.wall.stepped(step);
            seen.checked_us = before;
            return Some(step);
        }
        let most = before.saturating_sub(seen.checked_us).max(0).saturating_mul(SLEW_PPM) / 1_000_000;
        if most > 0 {
            self.ahead_us.fetch_add(off_us.clamp(-most, most), Ordering::AcqRel);
            seen.checked_us = before;
        }
        None
    }

    fn save(&self) {
        (self.save)(self.now(), self.wall().ahead_us);
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SystemClock").field("seen", &self.seen).finish_non_exhaustive()
    }
}

fn wall_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
