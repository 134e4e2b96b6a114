//! Randomness added to a delay, so that a crowd that failed together does not return together.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The law by which a draw changes a delay.
///
/// Full, equal, ±fraction and OJS's 0.5–1.5 are one law with other bounds, and so they are one
/// variant here: the delay is multiplied by a uniform factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", from = "JitterDocument")]
pub enum Jitter {
    /// The delay is used as it is.
    None,
    /// The delay times a uniform factor in `[low, high)`.
    Scale {
        /// The smallest factor; at least 0.
        low: f64,
        /// The largest factor; at least `low`.
        high: f64,
    },
    /// Uniform between the initial delay and three times the previous delay; the curve is unread.
    Decorrelated,
    /// The delay plus a uniform time in `[0, step × n)` at retry n, as Sidekiq has it.
    Added {
        /// How much the range widens with each retry.
        #[serde(rename = "step_ms")]
        step: Span,
    },
}

/// A jitter as it is read. A variant without fields would let any field pass; one with no fields
/// between braces does not.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum JitterDocument {
    None {},
    Scale {
        low: f64,
        high: f64,
    },
    Decorrelated {},
    Added {
        #[serde(rename = "step_ms")]
        step: Span,
    },
}

impl From<JitterDocument> for Jitter {
    fn from(written: JitterDocument) -> Self {
        match written {
            JitterDocument::None {} => Self::None,
            JitterDocument::Scale { low, high } => Self::Scale { low, high },
            JitterDocument::Decorrelated {} => Self::Decorrelated,
            JitterDocument::Added { step } => Self::Added { step },
        }
    }
}

impl Jitter {
    /// Uniform from nothing to the whole delay.
    pub const FULL: Self = Self::Scale { low: 0.0, high: 1.0 };
    /// Half of the delay, plus uniform from nothing to the other half.
    pub const EQUAL: Self = Self::Scale { low: 0.5, high: 1.0 };
    /// The factor of Open Job Spec, uniform from 0.5 to 1.5.
    pub const OJS: Self = Self::Scale { low: 0.5, high: 1.5 };

    /// The delay give or take a fraction of it.
    #[must_use]
    pub fn plus_minus(fraction: f64) -> Self {
        if fraction == 0.0 { Self::None } else { Self::Scale { low: 1.0 - fraction, high: 1.0 + fraction } }
    }

    /// True where the outcome does not depend on the draw.
    #[must_use]
    pub fn is_none(self) -> bool {
        match self {
            Self::None => true,
            Self::Scale { low, high } => low == high,
            Self::Decorrelated => false,
            Self::Added { step } => step.is_zero(),
        }
    }
}

/// The name that people use.
impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => write!(f, "no jitter"),
            Self::FULL => write!(f, "full jitter"),
            Self::EQUAL => write!(f, "equal jitter"),
            Self::Scale { low, high } => write!(f, "jitter ×{}–{}", short(low), short(high)),
            Self::Decorrelated => write!(f, "decorrelated jitter"),
            Self::Added { step } => write!(f, "added jitter up to {step} × n"),
        }
    }
}

fn short(factor: f64) -> f64 {
    (factor * 1e6).round() / 1e6
}
