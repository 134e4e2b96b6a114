//! The blocking loop.

use super::classify::{ReportWith, When};
use super::plan::Plan;
use super::sleeper::monotonic_now;
use super::watch::{BeforeRetry, OnStop};
use super::{Both, Classify, Ordinary, RetryAfter, Unwatched, Watch};
use crate::{Ambient, Entropy, Failure, Moment, Policy, Verdict};
use std::time::Duration;

/// Runs a blocking operation under a policy: see [`RetryBlocking`] for what can be set before
/// [`call`](RetryBlocking::call).
///
/// ```
/// use redrive_policy::{Policy, retry_blocking};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder().immediate().build()?;
/// let mut bytes = [b"4x".as_slice(), b"42"].into_iter();
/// let number: u8 = retry_blocking(&policy, || {
///     let text = String::from_utf8_lossy(bytes.next().unwrap_or_default());
///     text.parse()
/// })
/// .call()?;
/// assert_eq!(number, 42);
/// # Ok(())
/// # }
/// ```
#[inline]
pub fn retry_blocking<Op, T, E>(policy: &Policy, operation: Op) -> RetryBlocking<'_, Op>
where
    Op: FnMut() -> Result<T, E>,
{
    RetryBlocking { operation, plan: Plan::new(policy), sleep: std::thread::sleep, now: monotonic_now }
}

/// [`retry_blocking`] as a method of the operation: any function or closure that returns a
/// `Result`.
pub trait BlockingRetryable<T, E>: FnMut() -> Result<T, E> + Sized {
    /// Runs the operation under a policy.
    #[inline]
    fn retry_blocking(self, policy: &Policy) -> RetryBlocking<'_, Self> {
        retry_blocking(policy, self)
    }
}

impl<Op: FnMut() -> Result<T, E>, T, E> BlockingRetryable<T, E> for Op {}

/// A blocking operation and how to retry it. Nothing happens before [`call`](Self::call).
#[must_use = "a retry does nothing before `call`"]
pub struct RetryBlocking<'p, Op, S = fn(Duration), K = fn() -> Moment, C = Ordinary, W = Unwatched, N = Ambient> {
    operation: Op,
    plan: Plan<'p, C, W, N>,
    sleep: S,
    now: K,
}

impl<'p, Op, T, E, S, K, C, W, N> RetryBlocking<'p, Op, S, K, C, W, N>
where
    Op: FnMut() -> Result<T, E>,
{
    /// As [`Retry::when`](super::Retry::when).
    #[inline]
    pub fn when<F>(self, worth_a_retry: F) -> RetryBlocking<'p, Op, S, K, Both<C, When<F>>, W, N>
    where
        F: FnMut(&E) -> bool,
    {
        self.with_plan(|plan| plan.classified(When(worth_a_retry)))
    }

    /// As [`Retry::classify`](super::Retry::classify).
    #[inline]
    pub fn classify<F>(self, classify: F) -> RetryBlocking<'p, Op, S, K, Both<C, ReportWith<F>>, W, N>
    where
        F: for<'e> FnMut(&'e E) -> Failure<'e>,
    {
        self.with_plan(|plan| plan.classified(ReportWith(classify)))
    }

    /// As [`Retry::retry_after`](super::Retry::retry_after).
    #[inline]
    pub fn retry_after<F>(self, wait: F) -> RetryBlocking<'p, Op, S, K, Both<C, RetryAfter<F>>, W, N>
    where
        F: FnMut(&E) -> Option<Duration>,
    {
        self.with_plan(|plan| plan.classified(RetryAfter(wait)))
    }

    /// As [`Retry::before_retry`](super::Retry::before_retry).
    #[inline]
    pub fn before_retry<F>(self, hook: F) -> RetryBlocking<'p, Op, S, K, C, Both<W, BeforeRetry<F>>, N>
    where
        F: FnMut(&E, &Verdict),
    {
        self.with_plan(|plan| plan.watched(BeforeRetry(hook)))
    }

    /// As [`Retry::on_stop`](super::Retry::on_stop).
    #[inline]
    pub fn on_stop<F>(self, hook: F) -> RetryBlocking<'p, Op, S, K, C, Both<W, OnStop<F>>, N>
    where
        F: FnMut(&E, &Verdict),
    {
        self.with_plan(|plan| plan.watched(OnStop(hook)))
    }

    /// As [`Retry::entropy`](super::Retry::entropy).
    #[inline]
    pub fn entropy<M: Entropy>(self, entropy: M) -> RetryBlocking<'p, Op, S, K, C, W, M> {
        self.with_plan(|plan| plan.drawing(entropy))
    }

    /// How to wait; the default is [`std::thread::sleep`]. A delay of zero is skipped.
    #[inline]
    pub fn sleeper<R: FnMut(Duration)>(self, sleep: R) -> RetryBlocking<'p, Op, R, K, C, W, N> {
        RetryBlocking { operation: self.operation, plan: self.plan, sleep, now: self.now }
    }

    /// The clock, which is read only under a policy that limits the elapsed time; the monotonic
    /// clock of the standard library by default.
    #[inline]
    pub fn clock<L: FnMut() -> Moment>(self, now: L) -> RetryBlocking<'p, Op, S, L, C, W, N> {
        RetryBlocking { operation: self.operation, plan: self.plan, sleep: self.sleep, now }
    }

    #[inline]
    fn with_plan<D, V, M>(
        self,
        change: impl FnOnce(Plan<'p, C, W, N>) -> Plan<'p, D, V, M>,
    ) -> RetryBlocking<'p, Op, S, K, D, V, M> {
        RetryBlocking { operation: self.operation, plan: change(self.plan), sleep: self.sleep, now: self.now }
    }

    /// Runs the operation, and runs it again as the policy says.
    ///
    /// # Errors
    /// The last error of the operation, as it came.
    // Always, for the reason that the poll of the async loop has.
    #[inline(always)]
    pub fn call(mut self) -> Result<T, E>
    where
        S: FnMut(Duration),
        K: FnMut() -> Moment,
        C: Classify<E>,
        W: Watch<E>,
        N: Entropy,
    {
        self.plan.start(&mut self.now);
        loop {
            let result = (self.operation)();
            let Some(delay) = result.as_ref().err().and_then(|error| self.plan.settle(error, &mut self.now)) else {
                return result;
            };
            drop(result);
            if !delay.is_zero() {
                (self.sleep)(delay.into());
            }
        }
    }
}
