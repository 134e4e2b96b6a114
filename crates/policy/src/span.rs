//! Durations and moments as the policies need them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A length of time in milliseconds: finite, never negative, never above [`Span::MAX`].
///
/// Milliseconds in an `f64` are exact for every whole millisecond a policy can reach and carry
/// fractions down to nanoseconds, so one number serves documents that speak of whole milliseconds
/// (Exosphere) and of fractional seconds (OJS, Azolla). Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Span(f64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0.0);
    /// A thousand years of 365 days. Any due time reached from today stays a four-digit year,
    /// so that every timestamp format and every store can carry it.
    pub const MAX: Self = Self(365_000.0 * 86_400_000.0);

    /// From milliseconds; negative and NaN become zero, what is too long becomes [`Span::MAX`].
    #[inline]
    #[must_use]
    pub const fn saturating_ms(ms: f64) -> Self {
        if ms >= Self::MAX.0 {
            Self::MAX
        } else if ms > 0.0 {
            Self(ms)
        } else {
            Self::ZERO
        }
    }

    /// From whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u32) -> Self {
        Self::saturating_ms(secs as f64 * 1000.0)
    }

    /// From whole milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u32) -> Self {
        Self(ms as f64)
    }

    /// The number of milliseconds.
    #[inline]
    #[must_use]
    pub const fn ms(self) -> f64 {
        self.0
    }

    /// The number of seconds.
    #[must_use]
    pub const fn secs(self) -> f64 {
        self.0 / 1000.0
    }

    /// True for the empty span.
    #[must_use]
    pub const fn is_zero(&self) -> bool {
        self.0 == 0.0
    }

    /// The sum, at most [`Span::MAX`].
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::saturating_ms(self.0 + other.0)
    }

    /// The product with a factor, at most [`Span::MAX`]. Zero times anything is zero.
    #[inline]
    #[must_use]
    pub const fn times(self, factor: f64) -> Self {
        if self.0 == 0.0 { Self::ZERO } else { Self::saturating_ms(self.0 * factor) }
    }

    /// The shorter of the two.
    #[inline]
    #[must_use]
    pub const fn at_most(self, cap: Self) -> Self {
        if self.0 > cap.0 { cap } else { self }
    }

    /// Cut down to a whole millisecond.
    #[inline]
    #[must_use]
    pub const fn floor_ms(self) -> Self {
        // A span fits an integer, and the way over it needs no call into the math library.
        Self(self.0 as i64 as f64)
    }
}

impl TryFrom<f64> for Span {
    type Error = String;

    fn try_from(ms: f64) -> Result<Self, String> {
        if (0.0..=Self::MAX.0).contains(&ms) {
            // A minus zero lies in the range too, and must not be shown as "-0 ms".
            Ok(Self(ms.abs()))
        } else {
            Err(format!("{ms} ms is not a span: from 0 to {} ms is allowed", Self::MAX.0))
        }
    }
}

impl From<Span> for f64 {
    fn from(span: Span) -> Self {
        span.0
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self::saturating_ms(duration.as_secs() as f64 * 1e3 + f64::from(duration.subsec_nanos()) / 1e6)
    }
}

impl From<Span> for Duration {
    #[inline]
    fn from(span: Span) -> Self {
        // 2^53 ns: up to here the cheap way is exact; beyond it a nanosecond makes no difference.
        const CHEAP_MS: f64 = 9_007_199_254.0;
        if span.0 < CHEAP_MS { Self::from_nanos((span.0 * 1e6 + 0.5) as u64) } else { Self::from_millis(span.0 as u64) }
    }
}

