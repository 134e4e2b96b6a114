//! Moments as timestamps.

use redrive_policy::Moment;

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A moment as RFC 3339 has it, in UTC, to the microsecond.
pub(super) fn rfc3339(at: Moment) -> String {
    let (days, micros) = (at.micros().div_euclid(MICROS_PER_DAY), at.micros().rem_euclid(MICROS_PER_DAY));
    let (year, month, day) = date(days);
    let seconds = micros / 1_000_000;
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:06}Z", micros % 1_000_000)
}

/// The date that is so many days after 1970-01-01. Years are counted from March, so that the day which
/// only some of them have is their last.
fn date(days: i64) -> (i64, i64, i64) {
    const DAYS_PER_ERA: i64 = 146_097;
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (400 * era + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_the_calendar() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (1_770_976_800_000_001, "2026-02-13T10:00:00.000001Z"),
        ] {
            assert_eq!(rfc3339(Moment::from_micros(micros)), text);
        }
    }
}
