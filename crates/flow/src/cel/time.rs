//! Timestamps and durations of expressions, in nanoseconds.

use super::eval::{Fault, fault};
use jiff::civil::{Date, DateTime};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use redrive_policy::Moment;
use redrive_policy::dialect::signed_iso_duration;

const SECOND: i128 = 1_000_000_000;
/// From the year 1 to the year 9999, as in CEL.
const TIMESTAMPS: std::ops::Range<i128> = -62_135_596_800 * SECOND..253_402_300_800 * SECOND;
/// About ten thousand years.
const LONGEST: i128 = 315_576_000_000 * SECOND;

pub(crate) fn timestamp_in_range(nanos: i128) -> Result<i128, Fault> {
    if TIMESTAMPS.contains(&nanos) { Ok(nanos) } else { fault("the timestamp is not within the years 1 to 9999") }
}

pub(crate) fn in_range(nanos: i128) -> Result<i128, Fault> {
    if nanos.abs() <= LONGEST { Ok(nanos) } else { fault("the duration is longer than ten thousand years") }
}

/// A moment as expressions have it.
pub(crate) const fn of_moment(at: Moment) -> i128 {
    at.micros() as i128 * 1_000
}

/// A moment as an RFC 3339 timestamp.
pub(crate) fn shown_moment(at: Moment) -> String {
    shown_timestamp(of_moment(at))
}

/// Reads an RFC 3339 timestamp.
pub(crate) fn parse_timestamp(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let at = |place: usize, allowed: &[u8]| bytes.get(place).is_some_and(|byte| allowed.contains(byte));
    let zone = at(bytes.len().wrapping_sub(1), b"Zz")
        || (bytes.len() > 6 && at(bytes.len() - 6, b"+-") && at(bytes.len() - 3, b":"));
    let shape = at(4, b"-") && at(7, b"-") && at(10, b"Tt") && at(13, b":") && at(16, b":") && zone;
    if !shape || bytes.contains(&b'[') || bytes.contains(&b',') {
        return None;
    }
    let parsed: Timestamp = text.parse().ok()?;
    Some(parsed.as_nanosecond()).filter(|nanos| TIMESTAMPS.contains(nanos))
}

/// A timestamp as CEL's `string()` writes it.
pub(crate) fn shown_timestamp(nanos: i128) -> String {
    Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::UNIX_EPOCH).to_string()
}

/// Reads what `duration()` takes: `1h30m`, `-1.5s`, `250ms`.
pub(crate) fn parse_go(text: &str) -> Option<i128> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut sum: i128 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let unit: i128 = match unit {
            "h" => 3_600 * SECOND,
            "m" => 60 * SECOND,
            "s" => SECOND,
            "ms" => 1_000_000,
            "us" | "µs" => 1_000,
            "ns" => 1,
            _ => return None,
        };
        sum = sum.checked_add(decimal(number, unit)?)?;
        rest = tail;
    }
    Some(sign * sum).filter(|nanos| nanos.abs() <= LONGEST)
}

/// A decimal number of units, exactly, cut down to whole nanoseconds.
fn decimal(text: &str, unit: i128) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if (whole.is_empty() && fraction.is_empty()) || whole.len() > 15 || fraction.len() > 18 || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    Some(digits(whole)? * unit + digits(fraction)? * unit / scale)
}

/// Seconds, as CEL's `string()` writes a duration: `300s`, `-1.5s`.
pub(crate) fn shown_duration(nanos: i128) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", -nanos) } else { ("", nanos) };
    format!("{sign}{}s", seconds(nanos))
}

/// Seconds with the digits that are needed.
fn seconds(nanos: i128) -> String {
    let fraction = format!("{:09}", nanos % SECOND);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{}{point}{fraction}", nanos / SECOND)
}

/// An ISO 8601 duration with hours, minutes and seconds: `PT26H`, `-PT0.5S`, `PT0S`.
pub(crate) fn to_iso(nanos: i128) -> String {
    let (sign, nanos) = if nanos < 0 { ("-", -nanos) } else { ("", nanos) };
    let (hours, minutes, rest) = (nanos / (3_600 * SECOND), nanos / (60 * SECOND) % 60, nanos % (60 * SECOND));
    let mut text = format!("{sign}PT");
    if hours > 0 {
        text.push_str(&format!("{hours}H"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}M"));
    }
    if rest > 0 || nanos == 0 {
        text.push_str(&format!("{}S", seconds(rest)));
    }
    text
}

/// Reads an ISO 8601 duration, as the fields of MWL take it, with its sign.
pub(crate) fn parse_iso(text: &str) -> Option<i128> {
    let (sign, positive) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    if positive.starts_with('-') {
        return None;
    }
    let ms = signed_iso_duration(positive)?.span.ms();
    Some((sign * ms * 1e6).round() as i128)
}

/// A part of a timestamp, in UTC or in a time zone.
pub(crate) fn part(nanos: i128, zone: Option<&str>, name: &str) -> Result<i64, Fault> {
    let at = Timestamp::from_nanosecond(nanos).or_else(|_| fault("the timestamp is out of range"))?;
    let zone = match zone {
        None => TimeZone::UTC,
        Some(name) => match zone_named(name) {
            Some(zone) => zone,
            None => {
                return fault(format!("{name:?} is no time zone such as Europe/Berlin, and no offset such as +02:00"));
            }
        },
    };
    let local: DateTime = Zoned::new(at, zone).datetime();
    let date: Date = local.date();
    Ok(i64::from(match name {
        "getFullYear" => date.year(),
        "getMonth" => i16::from(date.month()) - 1,
        "getDate" => i16::from(date.day()),
        "getDayOfMonth" => i16::from(date.day()) - 1,
        "getDayOfWeek" => i16::from(date.weekday().to_sunday_zero_offset()),
        "getDayOfYear" => date.day_of_year() - 1,
        "getHours" => i16::from(local.hour()),
        "getMinutes" => i16::from(local.minute()),
        "getSeconds" => i16::from(local.second()),
        _ => local.millisecond(),
    }))
}

/// A zone by its name, or by its offset: `+02:00`, `-08:00`, `02:00`.
fn zone_named(name: &str) -> Option<TimeZone> {
    let (sign, digits) = match name.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, name.strip_prefix('+').unwrap_or(name)),
    };
    if let Some((hours, minutes)) = digits.split_once(':') {
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        return Some(TimeZone::fixed(Offset::from_seconds(sign * (hours * 3_600 + minutes * 60)).ok()?));
    }
    TimeZone::get(name).ok()
}

/// A part of a duration: whole hours, minutes, seconds or milliseconds of all of it.
pub(crate) fn part_of_duration(nanos: i128, name: &str) -> Option<i64> {
    let unit = match name {
        "getHours" => 3_600 * SECOND,
        "getMinutes" => 60 * SECOND,
        "getSeconds" => SECOND,
        "getMilliseconds" => SECOND / 1_000,
        _ => return None,
    };
    i64::try_from(nanos / unit).ok()
}