/// Two significant units, for people: `1 d 2 h`, `4 min 30 s`, `812.4 ms`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 5] =
            [(365.0 * 86_400_000.0, "y"), (86_400_000.0, "d"), (3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s")];
        if self.0 < 1_000.0 {
            return write!(f, "{} ms", trimmed(self.0));
        }
        if self.0 < 60_000.0 {
            return write!(f, "{} s", trimmed(self.0 / 1_000.0));
        }
        for pair in UNITS.windows(2) {
            let ((big, big_name), (small, small_name)) = (pair[0], pair[1]);
            // Rounded to the small unit first, so that 59.9 min never prints as "60 min".
            let rounded = (self.0 / small).round() * small;
            if rounded >= big {
                let whole = (rounded / big).floor();
                let rest = ((rounded - whole * big) / small).round();
                return if rest == 0.0 {
                    write!(f, "{whole} {big_name}")
                } else {
                    write!(f, "{whole} {big_name} {rest} {small_name}")
                };
            }
        }
        write!(f, "{} s", trimmed(self.0 / 1_000.0))
    }
}

/// At most three decimals, none of them a trailing zero.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A point in time: microseconds since an origin that the caller chooses, such as the
/// Unix epoch for jobs or the start of the program for a retried closure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Moment(i64);

impl Moment {
    /// The origin itself.
    pub const ORIGIN: Self = Self(0);

    /// Microseconds since the origin.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the origin.
    #[must_use]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The moment that lies `span` later, never less; the end of time at the latest.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        // Rounded up: a retry may start a fraction of a microsecond late, and never early.
        Self(self.0.saturating_add((span.0 * 1000.0).ceil() as i64))
    }

    /// The time since `earlier`; zero where the clock went backwards.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span::saturating_ms(self.0.saturating_sub(earlier.0) as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saturates_instead_of_overflowing() {
        assert_eq!(Span::saturating_ms(f64::INFINITY), Span::MAX);
        assert_eq!(Span::saturating_ms(f64::NAN), Span::ZERO);
        assert_eq!(Span::saturating_ms(-1.0), Span::ZERO);
        assert_eq!(Span::ZERO.times(f64::INFINITY), Span::ZERO);
        assert_eq!(Span::MAX.plus(Span::MAX), Span::MAX);
        assert_eq!(Span::try_from(-0.0).unwrap().to_string(), "0 ms");
    }

    #[test]
    fn fractions_of_a_millisecond_are_cut_off() {
        for (ms, floored) in [(0.0, 0.0), (0.999, 0.0), (1.0, 1.0), (1_500.75, 1_500.0)] {
            assert_eq!(Span::saturating_ms(ms).floor_ms(), Span::saturating_ms(floored));
        }
        assert_eq!(Span::MAX.floor_ms(), Span::MAX);
    }

    #[test]
    fn displays_two_units() {
        for (ms, text) in [
            (0.0, "0 ms"),
            (812.4, "812.4 ms"),
            (1_500.0, "1.5 s"),
            (90_000.0, "1 min 30 s"),
            (300_000.0, "5 min"),
            (3_599_900.0, "1 h"),
            (93_600_000.0, "1 d 2 h"),
            (33_523_200_000.0, "1 y 23 d"),
        ] {
            assert_eq!(Span::saturating_ms(ms).to_string(), text);
        }
    }

    #[test]
    fn converts_to_and_from_std() {
        let span = Span::from(Duration::from_nanos(1_500_001));
        assert_eq!(Duration::from(span), Duration::from_nanos(1_500_001));
        assert_eq!(Duration::from(Span::MAX).as_secs(), 365_000 * 86_400);
        assert_eq!(Duration::from(Span::saturating_ms(0.000_001_6)), Duration::from_nanos(2));
        assert_eq!(Duration::from(Span::saturating_ms(0.000_001_4)), Duration::from_nanos(1));
    }

    #[test]
    fn a_due_time_is_never_early() {
        assert_eq!(Moment::ORIGIN.after(Span::saturating_ms(0.000_1)), Moment::from_micros(1));
        assert_eq!(Moment::ORIGIN.after(Span::from_millis(3)), Moment::from_micros(3_000));
    }

    #[test]
    fn a_clock_that_steps_back_counts_as_no_time() {
        assert_eq!(Moment::from_micros(5).since(Moment::from_micros(9)), Span::ZERO);
        assert_eq!(Moment::from_micros(i64::MAX).since(Moment::from_micros(i64::MIN)), Span::MAX);
    }
}
