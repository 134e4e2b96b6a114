//! Waiting, on whatever runtime there is.

use crate::Moment;
use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// A clock that can be waited on.
///
/// Any function from a [`Duration`] to a future is one, with the monotonic clock of the standard
/// library beside it: `.sleeper(my_runtime::sleep)`. Implement the trait where the clock is
/// another one, as in simulations.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not know how to sleep",
    note = "enable the feature `tokio`, or call `.sleeper(..)` with the sleep function of your runtime"
)]
pub trait Sleeper {
    /// A wait in progress. Dropping it ends the wait.
    type Sleep: Future<Output = ()>;

    /// Starts a wait.
    fn sleep(&self, duration: Duration) -> Self::Sleep;

    /// The present moment, from any origin that stays the same. It is read only under a policy
    /// that limits the elapsed time.
    fn now(&self) -> Moment;
}

impl<F, Sleep> Sleeper for F
where
    F: Fn(Duration) -> Sleep,
    Sleep: Future<Output = ()>,
{
    type Sleep = Sleep;

    fn sleep(&self, duration: Duration) -> Sleep {
        self(duration)
    }

    fn now(&self) -> Moment {
        monotonic_now()
    }
}

/// Sleeps on tokio's clock, which tests can pause.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioSleeper;

#[cfg(feature = "tokio")]
impl Sleeper for TokioSleeper {
    type Sleep = tokio::time::Sleep;

    fn sleep(&self, duration: Duration) -> Self::Sleep {
        tokio::time::sleep(duration)
    }

    fn now(&self) -> Moment {
        moment_of(tokio::time::Instant::now().into_std())
    }
}

/// Stands where a sleeper is still to be named, as no runtime is built in.
#[cfg(not(feature = "tokio"))]
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSleeper;

/// The sleeper to begin with: tokio's.
#[cfg(feature = "tokio")]
pub type DefaultSleeper = TokioSleeper;

/// The sleeper to begin with: none, as the feature `tokio` is off.
#[cfg(not(feature = "tokio"))]
pub type DefaultSleeper = NoSleeper;

/// The wait of a sleeper, where there is a sleeper yet.
pub trait SleepOf {
    /// [`Sleeper::Sleep`], or nothing.
    type Sleep;
}

impl<S: Sleeper> SleepOf for S {
    type Sleep = S::Sleep;
}

#[cfg(not(feature = "tokio"))]
impl SleepOf for NoSleeper {
    type Sleep = ();
}

/// The monotonic clock of the standard library.
pub(super) fn monotonic_now() -> Moment {
    moment_of(Instant::now())
}

/// Microseconds since the first moment that was asked for, always cut down: moments that lie whole
/// microseconds apart stay so. A paused clock can lie before the first moment, hence the sign.
fn moment_of(instant: Instant) -> Moment {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    const ALMOST_A_MICRO: Duration = Duration::from_nanos(999);
    let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Moment::from_micros(match instant.checked_duration_since(*ORIGIN) {
        Some(since) => micros(since),
        None => -micros(ORIGIN.saturating_duration_since(instant).saturating_add(ALMOST_A_MICRO)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Span;

    #[test]
    fn moments_before_the_origin_keep_their_distance() {
        let now = Instant::now();
        let before = now.checked_sub(Duration::from_secs(10)).expect("a clock that runs for ten seconds");
        assert_eq!(moment_of(now + Duration::from_secs(10)).since(moment_of(before)), Span::from_secs(20));
    }
}
