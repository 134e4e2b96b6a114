//! How long to wait before a retry.

use crate::{Curve, Draw, Jitter, Span};
use serde::{Deserialize, Serialize};

/// The timing of a rule: a curve, a cap, a jitter and a rounding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backoff {
    /// The delay that the curve starts from.
    #[serde(rename = "initial_ms")]
    pub initial: Span,
    /// A constant added to the curve before anything else.
    #[serde(rename = "offset_ms", default, skip_serializing_if = "Span::is_zero")]
    pub offset: Span,
    /// How the delay grows.
    pub curve: Curve,
    /// The longest delay, and where it is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<Cap>,
    /// How a draw changes the delay.
    pub jitter: Jitter,
    /// What happens to fractions of a millisecond.
    #[serde(default, skip_serializing_if = "Rounding::is_exact")]
    pub rounding: Rounding,
}

/// A limit on a single delay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// The longest delay.
    #[serde(rename = "at_ms")]
    pub at: Span,
    /// Whether the jitter sees the capped delay, or is capped itself.
    pub place: CapPlace,
}

/// Where a cap is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapPlace {
    /// On the curve only (Azolla, MWL): the jitter is drawn over the capped delay.
    BeforeJitter,
    /// On the jittered delay only (Exosphere): what lies above piles up at the cap.
    AfterJitter,
    /// On both (OJS §5.3, TaskHarbor).
    BeforeAndAfter,
}

impl CapPlace {
    const fn before(self) -> bool {
        matches!(self, Self::BeforeJitter | Self::BeforeAndAfter)
    }

    /// Whether the jittered delay is capped.
    #[must_use]
    pub const fn after(self) -> bool {
        matches!(self, Self::AfterJitter | Self::BeforeAndAfter)
    }
}

/// What happens to fractions of a millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// They stay.
    #[default]
    Exact,
    /// They are cut off.
    FloorMs,
}

impl Rounding {
    fn is_exact(&self) -> bool {
        *self == Self::Exact
    }
}

/// A delay, and how it came about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Computed {
    /// Which retry of the rule this is, from 1.
    pub retry: u32,
    /// What the curve gave, before cap and jitter.
    #[serde(rename = "raw_ms")]
    pub raw: Span,
    /// The cap that shortened the delay, before or after the jitter; absent where none did.
    #[serde(rename = "capped_at_ms", default, skip_serializing_if = "Option::is_none")]
    pub capped_at: Option<Span>,
    /// The draw, where the jitter used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draw: Option<Draw>,
    /// The delay itself.
    #[serde(rename = "delay_ms")]
    pub delay: Span,
}

impl Backoff {
    /// No delay at all.
    pub const IMMEDIATE: Self = Self::fixed(Span::ZERO);

    /// The same delay every time.
    #[must_use]
    pub const fn fixed(delay: Span) -> Self {
        Self {
            initial: delay,
            offset: Span::ZERO,
            curve: Curve::Fixed,
            cap: None,
            jitter: Jitter::None,
            rounding: Rounding::Exact,
        }
    }

    /// What the curve alone gives for retry `n`, counted from 1.
    #[inline]
    #[must_use]
    pub fn raw(&self, n: u32) -> Span {
        self.offset.plus(self.initial.times(self.curve.factor(n)))
    }

    /// The delay before retry `n`, counted from 1. `previous` is the last delay that this rule
    /// scheduled; only decorrelated jitter reads it.
    // Always: out of line, `decide` waits longer for the parts of the result than for the result.
    #[inline(always)]
    #[must_use]
    pub fn delay(&self, n: u32, previous: Option<Span>, draw: Draw) -> Computed {
        let raw = self.raw(n);
        let mut delay = raw;
        let mut capped_at = None;
        let mut cap = |span: Span, applies: bool| match self.cap {
            Some(cap) if applies && span > cap.at => {
                capped_at = Some(cap.at);
                cap.at
            }
            _ => span,
        };
        let place = self.cap.map_or(CapPlace::BeforeAndAfter, |cap| cap.place);
        delay = cap(delay, place.before());
        delay = self.jittered(delay, n, previous, draw);
        delay = cap(delay, place.after());
        if self.rounding == Rounding::FloorMs {
            delay = delay.floor_ms();
        }
        let draw = (!matches!(self.jitter, Jitter::None)).then_some(draw);
        Computed { retry: n, raw, capped_at, draw, delay }
    }

    #[inline]
    fn jittered(&self, delay: Span, n: u32, previous: Option<Span>, draw: Draw) -> Span {
        let u = draw.value();
        match self.jitter {
            Jitter::None => delay,
            Jitter::Scale { low, high } => delay.times(low + u * (high - low)),
            Jitter::Decorrelated => {
                let low = self.initial.ms();
                let high = previous.unwrap_or(self.initial).times(3.0).ms();
                Span::saturating_ms(low + u * (high - low))
            }
            Jitter::Added { step } => delay.plus(step.times(u * f64::from(n))),
        }
    }
}
