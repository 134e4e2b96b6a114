//! Moments as text: RFC 3339 timestamps.

use jiff::civil::DateTime;
use redrive_policy::Moment;

const SECOND: i64 = 1_000_000;
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

const DAY: i64 = 86_400 * SECOND;
/// The first of January of the year 0, and of the year 10000, in days from the first of January 1970.
const DAYS: std::ops::Range<i64> = -719_528..2_932_897;

/// Writes a moment in UTC, to the microsecond. Moments outside of the years 0 to 9999 are written as
/// the nearest one inside.
///
/// Every answer about a job has several of them, so that the digits are placed here, without a printer for all forms.
pub fn push_rfc3339(out: &mut Vec<u8>, at: Moment) {
    let micros = at.micros().clamp(DAYS.start * DAY, DAYS.end * DAY - 1);
    let (year, month, day) = date(micros.div_euclid(DAY));
    let within = micros.rem_euclid(DAY);
    let (seconds, fraction) = (within / SECOND, within % SECOND);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    for (place, number) in [
        (0, year / 100),
        (2, year % 100),
        (5, month),
        (8, day),
        (11, seconds / 3_600),
        (14, seconds / 60 % 60),
        (17, seconds % 60),
        (20, fraction / 10_000),
        (22, fraction / 100 % 100),
        (24, fraction % 100),
    ] {
        text[place] += (number / 10) as u8;
        text[place + 1] += (number % 10) as u8;
    }
    out.extend_from_slice(&text);
}

/// The year, the month and the day that are so many days after the first of January 1970, none before the year 0.
/// Years are counted from March here, so that a leap day is the last day of its year.
const fn date(days: i64) -> (i64, i64, i64) {
    const FOUR_CENTURIES: i64 = 146_097;
    // From the first of March of the year -400, which begins four centuries.
    let days = days + 719_468 + FOUR_CENTURIES;
    let (era, day) = (days / FOUR_CENTURIES, days % FOUR_CENTURIES);
    // Every fourth year is longer by a day, but not every hundredth.
    let year = (day - day / 1_460 + day / 36_524 - day / (FOUR_CENTURIES - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Five months have 153 days, from March on and from August on.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later - 400, month, day)
}

/// A moment as a timestamp, where it is not written into a buffer.
#[must_use]
pub fn rfc3339(at: Moment) -> String {
    let mut out = Vec::with_capacity(27);
    push_rfc3339(&mut out, at);
    String::from_utf8(out).unwrap_or_default()
}

/// Reads a timestamp as RFC 3339 has it. What is finer than a microsecond is cut off, and a leap second is
/// the first second after it.
///
/// The parser of `jiff` accepts more forms than RFC 3339 has, so that the form is checked first. Fraction and
/// offset are read here: `jiff` refuses more than nine digits, and all moments from 9999-12-30T22:00:01Z on.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Moment> {
    const FORM: &str = "0000-00-00T00:00:00";
    let (date_time, rest) = text.split_at_checked(FORM.len())?;
    if !has_form(date_time, FORM) {
        return None;
    }
    let (micros, zone) = fraction(rest)?;
    let offset = zone_offset(zone)?;
    let at: DateTime = date_time.parse().ok()?;
    // It was read as second 59.
    let leap_second = i64::from(date_time.ends_with("60"));
    let seconds = at.duration_since(EPOCH).as_secs() + leap_second - offset;
    Some(Moment::from_micros(seconds * SECOND + micros))
}

/// Whether a text looks like another one, in which `0` is any digit, `+` any sign, and `T` any separator of
/// date and time.
fn has_form(text: &str, form: &str) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form.bytes()).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            b'+' => matches!(byte, b'+' | b'-'),
            b'T' => matches!(byte, b'T' | b't' | b' '),
            _ => byte == form,
        })
}

/// The microseconds of an optional fraction, and what follows it.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = rest.find(|letter: char| !letter.is_ascii_digit())?;
    let (digits, zone) = rest.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let micros = (0..6).fold(0, |sum, place| {
        let digit = digits.as_bytes().get(place).map_or(0, |digit| i64::from(digit - b'0'));
        sum * 10 + digit
    });
    Some((micros, zone))
}

