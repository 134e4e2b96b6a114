//! Three notions of time, and the clocks that keep them apart.
//!
//! **Elapsed time** is what stores go by: every time in a job is a [`Moment`] of it, and leases, delays and retention
//! are measured in it. It starts out equal to the wall clock and then only counts on, so that it never jumps;
//! [`Clock::now`] tells it.
//!
//! **Wall time** is what people read: the operating system's clock or the database's, which may be set at any
//! moment. It is elapsed time plus [`Wall::ahead_us`]. The engine converts at its boundary: callers name moments in
//! wall time, and are answered in wall time.
//!
//! A **step** is a moment in which the wall clock was set: it differs from elapsed time by more than a second from
//! what it was. A step moves the wall clock and no lease, no delay, no retention. Smaller differences are drift, which
//! a clock corrects slowly.
//!
//! No verb of a store reads a clock; the caller passes `now`. [`SystemClock`] is for one process on one machine, the
//! `DatabaseClock` of the PostgreSQL store is for all nodes on one database, and [`ManualClock`] is for tests.

mod manual;
mod system;

pub use manual::ManualClock;
pub use system::SystemClock;

use redrive_policy::Moment;

/// A clock. Its time is in microseconds since the Unix epoch, or as near to that as a clock can be that is never set.
pub trait Clock: Send + Sync {
    /// The elapsed time. It never steps.
    fn now(&self) -> Moment;

    /// How the wall clock differs from it. By default, there is no difference.
    fn wall(&self) -> Wall {
        Wall::default()
    }

    /// Compares it with the wall clock, and answers a step that was not reported yet.
    fn check_wall(&self) -> Option<Step> {
        None
    }

    /// Saves what the next process has to know, before this one ends.
    fn save(&self) {}
}

/// How the wall clock differs from elapsed time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wall {
    /// How far it is ahead, in microseconds.
    pub ahead_us: i64,
    /// How many steps were seen since the start.
    pub steps: u64,
    /// The last of these steps.
    pub last: Option<Step>,
}

/// A step of the wall clock: it was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When the step was noticed, in elapsed time.
    pub at: Moment,
    /// By how much the wall clock went forward, in microseconds; back, where negative.
    pub by_us: i64,
}

/// A difference beyond this is a step, in microseconds.
pub(crate) const STEP_US: i64 = 1_000_000;

impl Wall {
    /// Records a step.
    pub(crate) fn stepped(&mut self, step: Step) {
        self.ahead_us = self.ahead_us.saturating_add(step.by_us);
        self.steps += 1;
        self.last = Some(step);
    }
}

/// The microseconds that have passed since some moment before the process began. The time during which the machine
/// is suspended counts. No setting of the wall clock changes it.
pub(crate) fn elapsed_us() -> i64 {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
}
