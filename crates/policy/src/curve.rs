//! How delays grow from one retry to the next.

use serde::{Deserialize, Serialize};

/// The growth of the raw delay, as a factor on the initial delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", from = "CurveDocument")]
pub enum Curve {
    /// Every delay is the initial delay.
    Fixed,
    /// The n-th delay is `n` times the initial delay.
    Linear,
    /// The n-th delay is `rate^(n-1)` times the initial delay.
    Exponential {
        /// What each delay is multiplied by to give the next; at least 1.
        rate: f64,
    },
    /// The n-th delay is `(n - 1 + first)^exponent` times the initial delay.
    Polynomial {
        /// The power; at least 0.
        exponent: f64,
        /// The number that stands for the first retry: 1 in OJS, 0 in Sidekiq and Faktory.
        #[serde(skip_serializing_if = "is_one")]
        first: u32,
    },
}

impl Curve {
    /// The factor for retry `n`, counted from 1. May be infinite; never NaN, never below zero.
    #[inline]
    #[must_use]
    pub fn factor(self, n: u32) -> f64 {
        match self {
            Self::Fixed => 1.0,
            Self::Linear => f64::from(n),
            Self::Exponential { rate } => power(rate, n.saturating_sub(1)),
            Self::Polynomial { exponent, first } => {
                let n = f64::from(n.saturating_sub(1).saturating_add(first));
                if exponent.fract() == 0.0 && exponent <= 64.0 { power(n, exponent as u32) } else { n.powf(exponent) }
            }
        }
    }
}

/// A curve as it is read. A variant without fields would let any field pass; one with no fields
/// between braces does not.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum CurveDocument {
    Fixed {},
    Linear {},
    Exponential {
        rate: f64,
    },
    Polynomial {
        exponent: f64,
        #[serde(default = "one")]
        first: u32,
    },
}

impl From<CurveDocument> for Curve {
    fn from(written: CurveDocument) -> Self {
        match written {
            CurveDocument::Fixed {} => Self::Fixed,
            CurveDocument::Linear {} => Self::Linear,
            CurveDocument::Exponential { rate } => Self::Exponential { rate },
            CurveDocument::Polynomial { exponent, first } => Self::Polynomial { exponent, first },
        }
    }
}

fn one() -> u32 {
    1
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Exponentiation by squaring: exact as long as the result is (2^53), and the same on every
/// machine, which neither `powi` nor `powf` promises. `powf` remains for fractional exponents.
#[inline]
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_whole_numbers_are_exact() {
        assert_eq!(power(3.0, 33), 5_559_060_566_555_523.0);
        assert_eq!(power(1.0, u32::MAX), 1.0);
        assert_eq!(power(2.0, u32::MAX), f64::INFINITY);
        assert_eq!(power(9.0, 0), 1.0);
    }
}
