//! The async loop.

use super::classify::{ReportWith, When};
use super::pause::Pause;
use super::plan::Plan;
use super::watch::{BeforeRetry, OnStop};
use super::{Both, Classify, DefaultSleeper, Ordinary, RetryAfter, SleepOf, Sleeper, Unwatched, Watch};
use crate::{Ambient, Entropy, Failure, Policy, Verdict};
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Runs an async operation under a policy: see [`Retry`] for what can be set before `.await`.
///
/// ```
/// use redrive_policy::{Policy, retry};
///
/// # #[cfg(not(feature = "tokio"))]
/// # fn main() {}
/// # #[cfg(feature = "tokio")]
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let policy = Policy::builder().max_attempts(4).build()?;
/// let mut runs = 0;
/// let answer = retry(&policy, || {
///     runs += 1;
///     let run = runs;
///     async move { if run < 3 { Err("not yet") } else { Ok(42) } }
/// })
/// .await?;
/// assert_eq!((answer, runs), (42, 3));
/// # Ok(())
/// # }
/// ```
#[inline]
pub fn retry<Op, Fut, T, E>(policy: &Policy, operation: Op) -> Retry<'_, Op, Fut>
where
    Op: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retry { operation, plan: Plan::new(policy), sleeper: DefaultSleeper::default(), state: State::Due }
}

/// [`retry`] as a method of the operation: any function or closure that returns a future of a
/// `Result`.
pub trait Retryable<Fut>: FnMut() -> Fut + Sized {
    /// Runs the operation under a policy.
    #[inline]
    fn retry<T, E>(self, policy: &Policy) -> Retry<'_, Self, Fut>
    where
        Fut: Future<Output = Result<T, E>>,
    {
        retry(policy, self)
    }
}

impl<Op: FnMut() -> Fut, Fut> Retryable<Fut> for Op {}

pin_project! {
    /// An operation on its way through its retries: a future of the operation's own `Result`,
    /// with the last error as it came.
    ///
    /// The first run starts with the first poll, and limits on elapsed time count from there. A
    /// run is never started before the one before it has ended. An error is dropped before the
    /// wait that follows it.
    ///
    /// It can be dropped at any time: the run or the wait in progress is dropped with it, no run
    /// starts afterwards, and nothing else is left behind, as nothing is spawned or allocated
    /// here. As with any future, it is not to be polled again once it has completed.
    #[must_use = "a retry does nothing unless it is awaited"]
    pub struct Retry<'p, Op, Fut, S = DefaultSleeper, C = Ordinary, W = Unwatched, N = Ambient>
    where
        S: SleepOf,
    {
        operation: Op,
        plan: Plan<'p, C, W, N>,
        sleeper: S,
        #[pin]
        state: State<Fut, S::Sleep>,
    }
}

