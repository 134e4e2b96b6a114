//! The two notations for durations: ISO 8601 (OJS, MWL) and Go's (TaskHarbor).

use crate::Span;

/// What a duration notation says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parsed {
    /// The length, with a day of 24 h, a month of 30 d and a year of 365 d.
    pub span: Span,
    /// True where months or years were named, whose length is a convention.
    pub calendar: bool,
}

/// Parses exactly the pattern of OJS §14: `P[nY][nM][nD][T[nH][nM][n[.n]S]]`, with at least one part.
///
/// A length beyond [`Span::MAX`] saturates. `None` for everything else.
#[must_use]
pub fn iso_duration(text: &str) -> Option<Parsed> {
    const DATE: [(char, f64); 3] = [('Y', 365.0 * DAY), ('M', 30.0 * DAY), ('D', DAY)];
    const TIME: [(char, f64); 3] = [('H', 3_600_000.0), ('M', 60_000.0), ('S', 1_000.0)];
    const DAY: f64 = 86_400_000.0;

    let rest = text.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, Some(time)),
        None if rest.is_empty() => return None,
        None => (rest, None),
    };
    let (date_ms, calendar) = components(date, &DATE)?;
    let (time_ms, _) = components(time.unwrap_or(""), &TIME)?;
    Some(Parsed { span: Span::saturating_ms(date_ms + time_ms), calendar })
}

/// As [`iso_duration`], with what MWL allows beyond it: weeks (RFC 3339, appendix A), and a leading
/// minus, which is legal there and means a wait that is over already.
#[must_use]
pub fn signed_iso_duration(text: &str) -> Option<Parsed> {
    if let Some(positive) = text.strip_prefix('-') {
        return signed_iso_duration(positive)
            .filter(|_| !positive.starts_with('-'))
            .map(|parsed| Parsed { span: Span::ZERO, ..parsed });
    }
    match text.strip_prefix('P').and_then(|rest| rest.strip_suffix('W')) {
        Some(weeks) if weeks.bytes().all(|b| b.is_ascii_digit()) => {
            let ms = decimal(weeks)?.times(7.0 * 86_400_000.0);
            Some(Parsed { span: Span::saturating_ms(ms), calendar: false })
        }
        _ => iso_duration(text),
    }
}

/// The sum of components in the order of `units`, each at most once; and whether years or months
/// were among them.
fn components(mut text: &str, units: &[(char, f64)]) -> Option<(f64, bool)> {
    let (mut sum, mut calendar) = (0.0, false);
    let mut units = units.iter();
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = text.split_at(end);
        let unit = tail.chars().next()?;
        let (_, ms) = units.find(|(name, _)| *name == unit)?;
        if number.contains('.') && unit != 'S' {
            return None;
        }
        sum += decimal(number)?.times(*ms);
        calendar |= *ms >= 30.0 * 86_400_000.0;
        text = &tail[unit.len_utf8()..];
    }
    Some((sum, calendar))
}

/// A decimal number as it stands in the text, so that `0.3` seconds are 300 ms and not 299.99….
#[derive(Clone, Copy)]
struct Decimal<'a>(&'a str);

impl Decimal<'_> {
    fn times(self, unit_ms: f64) -> f64 {
        let exponent = unit_ms.log10();
        if exponent.fract() == 0.0 {
            // A power of ten moves the point, which the correctly rounded parser does for us.
            return format!("{}e{exponent}", self.0).parse().unwrap_or(f64::INFINITY);
        }
        self.0.parse::<f64>().unwrap_or(f64::INFINITY) * unit_ms
    }
}

/// Digits, optionally with a point that has digits on both sides.
fn decimal(text: &str) -> Option<Decimal<'_>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (digits(whole) && digits(fraction)).then_some(Decimal(text))
}

/// Parses Go's notation: `1h15m30.918273645s`, `200ms`, `1.5s`, `.5s`, `0`; a leading `+` is allowed.
///
/// `None` for everything else, a negative duration and one beyond Go's own limit of 2^63 ns included.
#[must_use]
pub fn go_duration(text: &str) -> Option<Span> {
    const GO_MAX_MS: f64 = i64::MAX as f64 / 1e6;
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Span::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let unit_end = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let ms = match unit {
            "ns" => 1e-6,
            "us" | "µs" | "μs" => 1e-3,
            "ms" => 1.0,
            "s" => 1_000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        sum += go_number(number)?.times(ms);
        rest = tail;
    }
    (sum <= GO_MAX_MS).then(|| Span::saturating_ms(sum))
}

