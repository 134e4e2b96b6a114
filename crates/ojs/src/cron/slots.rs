//! Which slot of a schedule is next, and which have been dealt with: each of them once.

use super::Schedule;
use redrive_policy::Moment;
use serde::{Deserialize, Serialize};

/// A clock that was set back by more than this had been wrong. Slots that it passed over then are due again.
const WRONG_CLOCK_US: i64 = 86_400_000_000;

/// What a run remembers of a schedule. Times are microseconds since 1970, by the wall clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slots {
    /// From when intervals are counted.
    anchor: i64,
    /// The next slot; absent where the schedule is disabled, or never due again.
    next: Option<i64>,
    /// The last slot that has been dealt with, in one way or another.
    last_slot: Option<i64>,
}

impl Slots {
    /// The next slot.
    #[must_use]
    pub fn next(&self) -> Option<Moment> {
        self.next.map(Moment::from_micros)
    }

    /// Counts intervals from now on.
    pub const fn count_from(&mut self, now: Moment) {
        self.anchor = now.micros();
    }

    /// No slot is next until one is planned.
    pub const fn clear(&mut self) {
        self.next = None;
    }

    /// Finds the next slot: after now, and after all that have been dealt with.
    pub fn plan(&mut self, schedule: &Schedule, now: Moment) {
        let after = now.micros().max(self.last_slot.unwrap_or(i64::MIN));
        self.next = schedule.next(Moment::from_micros(after), self.anchor()).map(Moment::micros);
    }

    /// Takes the slot that is due, and plans the one after it. Of several that were missed, the last is taken.
    pub fn take(&mut self, schedule: &Schedule, now: Moment) -> Option<Moment> {
        let first = self.next().filter(|next| *next <= now)?;
        let slot = schedule.last(first, now, self.anchor());
        self.last_slot = Some(slot.micros());
        self.plan(schedule, now);
        Some(slot)
    }

    /// The wall clock was set. Where slots were passed over, the next one is due now; where it was set back, those that
    /// have been dealt with are not due again, unless the clock had been wrong.
    pub fn clock_stepped(&mut self, now: Moment) {
        let wrong = |at: i64| at.saturating_sub(now.micros()) > WRONG_CLOCK_US;
        if self.last_slot.is_some_and(wrong) {
            self.last_slot = None;
        }
        if wrong(self.anchor) {
            self.anchor = now.micros();
        }
    }

    /// From when intervals are counted: a whole millisecond, as the numbers of slots are.
    const fn anchor(&self) -> Moment {
        Moment::from_micros(self.anchor - self.anchor.rem_euclid(1_000))
    }
}
