//! Axes: where a value lies, and which values are worth a label.

use super::words::{count, short};
use crate::Span;

/// From values to places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    /// The value at `from`; where the axis is logarithmic, everything below lies there too.
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

/// A labelled position on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub at: f64,
    pub label: String,
}

impl Axis {
    /// An even axis from zero.
    pub(super) fn linear(high: f64, from: f64, to: f64) -> Self {
        Self { low: 0.0, high: if high > 0.0 { high } else { 1.0 }, from, to, logarithmic: false }
    }

    /// An axis on which equal distances are equal factors; `low` is greater than zero.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        // At least a factor of two, so that the division below has something to divide by.
        Self { low, high: high.max(low * 2.0), from, to, logarithmic: true }
    }

    pub(super) fn is_logarithmic(&self) -> bool {
        self.logarithmic
    }

    /// The value at the end of the axis.
    pub(super) fn end(&self) -> f64 {
        self.high
    }

    /// The position of a value; values beyond the ends lie at the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            if value <= self.low { 0.0 } else { (value / self.low).ln() / (self.high / self.low).ln() }
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Ticks of a time in milliseconds, at least `apart` from each other.
    pub(super) fn time_ticks(&self, apart: f64) -> Vec<Tick> {
        let label = |ms: f64| if ms == 0.0 { "0".to_owned() } else { short(Span::saturating_ms(ms)) };
        if self.logarithmic {
            let round = self.spread(ROUND_MS.iter().copied(), apart, label);
            return if round.len() >= 4 { round } else { self.spread(steps_ms(), apart, label) };
        }
        let most = ((self.to - self.from).abs() / apart).max(1.0);
        let step = steps_ms().find(|step| self.high / step <= most).unwrap_or(self.high);
        self.spread((0..=(self.high / step) as u32).map(|k| f64::from(k) * step), apart * 0.9, label)
    }

    /// Ticks of a count, at least `apart` from each other.
    pub(super) fn count_ticks(&self, apart: f64) -> Vec<Tick> {
        let label = |number: f64| count(number as u64);
        if self.logarithmic {
            return self.spread((0..16).map(|k| 10_f64.powi(k)), apart, label);
        }
        let most = ((self.to - self.from).abs() / apart).max(1.0);
        let steps = (0..16).flat_map(|k| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(k)));
        let step = steps.into_iter().find(|step| self.high / step <= most).unwrap_or(self.high);
        self.spread((0..=(self.high / step) as u32).map(|k| f64::from(k) * step), apart * 0.9, label)
    }

    /// The values within the axis, without those that would crowd the one before.
    fn spread(&self, values: impl Iterator<Item = f64>, apart: f64, label: impl Fn(f64) -> String) -> Vec<Tick> {
        let mut ticks: Vec<Tick> = Vec::new();
        for value in values.filter(|value| (self.low..=self.high).contains(value)) {
            let at = self.at(value);
            if ticks.last().is_none_or(|last| (at - last.at).abs() >= apart) {
                ticks.push(Tick { at, label: label(value) });
            }
        }
        ticks
    }
}

const SECOND: f64 = 1_000.0;
const MINUTE: f64 = 60.0 * SECOND;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;
const YEAR: f64 = 365.0 * DAY;

/// The roundest times, for axes over many of them.
const ROUND_MS: [f64; 16] = [
    1.0,
    10.0,
    100.0,
    SECOND,
    10.0 * SECOND,
    MINUTE,
    10.0 * MINUTE,
    HOUR,
    6.0 * HOUR,
    DAY,
    7.0 * DAY,
    30.0 * DAY,
    YEAR,
    10.0 * YEAR,
    100.0 * YEAR,
    1000.0 * YEAR,
];

/// Every time that people count in steps of.
fn steps_ms() -> impl Iterator<Item = f64> {
    let decimal = |unit: f64, powers: std::ops::Range<i32>| {
        powers.flat_map(move |k| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(k) * unit))
    };
    let sixty = |unit: f64| [1.0, 2.0, 5.0, 10.0, 15.0, 30.0].map(|step| step * unit);
    decimal(1.0, -3..3)
        .chain(sixty(SECOND))
        .chain(sixty(MINUTE))
        .chain([1.0, 2.0, 3.0, 6.0, 12.0].map(|step| step * HOUR))
        .chain([1.0, 2.0, 7.0, 14.0, 30.0, 90.0, 180.0].map(|step| step * DAY))
        .chain(decimal(YEAR, 0..4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_and_keep_their_distance() {
        let axis = Axis::linear(2_500_000.0, 0.0, 400.0);
        assert_eq!(labels(&axis.time_ticks(70.0)), ["0", "10 min", "20 min", "30 min", "40 min"]);
        let axis = Axis::logarithmic(500.0, 300_000.0, 0.0, 400.0);
        assert_eq!(labels(&axis.time_ticks(60.0)), ["500 ms", "2 s", "10 s", "30 s", "2 min"]);
        let axis = Axis::logarithmic(1.0, 1e6, 100.0, 0.0);
        assert_eq!(labels(&axis.count_ticks(16.0)), ["1", "10", "100", "1,000", "10,000", "100,000", "1,000,000"]);
    }

    #[test]
    fn values_beyond_the_ends_lie_at_the_ends() {
        for axis in [Axis::linear(10.0, 5.0, 25.0), Axis::logarithmic(1.0, 10.0, 5.0, 25.0)] {
            assert_eq!((axis.at(-1.0), axis.at(0.0), axis.at(1e9)), (5.0, 5.0, 25.0));
        }
        assert_eq!(Axis::linear(0.0, 5.0, 25.0).at(0.0), 5.0);
    }
}
