//! Time and randomness, made once in `main` and handed down.

use redrive_policy::{Draw, Moment, Span};
use redrive_store::embedded::{Embedded, Opened};
use redrive_store::{STEP_US, Step, Wall, elapsed_us};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The one clock of a process: microseconds since the Unix epoch, or as near to that as a clock can be that
/// nobody sets. Leases and delays are promises about elapsed time.
pub trait Clock: Send + Sync {
    /// The time. It never steps.
    fn now(&self) -> Moment;

    /// How the wall clock stands to it. A clock that is none of its own goes with it.
    fn wall(&self) -> Wall {
        Wall::default()
    }

    /// Compares it with the wall clock; answers a step of that one that was not known yet.
    fn look(&self) -> Option<Step> {
        None
    }

    /// The process is about to end: what the next one has to know is kept.
    fn rest(&self) {}
}

/// How fast small differences from the wall clock are made up for, in parts of a million: no delay is off by more
/// than that, and clocks that drift apart over months do not.
const SLEW_PPM: i64 = 500;
/// The two clocks of the machine are read one after the other; what took longer says nothing about them.
const LONGEST_READING_US: i64 = 20_000;

type Source = dyn Fn() -> i64 + Send + Sync;
type Keeper = dyn Fn(Moment, i64) + Send + Sync;

/// The clock of the machine: it begins at the wall clock, and goes on by elapsed time.
pub struct SystemClock {
    elapsed_us: Box<Source>,
    wall_us: Box<Source>,
    /// What has to be added to the elapsed time.
    ahead_us: AtomicI64,
    latest_us: AtomicI64,
    seen: Mutex<Seen>,
    /// Is told the time and how far the wall clock is ahead of it, before anything goes by that.
    keep: Box<Keeper>,
}

/// What the last look at the wall clock has shown.
#[derive(Debug)]
struct Seen {
    wall: Wall,
    /// When that was, in elapsed time.
    looked_us: i64,
    /// A step that was noticed at the start.
    untold: Option<Step>,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::after(Moment::from_micros(i64::MIN), 0, |_, _| {})
    }
}

impl SystemClock {
    /// A clock that goes on where another process stopped: not before `latest`, with the wall clock `ahead_us`
    /// microseconds ahead. `keep` is called with the same two, for the next process.
    ///
    /// The time in between has passed, as far as the wall clock tells. Where that one is behind `latest`, it was
    /// set back, and the time goes on at `latest`.
    fn after(latest: Moment, ahead_us: i64, keep: impl Fn(Moment, i64) + Send + Sync + 'static) -> Self {
        Self::on(Box::new(elapsed_us), Box::new(wall_us), latest, ahead_us, Box::new(keep))
    }

    /// The clock that goes with a store that was just opened: it goes on from what the store knows, and the store
    /// keeps what the next process has to know.
    #[must_use]
    pub fn of(store: &Arc<Embedded>, opened: &Opened) -> Self {
        let latest = opened.latest.unwrap_or(Moment::from_micros(i64::MIN));
        let store = Arc::downgrade(store);
        let keep = move |at, ahead_us| {
            if let Some(store) = store.upgrade() {
                store.keep_clock(at, ahead_us);
            }
        };
        Self::after(latest, opened.wall_ahead_us, keep)
    }

    fn on(elapsed: Box<Source>, wall: Box<Source>, latest: Moment, ahead_us: i64, keep: Box<Keeper>) -> Self {
        let (looked_us, now) = (elapsed(), wall());
        let begin = now.saturating_sub(ahead_us).max(latest.micros());
        let mut seen = Seen { wall: Wall { ahead_us, ..Wall::default() }, looked_us, untold: None };
        let by_us = now.saturating_sub(begin).saturating_sub(ahead_us);
        if by_us.abs() > STEP_US {
            let step = Step { at: Moment::from_micros(begin), by_us };
            seen.wall.stepped(step);
            seen.untold = Some(step);
            keep(step.at, seen.wall.ahead_us);
        }
        Self {
            elapsed_us: elapsed,
            wall_us: wall,
            ahead_us: AtomicI64::new(begin.saturating_sub(looked_us)),
            latest_us: AtomicI64::new(begin),
            seen: Mutex::new(seen),
            keep,
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

    fn look(&self) -> Option<Step> {
        let mut seen = self.seen();
        if let Some(step) = seen.untold.take() {
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
            (self.keep)(step.at, seen.wall.ahead_us.saturating_add(off_us));
            seen.wall.stepped(step);
            seen.looked_us = before;
            return Some(step);
        }
        let most = before.saturating_sub(seen.looked_us).max(0).saturating_mul(SLEW_PPM) / 1_000_000;
        if most > 0 {
            self.ahead_us.fetch_add(off_us.clamp(-most, most), Ordering::AcqRel);
            seen.looked_us = before;
        }
        None
    }

    fn rest(&self) {
        (self.keep)(self.now(), self.wall().ahead_us);
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

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    micros: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub const fn at(now: Moment) -> Self {
        Self { micros: AtomicI64::new(now.micros()) }
    }

    /// Moves it forward.
    pub fn advance(&self, span: Span) {
        self.set(self.now().after(span));
    }

    /// Sets it, also backwards.
    pub fn set(&self, now: Moment) {
        self.micros.store(now.micros(), Ordering::Release);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment::from_micros(self.micros.load(Ordering::Acquire))
    }
}

/// The one source of randomness of a process.
pub trait Randomness: Send + Sync {
    /// The next 64 random bits.
    fn bits(&self) -> u64;

    /// The next draw for a decision.
    fn draw(&self) -> Draw {
        Draw::from_bits(self.bits())
    }
}

/// Randomness that the operating system seeds: a keyed hash of a counter, so that what was handed out
/// does not tell what comes next.
#[derive(Debug, Default)]
pub struct SystemRandomness {
    key: RandomState,
    count: AtomicU64,
}

impl Randomness for SystemRandomness {
    fn bits(&self) -> u64 {
        self.key.hash_one(self.count.fetch_add(1, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