pin_project! {
    #[project = Stage]
    enum State<Fut, Sleep> {
        Due,
        Running { #[pin] run: Fut },
        Pausing { #[pin] pause: Pause<Sleep> },
    }
}

impl<'p, Op, Fut, T, E, S, C, W, N> Retry<'p, Op, Fut, S, C, W, N>
where
    Fut: Future<Output = Result<T, E>>,
    S: SleepOf,
{
    /// Only errors that satisfy this are retried; for the others, the first is the last. Where it
    /// is called more than once, all must be satisfied.
    #[inline]
    pub fn when<F: FnMut(&E) -> bool>(self, worth_a_retry: F) -> Retry<'p, Op, Fut, S, Both<C, When<F>>, W, N> {
        self.with_plan(|plan| plan.classified(When(worth_a_retry)))
    }

    /// Says what an error is to the policy: its type and code, which rules match on, its own
    /// opinion on retrying, a signal, a wait of its own. Without this, every error is an ordinary
    /// failure of the type `error`.
    #[inline]
    pub fn classify<F>(self, classify: F) -> Retry<'p, Op, Fut, S, Both<C, ReportWith<F>>, W, N>
    where
        F: for<'e> FnMut(&'e E) -> Failure<'e>,
    {
        self.with_plan(|plan| plan.classified(ReportWith(classify)))
    }

    /// The wait that an error asks for, as `Retry-After` does. It is used as it is, with neither
    /// cap nor jitter; the limits on attempts and on elapsed time still hold.
    #[inline]
    pub fn retry_after<F>(self, wait: F) -> Retry<'p, Op, Fut, S, Both<C, RetryAfter<F>>, W, N>
    where
        F: FnMut(&E) -> Option<Duration>,
    {
        self.with_plan(|plan| plan.classified(RetryAfter(wait)))
    }

    /// Is called before the wait that precedes each retry. Where it is set more than once, all are
    /// called in order.
    #[inline]
    pub fn before_retry<F>(self, hook: F) -> Retry<'p, Op, Fut, S, C, Both<W, BeforeRetry<F>>, N>
    where
        F: FnMut(&E, &Verdict),
    {
        self.with_plan(|plan| plan.watched(BeforeRetry(hook)))
    }

    /// Is called when the policy stops, with the reason in the verdict, before the last error is
    /// handed back.
    #[inline]
    pub fn on_stop<F>(self, hook: F) -> Retry<'p, Op, Fut, S, C, Both<W, OnStop<F>>, N>
    where
        F: FnMut(&E, &Verdict),
    {
        self.with_plan(|plan| plan.watched(OnStop(hook)))
    }

    /// Where draws come from: one for each failure. The default is [`Ambient`].
    #[inline]
    pub fn entropy<M: Entropy>(self, entropy: M) -> Retry<'p, Op, Fut, S, C, W, M> {
        self.with_plan(|plan| plan.drawing(entropy))
    }

    /// How to wait, for runtimes other than tokio.
    #[inline]
    pub fn sleeper<R: Sleeper>(self, sleeper: R) -> Retry<'p, Op, Fut, R, C, W, N> {
        Retry { operation: self.operation, plan: self.plan, sleeper, state: State::Due }
    }

    #[inline]
    fn with_plan<D, V, M>(
        self,
        change: impl FnOnce(Plan<'p, C, W, N>) -> Plan<'p, D, V, M>,
    ) -> Retry<'p, Op, Fut, S, D, V, M> {
        Retry { operation: self.operation, plan: change(self.plan), sleeper: self.sleeper, state: self.state }
    }
}

impl<Op, Fut, T, E, S, C, W, N> Future for Retry<'_, Op, Fut, S, C, W, N>
where
    Op: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
    S: Sleeper,
    C: Classify<E>,
    W: Watch<E>,
    N: Entropy,
{
    type Output = Result<T, E>;

    // Always: out of line, the way back of the result costs more than all the rest of a success.
    // What follows a failure is out of line in turn.
    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        let mut this = self.project();
        loop {
            // Asked in the order in which they follow each other, and not by a match, so that a
            // success goes straight through. Each state is set where it arises: one that is handed
            // around is copied whole, with the room for a runtime's sleep in it.
            if let Stage::Pausing { pause } = this.state.as_mut().project() {
                ready!(poll_pause(pause, context));
                this.state.set(State::Due);
            }
            if let Stage::Due = this.state.as_mut().project() {
                this.plan.start(|| this.sleeper.now());
                let run = (this.operation)();
                this.state.set(State::Running { run });
            }
            if let Stage::Running { run } = this.state.as_mut().project() {
                let result = ready!(run.poll(context));
                let delay = result.as_ref().err().and_then(|error| this.plan.settle(error, || this.sleeper.now()));
                let Some(delay) = delay else { return Poll::Ready(result) };
                let pause = Pause::new(this.sleeper, delay);
                this.state.set(State::Pausing { pause });
            }
        }
    }
}

/// Out of the way of a run that succeeds.
#[cold]
fn poll_pause<Sleep: Future<Output = ()>>(pause: Pin<&mut Pause<Sleep>>, context: &mut Context<'_>) -> Poll<()> {
    pause.poll(context)
}
