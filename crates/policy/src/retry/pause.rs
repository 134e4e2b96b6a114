//! The pause between two runs.

use super::Sleeper;
use crate::Span;
use pin_project_lite::pin_project;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// A wait of any length. One of no length lets other tasks run once: a runtime's timer would
    /// round it up, and not to wait at all would starve the other tasks of the thread.
    #[derive(Debug)]
    pub struct Pause<Sleep> {
        // Absent where there is nothing to wait for.
        #[pin]
        sleep: Option<Sleep>,
        gave_way: bool,
    }
}

impl<Sleep> Pause<Sleep> {
    pub(super) fn new(sleeper: &impl Sleeper<Sleep = Sleep>, delay: Span) -> Self {
        let sleep = (!delay.is_zero()).then(|| sleeper.sleep(delay.into()));
        Self { sleep, gave_way: false }
    }
}

impl<Sleep: Future<Output = ()>> Future for Pause<Sleep> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if let Some(sleep) = this.sleep.as_pin_mut() {
            return sleep.poll(context);
        }
        if *this.gave_way {
            return Poll::Ready(());
        }
        *this.gave_way = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
