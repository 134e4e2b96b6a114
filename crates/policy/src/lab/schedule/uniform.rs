//! The law of one delay whose past is known: a uniform time, cut at a cap, perhaps cut to a whole
//! millisecond. Its mean and the mass on its cap have closed forms.

use crate::{Backoff, CapPlace, Curve, Jitter, Rounding, Span};

/// `min(low + width × draw, cap)` in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Uniform {
    pub low: f64,
    /// May be infinite, where the factors of a jitter are absurd.
    pub width: f64,
    pub cap: f64,
    pub rounding: Rounding,
}

impl Uniform {
    /// The law of retry `n`; `None` for the decorrelated jitter, whose law depends on the past.
    pub(super) fn of(backoff: &Backoff, n: u32) -> Option<Self> {
        let base = base(backoff, n).ms();
        let (low, width) = match backoff.jitter {
            Jitter::None => (base, 0.0),
            // Zero stays zero under any factor, as in `Span::times`.
            Jitter::Scale { .. } if base == 0.0 => (0.0, 0.0),
            Jitter::Scale { low, high } => (base * low, base * (high - low)),
            Jitter::Added { step } => (base, step.ms() * f64::from(n)),
            Jitter::Decorrelated => return None,
        };
        Some(Self { low, width, cap: cap_after(backoff).ms(), rounding: backoff.rounding })
    }

    /// The mean over all draws.
    pub(super) fn mean(self) -> f64 {
        match self.rounding {
            Rounding::Exact => self.exact_mean(),
            Rounding::FloorMs => self.floored_mean(),
        }
    }

    /// The share of all draws that the cap makes one single delay.
    pub(super) fn at_cap(self) -> f64 {
        if self.low >= self.cap {
            1.0
        } else if self.low + self.width <= self.cap {
            0.0
        } else {
            1.0 - (self.cap - self.low) / self.width
        }
    }

    fn exact_mean(self) -> f64 {
        match self.at_cap() {
            0.0 => self.low + self.width / 2.0,
            1.0 => self.cap,
            above => (1.0 - above) * f64::midpoint(self.low, self.cap) + above * self.cap,
        }
    }

    /// `Σ P(delay ≥ k)` over the whole milliseconds `k` from 1 up to the cap: certain up to `low`,
    /// an arithmetic series from there.
    fn floored_mean(self) -> f64 {
        let (certain, cap) = (self.low.floor(), self.cap.floor());
        if certain >= cap {
            return cap;
        }
        let last = cap.min((self.low + self.width).ceil() - 1.0);
        let terms = last - certain;
        if terms <= 0.0 {
            return certain;
        }
        let middle = f64::midpoint(certain + 1.0, last);
        certain + terms * (1.0 - (middle - self.low) / self.width)
    }
}

/// The delay before its jitter.
fn base(backoff: &Backoff, n: u32) -> Span {
    backoff.raw(n).at_most(cap_before(backoff))
}

/// The cap on the curve; the longest span there is where nothing else caps it.
fn cap_before(backoff: &Backoff) -> Span {
    backoff.cap.filter(|cap| cap.place != CapPlace::AfterJitter).map_or(Span::MAX, |cap| cap.at)
}

/// The cap on the jittered delay; the longest span there is where nothing else caps it.
pub(super) fn cap_after(backoff: &Backoff) -> Span {
    backoff.cap.filter(|cap| cap.place.after()).map_or(Span::MAX, |cap| cap.at)
}

/// True where no later retry has another law than retry `n`. Curves never fall, so what has reached
/// its cap stays there; that two neighbours are equal would prove nothing, because a slow curve
/// that is cut to whole milliseconds rests for a while and moves on.
pub(super) fn is_steady(backoff: &Backoff, n: u32) -> bool {
    let flat = backoff.initial.is_zero()
        || match backoff.curve {
            Curve::Fixed => true,
            Curve::Linear => false,
            Curve::Exponential { rate } => rate == 1.0,
            Curve::Polynomial { exponent, .. } => exponent == 0.0,
        };
    let base_rests = flat || base(backoff, n) >= cap_before(backoff);
    let jitter_widens = matches!(backoff.jitter, Jitter::Added { step } if !step.is_zero());
    let pinned = Uniform::of(backoff, n).is_some_and(|distribution| distribution.low >= distribution.cap);
    pinned || (base_rests && !jitter_widens)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The midpoint rule over enough draws that its error is below the tolerance of the test.
    fn numeric_mean(distribution: Uniform) -> f64 {
        const DRAWS: u32 = 400_000;
        let delay = |k: u32| {
            let ms = (distribution.low + distribution.width * ((f64::from(k) + 0.5) / f64::from(DRAWS)))
                .min(distribution.cap);
            if distribution.rounding == Rounding::FloorMs { ms.floor() } else { ms }
        };
        (0..DRAWS).map(delay).sum::<f64>() / f64::from(DRAWS)
    }

    #[test]
    fn the_closed_forms_agree_with_summing_over_draws() {
        for rounding in [Rounding::Exact, Rounding::FloorMs] {
            for (low, width, cap) in [
                (0.0, 1.0, 10.0),
                (0.0, 1000.0, 300.0),
                (0.0, 7.3, 4.9),
                (2.5, 0.25, 10.0),
                (2.9, 0.2, 10.0),
                (150.0, 300.0, 300.0),
                (150.5, 300.25, 299.75),
                (8.0, 0.0, 10.0),
                (8.5, 0.0, 7.5),
                (8.0, 4.0, 7.5),
            ] {
                let distribution = Uniform { low, width, cap, rounding };
                let (closed, summed) = (distribution.mean(), numeric_mean(distribution));
                assert!((closed - summed).abs() < 1e-4 * closed.max(1.0), "{distribution:?}: {closed} is not {summed}");
            }
        }
    }

    #[test]
    fn absurd_widths_stay_finite() {
        for rounding in [Rounding::Exact, Rounding::FloorMs] {
            let distribution = Uniform { low: 0.0, width: f64::INFINITY, cap: 500.0, rounding };
            assert_eq!((distribution.mean(), distribution.at_cap()), (500.0, 1.0));
        }
    }
}
