//! A store with hooks around every call.

pub(crate) use redrive_store::testing::Verb;

use redrive_store::testing::Wrapper;
use redrive_store::{Store, StoreError, StoreFuture};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

/// The result of a hook: an error replaces the answer of the call.
pub(crate) type Passing = Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>;

/// Hooks around the calls of a store.
pub(crate) trait Around: Send + Sync {
    /// Runs before the call reaches the store. An error prevents the call.
    fn before(&self, verb: Verb) -> Passing;

    /// Runs after the call. An error replaces its answer.
    fn after(&self, verb: Verb) -> Passing;
}

/// A store with hooks.
///
/// A call to the store itself is atomic: it blocks until the answer is there, also if another thread answers, so that
/// the order of events depends only on the hooks.
pub(crate) struct Wrapped<A> {
    inner: Arc<dyn Store>,
    around: Arc<A>,
}

impl<A: Around> Wrapped<A> {
    pub(crate) const fn new(inner: Arc<dyn Store>, around: Arc<A>) -> Self {
        Self { inner, around }
    }
}

impl<A: Around> Wrapper for Wrapped<A> {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn pass<'a, T: Send + 'a>(
        &'a self,
        verb: Verb,
        call: impl FnOnce(&'a dyn Store) -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        Box::pin(async move {
            self.around.before(verb).await?;
            let answer = in_place(call(&*self.inner));
            self.around.after(verb).await?;
            answer
        })
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the answer is there.
pub(crate) fn in_place<T>(mut answer: StoreFuture<'_, T>) -> Result<T, StoreError> {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match answer.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => std::thread::park(),
        }
    }
}