/// As [`decimal`], but one side of the point may be empty, as in Go.
fn go_number(text: &str) -> Option<Decimal<'_>> {
    let shape = text.bytes().filter(|b| *b == b'.').count() <= 1;
    (shape && text.bytes().any(|b| b.is_ascii_digit())).then_some(Decimal(text))
}

/// Seconds as a JSON number into a span: the decimal that was written, not its binary neighbour.
#[must_use]
pub(super) fn seconds(value: f64) -> Span {
    Span::saturating_ms(shifted(value, 3))
}

/// A span in seconds, as the shortest decimal that reads back as the same span.
#[must_use]
pub(super) fn in_seconds(span: Span) -> f64 {
    shifted(span.ms(), -3)
}

/// `value × 10^places`, rounded once.
fn shifted(value: f64, places: i32) -> f64 {
    let text = format!("{value:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return value };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}", exponent + places).parse().unwrap_or(value)
}

/// A span in the ISO notation, such as `PT0.5S`, `PT1H30M`, `P2D`.
#[must_use]
pub(crate) fn to_iso(span: Span) -> String {
    let total = span.ms();
    if total == 0.0 {
        return "PT0S".to_owned();
    }
    let (days, hours, minutes) = whole_parts(total);
    let rest = total - days * 86_400_000.0 - hours * 3_600_000.0 - minutes * 60_000.0;
    let mut text = String::from("P");
    push(&mut text, days, "D");
    if hours > 0.0 || minutes > 0.0 || rest > 0.0 {
        text.push('T');
    }
    push(&mut text, hours, "H");
    push(&mut text, minutes, "M");
    push_seconds(&mut text, rest, "S");
    text
}

/// A span in Go's notation, such as `200ms`, `1h30m0.5s`.
#[must_use]
pub(crate) fn to_go(span: Span) -> String {
    let total = span.ms();
    if total == 0.0 {
        return "0s".to_owned();
    }
    if total < 1_000.0 {
        return format!("{total}ms");
    }
    let (days, hours, minutes) = whole_parts(total);
    let rest = total - days * 86_400_000.0 - hours * 3_600_000.0 - minutes * 60_000.0;
    let mut text = String::new();
    push(&mut text, days * 24.0 + hours, "h");
    push(&mut text, minutes, "m");
    push_seconds(&mut text, rest, "s");
    text
}

/// Whole days, hours and minutes; only where they leave a whole millisecond, so that a fraction is
/// never split into parts whose sum would round differently.
fn whole_parts(total: f64) -> (f64, f64, f64) {
    if total.fract() != 0.0 {
        return (0.0, 0.0, 0.0);
    }
    let days = (total / 86_400_000.0).floor();
    let hours = ((total - days * 86_400_000.0) / 3_600_000.0).floor();
    let minutes = ((total - days * 86_400_000.0 - hours * 3_600_000.0) / 60_000.0).floor();
    (days, hours, minutes)
}

fn push(text: &mut String, number: f64, unit: &str) {
    if number > 0.0 {
        text.push_str(&format!("{number}{unit}"));
    }
}

