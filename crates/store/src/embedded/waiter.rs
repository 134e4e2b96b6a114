//! Waiting for a flush.

use crate::StoreError;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// The waiter of one frame: all calls whose records are in it wait for the same flush.
#[derive(Debug, Default)]
pub(super) struct CommitWaiter {
    outcome: OnceLock<Result<(), StoreError>>,
    waiting: Mutex<Vec<Waker>>,
}

impl CommitWaiter {
    /// A waiter of a frame that is on disk already.
    pub(super) fn served() -> Arc<Self> {
        let waiter = Self::default();
        waiter.serve(Ok(()));
        Arc::new(waiter)
    }

    /// The flush is over: wakes all that wait. Only the first outcome counts.
    pub(super) fn serve(&self, outcome: Result<(), StoreError>) {
        // Under the lock, so that no waiter can miss the outcome between its check and its wait.
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = self.outcome.set(outcome);
            std::mem::take(&mut *waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }

    /// Sleeps until the flush is over.
    pub(super) fn wait(self: &Arc<Self>) -> Result<(), StoreError> {
        struct Unpark(Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut durable = Durable::new((), Arc::clone(self));
        loop {
            match Pin::new(&mut durable).poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => thread::park(),
            }
        }
    }
}

/// An answer that is known and waits for its flush.
pub(super) struct Durable<T> {
    answer: Option<T>,
    waiter: Arc<CommitWaiter>,
    /// The index of this future's waker in the waiter's list.
    place: Option<usize>,
}

impl<T> Durable<T> {
    pub(super) const fn new(answer: T, waiter: Arc<CommitWaiter>) -> Self {
        Self { answer: Some(answer), waiter, place: None }
    }
}

impl<T> Unpin for Durable<T> {}

impl<T> Future for Durable<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.waiter.outcome.get().is_none() {
            let mut waiting = this.waiter.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if this.waiter.outcome.get().is_none() {
                match this.place.and_then(|place| waiting.get_mut(place)) {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => {
                        this.place = Some(waiting.len());
                        waiting.push(context.waker().clone());
                    }
                }
                return Poll::Pending;
            }
        }
        match (this.waiter.outcome.get(), this.answer.take()) {
            (Some(Ok(())), Some(answer)) => Poll::Ready(Ok(answer)),
            (Some(Err(error)), _) => Poll::Ready(Err(error.clone())),
            // Asked again after the answer was given.
            _ => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn everybody_waits_for_one_flush_and_is_woken_once() {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let waiter = Arc::new(CommitWaiter::default());
        let mut answers: Vec<_> = (0..3).map(|number| Durable::new(number, Arc::clone(&waiter))).collect();
        for answer in answers.iter_mut().chain([&mut Durable::new(9, Arc::clone(&waiter))]) {
            assert!(Pin::new(&mut *answer).poll(&mut context).is_pending());
            assert!(Pin::new(answer).poll(&mut context).is_pending());
        }
        waiter.serve(Ok(()));
        waiter.serve(Err(StoreError::Broken("too late".to_owned())));
        assert_eq!(count.0.load(Ordering::SeqCst), 4);
        for (number, answer) in answers.iter_mut().enumerate() {
            assert_eq!(Pin::new(answer).poll(&mut context), Poll::Ready(Ok(number)));
        }
        assert_eq!(waiter.wait(), Ok(()));
    }
}
