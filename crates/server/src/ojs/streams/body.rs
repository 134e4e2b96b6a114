//! A body that is made as it is read: nothing is prepared for a client that does not read.

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

type Step<S> = Pin<Box<dyn Future<Output = Option<(Bytes, S)>> + Send>>;

/// A body whose parts come from a state, one after the other, until there is no next.
pub(crate) struct Unfolded<S> {
    next: fn(S) -> Step<S>,
    step: Option<Step<S>>,
}

impl<S> Unfolded<S> {
    pub(crate) fn new(state: S, next: fn(S) -> Step<S>) -> Self {
        Self { next, step: Some(next(state)) }
    }
}

impl<S> Body for Unfolded<S> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(step) = &mut self.step else { return Poll::Ready(None) };
        let made = ready!(step.as_mut().poll(context));
        self.step = None;
        Poll::Ready(made.map(|(part, state)| {
            self.step = Some((self.next)(state));
            Ok(Frame::data(part))
        }))
    }
}