/// Seconds, from milliseconds, with every digit: the point moves in the text, not in binary.
fn push_seconds(text: &mut String, ms: f64, unit: &str) {
    if ms <= 0.0 {
        return;
    }
    let digits = ms.to_string();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let padded = format!("{whole:0>4}");
    let (seconds, thousandths) = padded.split_at(padded.len() - 3);
    let decimals = format!("{thousandths}{fraction}");
    text.push_str(seconds);
    if decimals.bytes().any(|digit| digit != b'0') {
        text.push('.');
        text.push_str(decimals.trim_end_matches('0'));
    }
    text.push_str(unit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso_ms(text: &str) -> Option<f64> {
        iso_duration(text).map(|parsed| parsed.span.ms())
    }

    /// The table of OJS §4.1.
    #[test]
    fn ojs_4_1_recommended_durations() {
        for (text, ms) in [
            ("PT0.5S", 500.0),
            ("PT1S", 1_000.0),
            ("PT5S", 5_000.0),
            ("PT30S", 30_000.0),
            ("PT1M", 60_000.0),
            ("PT5M", 300_000.0),
            ("PT15M", 900_000.0),
            ("PT1H", 3_600_000.0),
            ("PT24H", 86_400_000.0),
        ] {
            assert_eq!(iso_ms(text), Some(ms), "{text}");
            assert_eq!(iso_ms(&to_iso(Span::saturating_ms(ms))), Some(ms), "{text}");
        }
    }

    #[test]
    fn iso_is_exactly_the_pattern_of_ojs_14() {
        assert_eq!(iso_ms("P1Y2M3DT4H5M6.7S"), Some(425.0 * 86_400_000.0 + 3.0 * 86_400_000.0 + 14_706_700.0));
        assert_eq!(iso_ms("PT0.3S"), Some(300.0));
        assert_eq!(iso_ms("PT1.005S"), Some(1005.0));
        assert_eq!(iso_ms("PT0S"), Some(0.0));
        assert_eq!(iso_ms(&format!("P{}D", "9".repeat(400))), Some(Span::MAX.ms()));
        for text in [
            "", "P", "PT", "P1DT", "1S", "PT1", "P1W", "PT1.5H", "PT1.5M", "P0.5D", "PT.5S", "PT1.S", "pt1s", "-PT1S",
            "+PT1S", "PT-1S", " PT1S", "PT1S ", "PT1S\n", "PT5S1M", "PT1S1S", "P1M1Y", "PT1,5S", "P1S", "PT1D", "PTS",
            "PT1.5.5S", "PT١S", "P1YT",
        ] {
            assert_eq!(iso_ms(text), None, "{text:?}");
        }
    }

    #[test]
    fn mwl_knows_weeks_and_a_sign() {
        let ms = |text| signed_iso_duration(text).map(|parsed| parsed.span.ms());
        assert_eq!(ms("P2W"), Some(14.0 * 86_400_000.0));
        assert_eq!(ms("-PT30S"), Some(0.0));
        assert_eq!(ms("PT0.2S"), Some(200.0));
        for text in ["--PT1S", "PW", "P1.5W", "-", "P1W1D", "1s"] {
            assert_eq!(ms(text), None, "{text}");
        }
    }

    #[test]
    fn go_durations() {
        for (text, ms) in [
            ("200ms", 200.0),
            ("5s", 5_000.0),
            ("1.5s", 1_500.0),
            (".5s", 500.0),
            ("1.s", 1_000.0),
            ("0", 0.0),
            ("+1h15m30.25s", 4_530_250.0),
            ("1us", 1e-3),
            ("1µs", 1e-3),
            ("3ns", 3e-6),
        ] {
            assert_eq!(go_duration(text).map(Span::ms), Some(ms), "{text}");
        }
        for text in ["", "200", "-5s", "s", "1d", "1.2.3s", ".s", "5 s", "5s ", "300000000h", "1S"] {
            assert_eq!(go_duration(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back_to_the_last_bit() {
        for ms in [0.0, 1e-6, 0.5, 812.4, 999.0, 1_000.0, 61_001.0, 256_100.000_000_000_03, 93_600_000.0, 1e12 + 0.125]
        {
            let span = Span::saturating_ms(ms);
            assert_eq!(iso_duration(&to_iso(span)).map(|parsed| parsed.span), Some(span), "{}", to_iso(span));
            assert_eq!(go_duration(&to_go(span)), Some(span), "{}", to_go(span));
        }
        assert_eq!(to_iso(Span::from_millis(5_400_500)), "PT1H30M0.5S");
        assert_eq!(to_iso(Span::from_secs(172_800)), "P2D");
        assert_eq!(to_go(Span::from_millis(5_400_500)), "1h30m0.5s");
    }

    #[test]
    fn a_decimal_of_seconds_is_read_as_written() {
        assert_eq!(seconds(1.005).ms(), 1005.0);
        assert_eq!(seconds(0.1).ms(), 100.0);
        assert_eq!(in_seconds(Span::saturating_ms(1005.0)), 1.005);
    }
}
