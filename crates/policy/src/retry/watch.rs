//! Hooks: code that sees verdicts go by.

use super::Both;
use crate::Verdict;

/// Sees each verdict before it takes effect.
pub trait Watch<E> {
    /// Called before the wait that precedes a retry.
    fn before_retry(&mut self, error: &E, verdict: &Verdict) {
        let _ = (error, verdict);
    }

    /// Called before the last error is returned.
    fn on_stop(&mut self, error: &E, verdict: &Verdict) {
        let _ = (error, verdict);
    }
}

/// No observer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl<E> Watch<E> for Unwatched {}

/// A function called before each retry.
#[derive(Clone, Copy, Debug)]
pub struct BeforeRetry<F>(pub(super) F);

impl<E, F: FnMut(&E, &Verdict)> Watch<E> for BeforeRetry<F> {
    fn before_retry(&mut self, error: &E, verdict: &Verdict) {
        (self.0)(error, verdict);
    }
}

/// A function called when it is over.
#[derive(Clone, Copy, Debug)]
pub struct OnStop<F>(pub(super) F);

impl<E, F: FnMut(&E, &Verdict)> Watch<E> for OnStop<F> {
    fn on_stop(&mut self, error: &E, verdict: &Verdict) {
        (self.0)(error, verdict);
    }
}

impl<E, A: Watch<E>, B: Watch<E>> Watch<E> for Both<A, B> {
    fn before_retry(&mut self, error: &E, verdict: &Verdict) {
        self.0.before_retry(error, verdict);
        self.1.before_retry(error, verdict);
    }

    fn on_stop(&mut self, error: &E, verdict: &Verdict) {
        self.0.on_stop(error, verdict);
        self.1.on_stop(error, verdict);
    }
}
