//! Randomness as a value: the decision is given a number, which can be stored with it.

use serde::{Deserialize, Serialize};

/// A uniform number in `[0, 1)`, drawn once for one decision.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Draw(f64);

impl Draw {
    /// The lowest draw there is; gives the lower bound of every jitter.
    pub const LOWEST: Self = Self(0.0);
    /// The limit that draws approach; gives the upper bound of every jitter.
    pub const SUPREMUM: Self = Self(1.0);

    /// A draw from 64 random bits.
    #[inline]
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        // 52 bits and not 53, so that 0.5 + draw, the factor of OJS, can never round up to 1.5.
        Self((bits >> 12) as f64 * (1.0 / (1_u64 << 52) as f64))
    }

    /// The number itself.
    #[inline]
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Draw {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(format!("{value} is not a draw: a number from 0 to 1 is allowed"))
        }
    }
}

impl From<Draw> for f64 {
    fn from(draw: Draw) -> Self {
        draw.0
    }
}

/// Where draws come from.
pub trait Entropy {
    /// The next draw.
    fn draw(&mut self) -> Draw;
}

/// A source that is lent goes on where it was when it comes back.
impl<N: Entropy + ?Sized> Entropy for &mut N {
    #[inline]
    fn draw(&mut self) -> Draw {
        (**self).draw()
    }
}

/// Draws that a seed determines: the same seed gives the same draws.
#[derive(Clone, Debug)]
pub struct Seeded(fastrand::Rng);

impl Seeded {
    /// A source of draws that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(scattered(seed)))
    }
}

/// A seed far away from those of its neighbours: the generator takes its seed as its state, and
/// states that differ in a few bits give correlated draws. The finalizer of SplitMix64, a bijection.
const fn scattered(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Entropy for Seeded {
    #[inline]
    fn draw(&mut self) -> Draw {
        Draw::from_bits(self.0.u64(..))
    }
}

/// Draws from the thread's own generator, seeded by the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ambient;

impl Entropy for Ambient {
    #[inline]
    fn draw(&mut self) -> Draw {
        Draw::from_bits(fastrand::u64(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_lie_in_the_half_open_unit_interval() {
        assert_eq!(Draw::from_bits(0).value(), 0.0);
        assert!(Draw::from_bits(u64::MAX).value() < 1.0);
        assert!(0.5 + Draw::from_bits(u64::MAX).value() < 1.5);
    }

    #[test]
    fn the_same_seed_gives_the_same_draws() {
        let (mut a, mut b) = (Seeded::new(7), Seeded::new(7));
        for _ in 0..100 {
            assert_eq!(a.draw(), b.draw());
        }
    }
}
