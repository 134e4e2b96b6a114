//! Points in time on the command line: RFC 3339 in and out, and how long ago.

use redrive_policy::Span;
use redrive_policy::dialect::{go_duration, iso_duration};
use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: i64 = 86_400_000;

/// The time now, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A length of time as people write it: `90s`, `10m`, `1h30m`, or ISO 8601, `PT5M`.
pub(crate) fn duration(text: &str) -> Result<Span, String> {
    // Days are nothing that Go's notation knows, but what everybody asks for first.
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u16>().ok());
    let days = days.map(|days| Span::from_secs(u32::from(days) * 86_400));
    days.or_else(|| go_duration(text)).or_else(|| iso_duration(text).map(|parsed| parsed.span)).ok_or_else(|| {
        format!("\"{text}\" is not a duration; allowed is 90s, 10m, 1h30m, 7d, or ISO 8601 such as PT5M")
    })
}

/// A point in time, as RFC 3339: written so, or as a length of time that lies back.
pub(crate) fn past(text: &str) -> Result<String, String> {
    if parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let ago = duration(text).map_err(|_| {
        format!("\"{text}\" is neither a time such as 2026-03-01T12:00:00Z nor a time ago such as 90s, 2h, 7d")
    })?;
    Ok(shown(now_ms() - ago.ms() as i64))
}

/// A point in time in RFC 3339, checked but kept as it was written.
pub(crate) fn rfc3339(text: &str) -> Result<String, String> {
    let known = parse(text).map(|_| text.to_owned());
    known.ok_or_else(|| format!("\"{text}\" is not a time; allowed is RFC 3339 such as 2026-03-01T12:00:00Z"))
}

/// Milliseconds since the Unix epoch as RFC 3339 in UTC.
pub(crate) fn shown(ms: i64) -> String {
    let (days, in_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = date_of(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1_000 % 60, in_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// RFC 3339 to milliseconds since the Unix epoch; finer digits are cut off.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let digits = |from: usize, count: usize| -> Option<i64> {
        let part = text.get(from..from + count)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let marks = [(4, "-"), (7, "-"), (10, "Tt "), (13, ":"), (16, ":")];
    if !marks.iter().all(|(at, allowed)| bytes.get(*at).is_some_and(|byte| allowed.as_bytes().contains(byte))) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    let days = days_of(year, month, day);
    // The way back tells whether there is such a day: no 30th of February.
    if date_of(days) != (year, month, day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (milli, zone) = fraction(text.get(19..)?)?;
    let offset = minutes_east(zone)?;
    Some(days * DAY_MS + ((hour * 60 + minute - offset) * 60 + second) * 1_000 + milli)
}

/// The milliseconds of a fraction, if there is one, and what follows it.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    let milli = format!("{:0<3}", rest.get(..end).filter(|digits| !digits.is_empty())?);
    Some((milli.get(..3)?.parse().ok()?, rest.get(end..)?))
}

fn minutes_east(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let two = |part: &str| -> Option<i64> { (part.len() == 2).then(|| part.parse::<u8>().ok())?.map(i64::from) };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the leap
/// day is the last of its year.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let from_march = (month + 9) % 12;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + (153 * from_march + 2) / 5 + day
        - 1
        - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    // A year has 365.2425 days: the guess is right or one too high.
    let guess = (days * 400 + 400 * 719_468).div_euclid(146_097);
    let starts = |year: i64| days_of(year, 3, 1);
    let year = if starts(guess) > days { guess - 1 } else { guess };
    let year = if starts(year + 1) <= days { year + 1 } else { year };
    let in_year = days - starts(year);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (if month <= 2 { year + 1 } else { year }, month, day)
}

/// A time for people, seen from now: `3 min ago`, `in 20 s`; empty where there is none.
pub(crate) fn relative(text: Option<&str>, now_ms: i64) -> String {
    let Some(text) = text else { return String::new() };
    let Some(at) = parse(text) else { return text.to_owned() };
    let apart = Span::saturating_ms((at - now_ms).abs() as f64);
    // Nobody reads milliseconds of something that lies minutes back.
    let apart = if apart.secs() < 1.0 { apart } else { Span::saturating_ms((apart.ms() / 1e3).floor() * 1e3) };
    if at > now_ms { format!("in {apart}") } else { format!("{apart} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_out_and_back() {
        for (text, ms) in [
            ("1970-01-01T00:00:00.000Z", 0),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
            ("2026-11-15T20:06:00.250Z", 1_794_773_160_250),
            ("1969-12-31T23:59:59.000Z", -1_000),
        ] {
            assert_eq!(parse(text), Some(ms), "{text}");
            assert_eq!(shown(ms), text);
        }
        let mut day = parse("1600-01-01T00:00:00Z").expect("valid");
        let mut before = (0, 0, 0);
        for _ in 0..400 * 366 {
            assert_eq!(parse(&shown(day)), Some(day));
            let date = date_of(day.div_euclid(DAY_MS));
            assert!(date > before, "{date:?} follows {before:?}");
            (before, day) = (date, day + DAY_MS);
        }
    }

    #[test]
    fn zones_fractions_and_what_is_no_time() {
        assert_eq!(parse("2026-01-01T01:30:00+01:30"), parse("2026-01-01T00:00:00Z"));
        assert_eq!(parse("2025-12-31T19:00:00.5-05:00"), parse("2026-01-01T00:00:00.500Z"));
        assert_eq!(parse("2026-01-01T00:00:00.123456789Z"), parse("2026-01-01T00:00:00.123Z"));
        for wrong in [
            "",
            "2026-01-01",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00ü",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_lies_back_and_ahead_in_words() {
        let now = parse("2026-01-01T00:00:00Z").expect("valid");
        assert_eq!(relative(Some("2026-01-01T00:01:30Z"), now), "in 1 min 30 s");
        assert_eq!(relative(Some("2025-12-31T22:00:00Z"), now), "2 h ago");
        assert_eq!(relative(None, now), "");
        assert_eq!(duration("7d"), Ok(Span::from_secs(7 * 86_400)));
        assert!(duration("7 days").is_err());
    }
}