/// The offset from UTC in seconds.
fn zone_offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    if !has_form(text, "+00:00") {
        return None;
    }
    let (hours, minutes): (i64, i64) = (text[1..3].parse().ok()?, text[4..].parse().ok()?);
    let sign = if text.starts_with('-') { -1 } else { 1 };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_and_reads_back() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00.000000Z"),
            (4_102_444_799_123_456, "2099-12-31T23:59:59.123456Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(rfc3339(Moment::from_micros(micros)), text);
            assert_eq!(parse_rfc3339(text), Some(Moment::from_micros(micros)));
        }
        assert_eq!(rfc3339(Moment::from_micros(i64::MAX)), "9999-12-31T23:59:59.999999Z");
    }

    const RANGE: std::ops::Range<i64> = DAYS.start * DAY..DAYS.end * DAY;

    #[test]
    fn every_day_of_eight_centuries_comes_back() {
        for days in -146_097..146_097 {
            let midnight = Moment::from_micros(days * DAY);
            assert_eq!(parse_rfc3339(&rfc3339(midnight)), Some(midnight));
        }
    }

    #[test]
    fn moments_of_all_years_come_back() {
        for micros in RANGE.step_by(3_155_692_597_471) {
            let text = rfc3339(Moment::from_micros(micros));
            assert_eq!(parse_rfc3339(&text), Some(Moment::from_micros(micros)), "{text}");
        }
    }

    /// Against a calendar that is counted here.
    #[test]
    fn every_month_has_its_first_and_its_last_day() {
        let mut start = RANGE.start;
        for year in 0..10_000 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let months = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, days) in (1..).zip(months) {
                let end = start + days * DAY;
                for (micros, day, time) in [(start, 1, "00:00:00.000000"), (end - 1, days, "23:59:59.999999")] {
                    let text = format!("{year:04}-{month:02}-{day:02}T{time}Z");
                    assert_eq!(rfc3339(Moment::from_micros(micros)), text);
                    assert_eq!(parse_rfc3339(&text), Some(Moment::from_micros(micros)), "{text}");
                }
                let no_day = format!("{year:04}-{month:02}-{:02}T00:00:00Z", days + 1);
                assert_eq!(parse_rfc3339(&no_day), None, "{no_day}");
                start = end;
            }
        }
        assert_eq!(start, RANGE.end);
    }

    #[test]
    fn what_is_outside_of_the_range_is_written_as_its_ends() {
        for (micros, text) in [
            (RANGE.start - 1, "0000-01-01T00:00:00.000000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000000Z"),
            (RANGE.end, "9999-12-31T23:59:59.999999Z"),
            (i64::MAX, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(rfc3339(Moment::from_micros(micros)), text);
        }
    }

    #[test]
    fn zones_and_fractions_are_read() {
        let noon = parse_rfc3339("2026-02-13T12:00:00Z");
        for text in ["2026-02-13T14:00:00+02:00", "2026-02-13t06:30:00.0-05:30", "2026-02-13 12:00:00z"] {
            assert_eq!(parse_rfc3339(text), noon, "{text}");
        }
        let micros = parse_rfc3339("2026-02-13T12:00:00.1234567Z").unwrap().micros();
        assert_eq!(micros % SECOND, 123_456);
    }

    #[test]
    fn what_is_no_timestamp_is_refused() {
        for text in [
            "",
            "2026-02-13",
            "2026-02-13T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-02-13T24:00:00Z",
            "2026-02-13T12:00:00.Z",
            "2026-02-13T12:00:00+2:00",
            "2026-02-13T12:00:00Z ",
            "+026-02-13T12:00:00Z",
            "2026-02-13T1é:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn forms_that_only_jiff_accepts_are_refused() {
        for text in [
            "2026-02-13T12:00Z",
            "20260213T120000Z",
            "2026-02-13T120000Z",
            "20260213T12:00:00Z",
            "+002026-02-13T12:00:00Z",
            "2026-02-13T12:00:00,5Z",
            "2026-02-13T12:00:00+02",
            "2026-02-13T12:00:00+0200",
            "2026-02-13T12:00:00+02:00:00",
            "2026-02-13T12:00:00+24:00",
            "2026-02-13T12:00:00+25:59",
            "2026-02-13T12:00:00Z[UTC]",
            "2026-02-13T12:00:00+02:00[+02:00]",
            "2026-02-13T12:00:00Z[u-ca=iso8601]",
        ] {
            assert!(text.parse::<jiff::Timestamp>().is_ok(), "{text}");
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn what_jiff_refuses_or_reads_otherwise_is_read() {
        for (text, utc) in [
            ("2026-02-13T12:00:00.1234567899Z", "2026-02-13T12:00:00.123456Z"),
            ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000Z"),
            ("2017-01-01T01:59:60.25+02:00", "2017-01-01T00:00:00.250000Z"),
            ("1969-12-31T23:59:59.0000019Z", "1969-12-31T23:59:59.000001Z"),
        ] {
            assert_eq!(parse_rfc3339(text).map(rfc3339).as_deref(), Some(utc), "{text}");
        }
        // In UTC these are beyond what is written, and moments nevertheless.
        let micros = |text| parse_rfc3339(text).map(Moment::micros);
        let two_hours = 7_200 * SECOND;
        assert_eq!(micros("9999-12-31T23:00:00-02:00"), micros("9999-12-31T23:00:00Z").map(|at| at + two_hours));
        assert_eq!(micros("0000-01-01T00:00:00+02:00"), micros("0000-01-01T00:00:00Z").map(|at| at - two_hours));
    }
}
