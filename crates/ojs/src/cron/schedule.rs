//! When a schedule is due: the slots of an expression in a time zone.
//!
//! Slots are times of the wall clock of the zone. When clocks are set forward, the times that are passed over do not
//! exist, and no slot is there. When clocks are set back, times come twice: a slot is there at the first of them only,
//! unless the expression has every hour. What runs every hour, or more often, goes on in the repeated hour too.

use super::expression::Expression;
use super::zone;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use redrive_policy::{Moment, Problem};

/// An expression in a time zone.
#[derive(Clone, Debug)]
pub struct Schedule {
    expression: Expression,
    zone: TimeZone,
}

/// The calendar repeats itself after 400 years: what is not due until then never is.
const HORIZON_S: i64 = 146_097 * 86_400;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

impl Schedule {
    /// Reads an expression and the name of a time zone.
    ///
    /// # Errors
    /// Everything that is wrong with the expression, and with the zone.
    pub fn read(expression: &str, zone: &str) -> Result<Self, (Vec<Problem>, Vec<Problem>)> {
        match (Expression::read(expression), zone::find(zone)) {
            (Ok(expression), Ok(zone)) => Ok(Self { expression, zone }),
            (expression, zone) => Err((expression.err().unwrap_or_default(), zone.err().into_iter().collect())),
        }
    }

    /// The first slot after a moment. An interval is counted from `anchor`. Absent where the schedule is never due
    /// again.
    #[must_use]
    pub fn next(&self, after: Moment, anchor: Moment) -> Option<Moment> {
        match &self.expression {
            Expression::Every(interval_ms) => {
                let interval = interval_ms * 1_000;
                let passed = after.micros().saturating_sub(anchor.micros()).max(0) / interval;
                let next = anchor.micros().checked_add((passed + 1).checked_mul(interval)?)?;
                Some(Moment::from_micros(next))
            }
            Expression::Calendar(_) => {
                let seconds = self.next_second(after.micros().div_euclid(1_000_000))?;
                Some(Moment::from_micros(seconds.checked_mul(1_000_000)?))
            }
        }
    }

    /// The last slot from `first`, which is a slot, to `until`.
    #[must_use]
    pub fn last(&self, first: Moment, until: Moment, anchor: Moment) -> Moment {
        // Halved until no slot is left between the two: years of missed seconds take some dozen steps.
        let (mut slot, mut beyond) = (first, until);
        while slot < beyond {
            let middle = slot.micros() + (beyond.micros() - slot.micros()) / 2;
            match self.next(Moment::from_micros(middle), anchor) {
                Some(next) if next <= until => slot = next,
                _ => beyond = Moment::from_micros(middle),
            }
        }
        slot
    }

    /// The first slot after a second, where the expression has a calendar. The zone has one offset from UTC between
    /// two changes, so that each such time is searched as if there were no others.
    fn next_second(&self, after: i64) -> Option<i64> {
        let Expression::Calendar(calendar) = &self.expression else { return None };
        let horizon = after.checked_add(HORIZON_S)?;
        let mut from = after + 1;
        while from < horizon {
            let at = Timestamp::from_second(from).ok()?;
            let end = self.zone.following(at).next().map_or(horizon, |change| change.timestamp().as_second());
            let offset = self.offset(from)?;
            if !calendar.has_every_hour() {
                from = from.max(self.repeated_until(from, offset)?);
            }
            if from < end {
                let civil = |second: i64| EPOCH.checked_add(SignedDuration::from_secs(second + offset)).ok();
                if let Some(found) = calendar.first(civil(from)?, civil(end - 1)?) {
                    return Some(found.duration_since(EPOCH).as_secs() - offset);
                }
            }
            from = end;
        }
        None
    }

    /// Until when the times after the last change of the offset are those from before it once more.
    fn repeated_until(&self, at: i64, offset: i64) -> Option<i64> {
        let Some(change) = self.zone.preceding(Timestamp::from_second(at + 1).ok()?).next() else { return Some(at) };
        let change = change.timestamp().as_second();
        Some(change + (self.offset(change - 1)? - offset))
    }

    fn offset(&self, at: i64) -> Option<i64> {
        Some(self.zone.to_offset(Timestamp::from_second(at).ok()?).seconds().into())
    }
}
