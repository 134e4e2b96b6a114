//! Moments as text: RFC 3339 timestamps, and the dates of HTTP.

use redrive_policy::Moment;

const SECOND: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Writes a moment in UTC, to the microsecond. Moments outside of the years 0 to 9999 are written as
/// the nearest one inside.
pub fn push_rfc3339(out: &mut Vec<u8>, at: Moment) {
    const FIRST: i64 = -62_167_219_200 * SECOND;
    const LAST: i64 = 253_402_300_800 * SECOND - 1;
    let micros = at.micros().clamp(FIRST, LAST);
    let seconds = micros.div_euclid(SECOND);
    let (year, month, day) = civil(seconds.div_euclid(DAY_SECONDS));
    let second_of_day = seconds.rem_euclid(DAY_SECONDS);
    push_padded(out, year, 4);
    for (lead, number, width) in [
        (b'-', month, 2),
        (b'-', day, 2),
        (b'T', second_of_day / 3_600, 2),
        (b':', second_of_day / 60 % 60, 2),
        (b':', second_of_day % 60, 2),
        (b'.', micros.rem_euclid(SECOND), 6),
    ] {
        out.push(lead);
        push_padded(out, number, width);
    }
    out.push(b'Z');
}

/// A moment as a timestamp, where it is not written into a buffer.
#[must_use]
pub fn rfc3339(at: Moment) -> String {
    let mut out = Vec::with_capacity(27);
    push_rfc3339(&mut out, at);
    String::from_utf8(out).unwrap_or_default()
}

fn push_padded(out: &mut Vec<u8>, mut number: i64, width: usize) {
    let start = out.len();
    out.resize(start + width, b'0');
    for place in out[start..].iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Reads a timestamp as RFC 3339 has it. What is finer than a microsecond is cut off.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<Moment> {
    let bytes = text.as_bytes();
    let separated = bytes.get(4) == Some(&b'-')
        && bytes.get(7) == Some(&b'-')
        && matches!(bytes.get(10), Some(b'T' | b't' | b' '))
        && bytes.get(13) == Some(&b':')
        && bytes.get(16) == Some(&b':');
    if !separated {
        return None;
    }
    let (year, month, day) = (digits(text.get(..4)?)?, digits(text.get(5..7)?)?, digits(text.get(8..10)?)?);
    let time = seconds_of_day(text.get(11..19)?)?;
    let (micros, zone) = fraction(text.get(19..)?)?;
    let offset = zone_offset(zone)?;
    let days = days_of(year, month, day)?;
    let seconds = days * DAY_SECONDS + time - offset;
    Some(Moment::from_micros(seconds * SECOND + micros))
}

/// Reads a date as HTTP prefers it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn parse_http_date(text: &str) -> Option<Moment> {
    let rest = text.split_once(", ")?.1.strip_suffix(" GMT")?;
    let mut words = rest.split(' ');
    let day = digits(words.next()?)?;
    let name = words.next()?;
    let month = MONTHS.iter().position(|month| *month == name)? as i64 + 1;
    let year = digits(words.next()?.get(..4)?)?;
    let time = seconds_of_day(words.next()?)?;
    if words.next().is_some() {
        return None;
    }
    Some(Moment::from_micros((days_of(year, month, day)? * DAY_SECONDS + time) * SECOND))
}

fn digits(text: &str) -> Option<i64> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| text.parse().ok()).flatten()
}

/// `hh:mm:ss`; a leap second is the first second after it.
fn seconds_of_day(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (digits(parts.next()?)?, digits(parts.next()?)?, digits(parts.next()?)?);
    let valid = text.len() == 8 && parts.next().is_none() && hours < 24 && minutes < 60 && seconds <= 60;
    valid.then_some(hours * 3_600 + minutes * 60 + seconds)
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
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let valid = hours.len() == 2 && minutes.len() == 2;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    (valid && hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// The days from the Unix epoch to a date that exists. Years begin in March here, so that the leap
/// day is the last one of its year.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || day < 1 {
        return None;
    }
    let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = march_year.div_euclid(400);
    let year_of_era = march_year.rem_euclid(400);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    // The way back tells a day that the month does not have.
    (civil(days) == (year, month, day)).then_some(days)
}

/// Year, month and day of a number of days since the Unix epoch.
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
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

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for days in -146_097..146_097 {
            let (year, month, day) = civil(days);
            assert_eq!(days_of(year, month, day), Some(days));
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
    fn dates_of_http_are_read() {
        let expected = parse_rfc3339("1994-11-06T08:49:37Z");
        assert_eq!(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), expected);
        for text in ["06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 nov 1994 08:49:37 GMT"] {
            assert_eq!(parse_http_date(text), None, "{text}");
        }
    }
}
