//! From an error of the program to a failure that a policy understands.

use super::Both;
use crate::{Failure, Signal};
use std::time::Duration;

/// Says what an error is to the policy. Several are asked in turn, and each sees what the ones
/// before it said.
pub trait Classify<E> {
    /// The failure, given what is known of it so far.
    fn classify<'e>(&mut self, error: &'e E, so_far: Failure<'e>) -> Failure<'e>;
}

/// Every error is an ordinary failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ordinary;

impl<E> Classify<E> for Ordinary {
    fn classify<'e>(&mut self, _: &'e E, so_far: Failure<'e>) -> Failure<'e> {
        so_far
    }
}

/// A function that returns the whole failure. A signal or a wait that another function set stays.
#[derive(Clone, Copy, Debug)]
pub struct ReportWith<F>(pub(super) F);

impl<E, F> Classify<E> for ReportWith<F>
where
    F: for<'e> FnMut(&'e E) -> Failure<'e>,
{
    fn classify<'e>(&mut self, error: &'e E, so_far: Failure<'e>) -> Failure<'e> {
        let told = (self.0)(error);
        let signal = if so_far.signal == Signal::None { told.signal } else { so_far.signal };
        Failure { signal, delay: so_far.delay.or(told.delay), ..told }
    }
}

/// A predicate that errors worth a retry satisfy.
#[derive(Clone, Copy, Debug)]
pub struct When<F>(pub(super) F);

impl<E, F> Classify<E> for When<F>
where
    F: FnMut(&E) -> bool,
{
    fn classify<'e>(&mut self, error: &'e E, so_far: Failure<'e>) -> Failure<'e> {
        if (self.0)(error) { so_far } else { so_far.with_signal(Signal::Permanent) }
    }
}

/// A function that knows how long an error asks to wait.
#[derive(Clone, Copy, Debug)]
pub struct RetryAfter<F>(pub(super) F);

impl<E, F> Classify<E> for RetryAfter<F>
where
    F: FnMut(&E) -> Option<Duration>,
{
    fn classify<'e>(&mut self, error: &'e E, so_far: Failure<'e>) -> Failure<'e> {
        match (self.0)(error) {
            Some(delay) => so_far.retry_after(delay),
            None => so_far,
        }
    }
}

impl<E, A: Classify<E>, B: Classify<E>> Classify<E> for Both<A, B> {
    fn classify<'e>(&mut self, error: &'e E, so_far: Failure<'e>) -> Failure<'e> {
        let so_far = self.0.classify(error, so_far);
        self.1.classify(error, so_far)
    }
}
