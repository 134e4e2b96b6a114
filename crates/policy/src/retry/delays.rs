//! Delays one after the other, for loops written by hand.

use crate::{Backoff, Entropy, Span};
use std::time::Duration;

/// The delays of a backoff, one after the other and without end; what stops them is up to the
/// loop around them.
///
/// ```
/// use redrive_policy::{Ambient, Policy, retry::Delays};
/// use std::time::Duration;
///
/// # fn main() -> Result<(), redrive_policy::Problems> {
/// let policy = Policy::builder().linear(Duration::from_secs(2)).no_jitter().build()?;
/// let seconds: Vec<u64> = Delays::new(&policy.rules[0].backoff, Ambient).take(3).map(|d| d.as_secs()).collect();
/// assert_eq!(seconds, [2, 4, 6]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Delays<'b, N> {
    backoff: &'b Backoff,
    entropy: N,
    retry: u32,
    previous: Option<Span>,
}

impl<'b, N: Entropy> Delays<'b, N> {
    /// Starts before the first retry.
    #[inline]
    #[must_use]
    pub const fn new(backoff: &'b Backoff, entropy: N) -> Self {
        Self { backoff, entropy, retry: 0, previous: None }
    }
}

impl<N: Entropy> Iterator for Delays<'_, N> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        self.retry = self.retry.saturating_add(1);
        let delay = self.backoff.delay(self.retry, self.previous, self.entropy.draw()).delay;
        self.previous = Some(delay);
        Some(delay.into())
    }
}
