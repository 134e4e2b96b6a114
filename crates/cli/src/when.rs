//! Times on the command line: RFC 3339, and relative to now.

use redrive_ojs::time;
use redrive_policy::dialect::{go_duration, iso_duration};
use redrive_policy::{Moment, Span};
use std::time::{SystemTime, UNIX_EPOCH};

/// The time now, in milliseconds since the Unix epoch.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The time now.
pub(crate) fn now() -> Moment {
    Moment::from_micros(now_ms().saturating_mul(1_000))
}

/// A length of time as people write it: `90s`, `10m`, `1h30m`, or ISO 8601, `PT5M`.
pub(crate) fn duration(text: &str) -> Result<Span, String> {
    // Go's notation has no days, but users expect them.
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u16>().ok());
    let days = days.map(|days| Span::from_secs(u32::from(days) * 86_400));
    days.or_else(|| go_duration(text)).or_else(|| iso_duration(text).map(|parsed| parsed.span)).ok_or_else(|| {
        format!("\"{text}\" is not a duration; allowed is 90s, 10m, 1h30m, 7d, or ISO 8601 such as PT5M")
    })
}

/// A length of time above zero.
pub(crate) fn above_zero(text: &str) -> Result<Span, String> {
    let span = duration(text)?;
    if span.is_zero() {
        return Err(format!("\"{text}\" is zero; allowed is a longer time, such as 90s, 10m, 1h30m, 7d or PT5M"));
    }
    Ok(span)
}

/// A time as RFC 3339, from RFC 3339 or from a length of time ago.
pub(crate) fn past(text: &str) -> Result<String, String> {
    if parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let ago = duration(text).map_err(|_| {
        format!("\"{text}\" is neither a time such as 2026-03-01T12:00:00Z nor a time ago such as 90s, 2h, 7d")
    })?;
    Ok(shown(now_ms() - ago.ms() as i64))
}

/// A future time as the server takes it: RFC 3339, or relative to the clock of the server.
pub(crate) fn future(text: &str) -> Result<String, String> {
    if parse(text).is_some() {
        return Ok(text.to_owned());
    }
    let ahead = duration(text).map_err(|_| {
        format!("\"{text}\" is neither a time such as 2026-03-01T12:00:00Z nor a time from now such as 90s, 2h, 7d")
    })?;
    Ok(format!("+PT{}S", ahead.secs()))
}

/// A point in time in RFC 3339, checked, and returned as it was written.
pub(crate) fn rfc3339(text: &str) -> Result<String, String> {
    let known = parse(text).map(|_| text.to_owned());
    known.ok_or_else(|| format!("\"{text}\" is not a time; allowed is RFC 3339 such as 2026-03-01T12:00:00Z"))
}

/// Milliseconds since the Unix epoch as RFC 3339 in UTC.
pub(crate) fn shown(ms: i64) -> String {
    time::rfc3339(Moment::from_micros(ms.saturating_mul(1_000)))
}

/// RFC 3339 to milliseconds since the Unix epoch; finer digits are cut off.
pub(crate) fn parse(text: &str) -> Option<i64> {
    time::parse_rfc3339(text).map(|at| at.micros().div_euclid(1_000))
}

/// The time between two times in RFC 3339; zero if the clock went back in between.
pub(crate) fn between(from: Option<&str>, to: Option<&str>) -> Option<Span> {
    let [from, to] = [from?, to?].map(time::parse_rfc3339);
    Some(to?.since(from?))
}

/// A time for people, relative to now: `3 min ago`, `in 20 s`; empty if there is none.
pub(crate) fn relative(text: Option<&str>, now_ms: i64) -> String {
    let Some(text) = text else { return String::new() };
    let Some(at) = parse(text) else { return text.to_owned() };
    let apart = Span::saturating_ms((at - now_ms).abs() as f64);
    // Milliseconds do not matter for something that was minutes ago.
    let apart = if apart.secs() < 1.0 { apart } else { Span::saturating_ms((apart.ms() / 1e3).floor() * 1e3) };
    if at > now_ms { format!("in {apart}") } else { format!("{apart} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_and_future_times_are_relative_to_now() {
        let now = parse("2026-01-01T00:00:00Z").expect("valid");
        assert_eq!(relative(Some("2026-01-01T00:01:30Z"), now), "in 1 min 30 s");
        assert_eq!(relative(Some("2025-12-31T22:00:00Z"), now), "2 h ago");
        assert_eq!(relative(None, now), "");
        assert_eq!(duration("7d"), Ok(Span::from_secs(7 * 86_400)));
        assert!(duration("7 days").is_err());
        assert_eq!(above_zero("1ms"), Ok(Span::saturating_ms(1.0)));
        assert!(above_zero("0s").is_err() && above_zero("PT0S").is_err() && above_zero("0d").is_err());
        assert_eq!(past("2026-01-01T00:00:00Z").as_deref(), Ok("2026-01-01T00:00:00Z"));
        let two_hours_ago = past("2h").ok().and_then(|text| parse(&text)).expect("a time");
        assert!((7_200_000..7_260_000).contains(&(now_ms() - two_hours_ago)), "{two_hours_ago}");
        assert!(past("yesterday").is_err() && rfc3339("2026-02-30T00:00:00Z").is_err());
    }
}
