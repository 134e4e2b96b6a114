//! Delays before the next try, computed by the code that schedules retries of jobs.

use crate::ClientError;
use redrive_policy::{Ambient, Backoff, Cap, CapPlace, Curve, Entropy, Jitter, Rounding, Span};
use std::time::Duration;

/// A delay that grows with every failure in a row, and starts over after a success.
#[derive(Clone, Debug)]
pub(crate) struct GrowingDelay {
    backoff: Backoff,
    failures: u32,
}

impl GrowingDelay {
    /// While a server cannot be reached: from a tenth of a second to five, spread so that a crowd of
    /// workers does not reconnect at the same moment.
    pub(crate) const fn unreachable() -> Self {
        Self::growing(Span::from_millis(100), Span::from_secs(5), Jitter::EQUAL)
    }

    /// While there is nothing to do and no notification comes: from a fiftieth of a second to a whole one.
    pub(crate) const fn idle() -> Self {
        Self::growing(Span::from_millis(20), Span::from_secs(1), Jitter::EQUAL)
    }

    /// While a queue has only jobs that this worker cannot run: from two seconds to a minute.
    /// The first wait is longer than that of such a job, so that another worker gets it first.
    pub(crate) const fn declining() -> Self {
        Self::growing(Span::from_secs(2), Span::from_secs(60), Jitter::EQUAL)
    }

    /// The delay of a job that this worker cannot run, after `releases` releases: from a second to an
    /// hour. A server that allows a hundred releases in a row reaches that limit only after days.
    pub(crate) fn for_others(releases: u32) -> Duration {
        let mut delay = Self::growing(Span::from_secs(1), Span::from_secs(3_600), Jitter::EQUAL);
        delay.failures = releases;
        delay.next_delay()
    }

    const fn growing(initial: Span, longest: Span, jitter: Jitter) -> Self {
        let backoff = Backoff {
            initial,
            offset: Span::ZERO,
            curve: Curve::Exponential { rate: 2.0 },
            cap: Some(Cap { at: longest, place: CapPlace::BeforeAndAfter }),
            jitter,
            rounding: Rounding::Exact,
        };
        Self { backoff, failures: 0 }
    }

    /// The delay after one more failure.
    pub(crate) fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.backoff.delay(self.failures, None, Ambient.draw()).delay.into()
    }

    /// Starts over after a success; true if there were failures before it.
    pub(crate) fn reset(&mut self) -> bool {
        std::mem::take(&mut self.failures) > 0
    }
}

/// Asks again and again until something has ended, for at most `within`. While the server is unreachable, it is asked
/// again too.
pub(crate) async fn until_ended<T, F: Future<Output = Result<T, ClientError>>>(
    within: Duration,
    ask: impl Fn() -> F,
    has_ended: impl Fn(&T) -> bool,
) -> Result<T, ClientError> {
    let mut delay = GrowingDelay::idle();
    let ended = async {
        loop {
            match ask().await {
                Ok(answer) if has_ended(&answer) => return Ok(answer),
                Err(error) if !error.is_temporary() => return Err(error),
                Ok(_) | Err(_) => tokio::time::sleep(delay.next_delay()).await,
            }
        }
    };
    tokio::time::timeout(within, ended).await.unwrap_or(Err(ClientError::TimedOut))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_no_worker_can_run_is_not_released_a_hundred_times_within_a_day() {
        assert!(GrowingDelay::for_others(0) <= Duration::from_secs(1));
        let hundred: Duration = (0..100).map(GrowingDelay::for_others).sum();
        assert!(hundred > Duration::from_secs(86_400), "{hundred:?}");
        assert!(GrowingDelay::for_others(u32::MAX) <= Duration::from_secs(3_600));
    }
}
