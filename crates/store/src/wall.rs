//! The wall clock beside the time that stores go by.
//!
//! The times of jobs are elapsed time: they are compared with each other and with a clock that never steps. The
//! wall clock tells people what time it is, and may be set at any moment.

use redrive_policy::Moment;

/// How the wall clock stands to the time of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wall {
    /// How far it is ahead, in microseconds.
    pub ahead_us: i64,
    /// How often it was seen to step since the start.
    pub steps: u64,
    /// The last of these steps.
    pub last: Option<Step>,
}

/// A step of the wall clock: somebody set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When that was noticed, by the time of the store.
    pub at: Moment,
    /// By how much it went forward, in microseconds; back, where negative.
    pub by_us: i64,
}

/// A difference beyond this is a step, in microseconds. What is less is how clocks drift, and is followed.
pub const STEP_US: i64 = 1_000_000;

impl Wall {
    /// Takes note that the wall clock went forward by so much, or back.
    pub fn stepped(&mut self, step: Step) {
        self.ahead_us = self.ahead_us.saturating_add(step.by_us);
        self.steps += 1;
        self.last = Some(step);
    }
}

/// The microseconds that have passed since some moment before the process began. The time in which the machine
/// is suspended counts; nobody can set it.
#[must_use]
pub fn elapsed_us() -> i64 {
    #[cfg(target_os = "linux")]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let time = rustix::time::clock_gettime(CLOCK);
    time.tv_sec.saturating_mul(1_000_000).saturating_add(time.tv_nsec / 1_000)
}
