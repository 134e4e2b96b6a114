//! What the suite needs to know of the store under test.

use crate::Store;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// A store under test: how to make it, and how to close and open it again.
pub trait Subject: Sync {
    /// A new, empty store. The store of an earlier call is no longer used.
    fn open(&self) -> Box<dyn Store>;

    /// The store of the last [`Subject::open`] after a restart, with everything that it stored. The suite drops
    /// the store that it has before it calls this.
    fn reopen(&self) -> Box<dyn Store>;

    /// Waits for an answer on this thread. Stores whose answers need a runtime bring theirs here.
    fn wait(&self, work: Pin<Box<dyn Future<Output = ()> + '_>>) {
        block_on(work);
    }
}

/// Waits for a future on this thread, which sleeps until it is woken.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
